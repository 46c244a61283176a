#include "DNDS/Geom/Elements/ReferenceElement.hpp"
#include "DNDS/Geom/Generate/BoxPattern.hpp"

#include <span>
#include <utility>

namespace DNDS::Geom::Detail {

namespace {

// The element of second order with mid-nodes on quadrilaterals and in hexahedra.
ElementType secondOrderType(ElementType linear) {
    constexpr std::pair<ElementType, ElementType> types[] = {
        {ElementType::Bar2, ElementType::Bar3},      {ElementType::Tri3, ElementType::Tri6},
        {ElementType::Quad4, ElementType::Quad9},    {ElementType::Tetra4, ElementType::Tetra10},
        {ElementType::Penta6, ElementType::Penta18}, {ElementType::Hexa8, ElementType::Hexa27}};
    for (const auto &[from, to] : types)
        if (from == linear)
            return to;
    return linear;
}

/// The elements of a pattern of bricks with their mid-nodes. Nodes are those of the grid with half the spacing, each of
/// which is a corner of a brick or the middle of an edge, a quadrilateral or a hexahedron.
/// The node in the middle of corners has the mean of their grid coordinates, doubled: integers without rounding.
class SecondOrderPattern final : public BoxPattern {
  public:
    explicit SecondOrderPattern(const BoxMeshOptions &options)
        : linear_(makeBrickPattern(options)), fine_(makeBrickPattern(halved(options))), width_(options.cells[0]),
          depth_(options.cells[1]) {}

    int dimension() const override { return linear_->dimension(); }
    index nodeCount() const override { return fine_->nodeCount(); }
    index cellCount() const override { return linear_->cellCount(); }
    index faceCount() const override { return linear_->faceCount(); }
    std::array<real, 3> position(index node) const override { return fine_->position(node); }

    void cell(index number, BoxElement &result) const override {
        linear_->cell(number, result);
        addMiddles(result);
    }
    void face(index number, BoxElement &result) const override {
        linear_->face(number, result);
        addMiddles(result);
    }

  private:
    // Twice as many bricks of half the size: nodes with even numbers are the corners.
    static BoxMeshOptions halved(BoxMeshOptions options) {
        for (index &count : options.cells)
            count *= 2;
        return options;
    }

    /// The fine node in the middle of nodes of the linear pattern.
    template <class Corners>
    index middle(const std::vector<index> &nodes, const Corners &corners) const {
        std::array<index, 3> sum{};
        for (const int k : corners) {
            const index node = nodes[static_cast<std::size_t>(k)];
            const index line = node / (width_ + 1);
            sum[0] += node % (width_ + 1);
            sum[1] += line % (depth_ + 1);
            sum[2] += line / (depth_ + 1);
        }
        const auto count = static_cast<index>(std::size(corners));
        return ((2 * sum[2] / count) * (2 * depth_ + 1) + 2 * sum[1] / count) * (2 * width_ + 1) + 2 * sum[0] / count;
    }

    // In the order of the CGNS standard: corners, edges, quadrilaterals, volume.
    void addMiddles(BoxElement &element) const {
        const ReferenceTable &table = referenceTable(elementLayout(element.type).shape);
        const std::vector<index> linear = std::exchange(element.nodes, {});
        for (int k = 0; k < table.corners; k++)
            element.nodes.push_back(middle(linear, std::array{k}));
        for (int e = 0; e < table.edges; e++)
            element.nodes.push_back(middle(linear, table.edge[e]));
        for (int q = 0; q < table.quads; q++)
            element.nodes.push_back(middle(linear, std::span(table.quad[q]).first<4>()));
        if (element.type == ElementType::Hexa8)
            element.nodes.push_back(middle(linear, std::array{0, 1, 2, 3, 4, 5, 6, 7}));
        element.type = secondOrderType(element.type);
    }

    std::unique_ptr<BoxPattern> linear_;
    std::unique_ptr<BoxPattern> fine_;
    // Bricks in x and y
    index width_;
    index depth_;
};

} // namespace

std::unique_ptr<BoxPattern> makeSecondOrderPattern(const BoxMeshOptions &options) {
    return std::make_unique<SecondOrderPattern>(options);
}

} // namespace DNDS::Geom::Detail
