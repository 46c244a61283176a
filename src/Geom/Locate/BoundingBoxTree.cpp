#include "DNDS/Geom/Locate/BoundingBoxTree.hpp"

namespace DNDS::Geom {

/// Nodes are stored in the order of construction, depth first: the first child is the next node.
BoundingBoxTree::BoundingBoxTree(std::vector<BoundingBox> boxes) : boxes_(std::move(boxes)) {
    for (std::size_t i = 0; i < boxes_.size(); i++)
        if (!boxes_[i].empty())
            order_.push_back(static_cast<int>(i));
    nodes_.reserve(order_.size());
    if (!order_.empty())
        addNode(0, order_.size());
}

/// O(n) a level by selection, hence O(n log n) for the tree.
/// Recursion depth is log2(boxes). `order_` is permuted within [begin, end) only, so a node's boxes stay contiguous
/// after its children are built.
void BoundingBoxTree::addNode(std::size_t begin, std::size_t end) {
    constexpr std::size_t maxInLeaf = 4;
    const std::size_t at = nodes_.size();
    Node node;
    BoundingBox middles;
    for (std::size_t i = begin; i < end; i++) {
        const BoundingBox &box = boxes_[static_cast<std::size_t>(order_[i])];
        node.bounds.add(box);
        middles.add(box.middle());
    }
    nodes_.push_back(node);
    if (end - begin <= maxInLeaf) {
        nodes_[at].begin = begin;
        nodes_[at].count = end - begin;
        return;
    }
    const Point sides = middles.upper - middles.lower;
    const auto axis = static_cast<std::size_t>(std::max_element(sides.begin(), sides.end()) - sides.begin());
    const std::size_t half = begin + (end - begin) / 2;
    const auto position = [&](std::size_t i) { return order_.begin() + static_cast<std::ptrdiff_t>(i); };
    // Equal middles are halved, too, so that the depth is the logarithm of the number of boxes whatever they are.
    std::nth_element(position(begin), position(half), position(end), [&](int a, int b) {
        return boxes_[static_cast<std::size_t>(a)].middle()[axis] < boxes_[static_cast<std::size_t>(b)].middle()[axis];
    });
    addNode(begin, half);
    nodes_[at].second = nodes_.size();
    addNode(half, end);
}

} // namespace DNDS::Geom
