/// @file BoundingBoxTree.hpp
/// @brief A tree of axis-aligned boxes: which of them have a point, and which are nearest to it.
#pragma once

#include "DNDS/Geom/Source/ElementType.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace DNDS::Geom {

/// An axis-aligned box; empty at first. All functions are Local.
struct BoundingBox {
    static constexpr real infinity = std::numeric_limits<real>::infinity();
    Point lower{infinity, infinity, infinity};
    Point upper{-infinity, -infinity, -infinity};

    bool empty() const { return !(lower[0] <= upper[0]); }
    void add(const Point &point) { add(BoundingBox{point, point}); }
    void add(const BoundingBox &other) {
        for (std::size_t d = 0; d < 3; d++) {
            lower[d] = std::min(lower[d], other.lower[d]);
            upper[d] = std::max(upper[d], other.upper[d]);
        }
    }
    void grow(const Point &by) {
        lower = lower - by;
        upper = upper + by;
    }
    real diagonal() const { return empty() ? 0.0 : norm(upper - lower); }
    Point middle() const { return 0.5 * (lower + upper); }
    /// False for points that are not finite.
    bool has(const Point &p) const {
        return lower[0] <= p[0] && p[0] <= upper[0] && lower[1] <= p[1] && p[1] <= upper[1] && lower[2] <= p[2] &&
               p[2] <= upper[2];
    }
    /// The squared distance; 0 inside, infinite if the box is empty.
    real distance2(const Point &p) const {
        real sum = 0.0;
        for (std::size_t d = 0; d < 3; d++) {
            const real beyond = std::max({lower[d] - p[d], p[d] - upper[d], 0.0});
            sum += beyond * beyond;
        }
        return sum;
    }
};

/// A bounding volume hierarchy (Ericson, Real-Time Collision Detection, 2005, chapter 6) of numbered boxes, halved at
/// the median of their middles along the longest side. Empty boxes are never found. All functions are Local.
class BoundingBoxTree {
  public:
    BoundingBoxTree() = default;
    /// O(boxes log boxes).
    explicit BoundingBoxTree(std::vector<BoundingBox> boxes);

    /// The box around all boxes, and one of the boxes.
    BoundingBox bounds() const { return nodes_.empty() ? BoundingBox{} : nodes_[0].bounds; }
    const BoundingBox &box(int number) const { return boxes_[static_cast<std::size_t>(number)]; }

    /// Calls `visit(box)` for each box that has the point, in any order. About O(log boxes + found).
    template <class Visit>
    void forEachAt(const Point &point, Visit &&visit) const {
        Stack<std::size_t> open(*this, 0);
        while (!open.empty()) {
            const Node &node = nodes_[open.pop()];
            if (!node.bounds.has(point))
                continue;
            for (const int box : boxesOf(node))
                if (boxes_[static_cast<std::size_t>(box)].has(point))
                    visit(box);
            if (node.second != 0) {
                open.push(node.second);
                open.push(static_cast<std::size_t>(&node - nodes_.data()) + 1);
            }
        }
    }

    /// Calls `visit(box)` for all boxes whose squared distance from the point is at most `limit2`, which `visit` may
    /// lower, near ones first, and perhaps for some farther ones. About O(log boxes) if the limit falls soon.
    template <class Visit>
    void forEachWithin(const Point &point, const real &limit2, Visit &&visit) const {
        // Distances to boxes are rounded, too.
        const auto near = [&](real distance2) { return distance2 * (1.0 - 1e-13) <= limit2; };
        using Entry = std::pair<std::size_t, real>;
        Stack<Entry> open(*this, {0, 0.0});
        while (!open.empty()) {
            const auto [at, from] = open.pop();
            if (!near(from))
                continue;
            const Node &node = nodes_[at];
            for (const int box : boxesOf(node))
                if (near(boxes_[static_cast<std::size_t>(box)].distance2(point)))
                    visit(box);
            if (node.second != 0) {
                Entry first{at + 1, nodes_[at + 1].bounds.distance2(point)};
                Entry second{node.second, nodes_[node.second].bounds.distance2(point)};
                if (second.second < first.second)
                    std::swap(first, second);
                open.push(second);
                open.push(first);
            }
        }
    }

  private:
    struct Node {
        BoundingBox bounds;
        std::size_t second = 0; ///< the second child; the first one is the next node. 0: a leaf
        std::size_t begin = 0;  ///< the boxes of a leaf, in `order_`
        std::size_t count = 0;
    };
    /// Nodes to visit: at most one a level is kept for later, and halving leaves no more than 64 levels.
    template <class Entry>
    class Stack {
      public:
        Stack(const BoundingBoxTree &tree, const Entry &root) {
            if (!tree.nodes_.empty())
                push(root);
        }
        bool empty() const { return size_ == 0; }
        void push(const Entry &entry) { entries_[size_++] = entry; }
        Entry pop() { return entries_[--size_]; }

      private:
        std::array<Entry, 66> entries_;
        std::size_t size_ = 0;
    };
    std::span<const int> boxesOf(const Node &node) const {
        return std::span<const int>(order_).subspan(node.begin, node.count);
    }
    void addNode(std::size_t begin, std::size_t end);

    /// The boxes as given, by number.
    std::vector<BoundingBox> boxes_;
    /// Boxes that are not empty, permuted so that each node's are contiguous.
    std::vector<int> order_;
    std::vector<Node> nodes_;
};

} // namespace DNDS::Geom
