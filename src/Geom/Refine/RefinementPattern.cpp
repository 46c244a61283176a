#include "DNDS/Geom/Refine/RefinementPattern.hpp"

#include "DNDS/Geom/Elements/ElementMap.hpp"

#include <cmath>

namespace DNDS::Geom {

namespace {

/// A child by its corners, as nodes of the parent's complete second-order element.
struct InnerPiece {
    ReferenceShape shape;
    std::vector<int> corners;
};

/// The middle that remains when a copy at each corner is cut off.
std::vector<InnerPiece> middleOf(ReferenceShape shape) {
    using Shape = ReferenceShape;
    switch (shape) {
    case Shape::Triangle:
        return {{Shape::Triangle, {3, 4, 5}}};
    case Shape::Tetrahedron: // Bey's order; corners 0 and 2 exchanged where his is left-handed
        return {{Shape::Tetrahedron, {4, 6, 7, 8}},
                {Shape::Tetrahedron, {5, 6, 4, 8}},
                {Shape::Tetrahedron, {6, 7, 8, 9}},
                {Shape::Tetrahedron, {8, 5, 6, 9}}};
    case Shape::Prism:
        return {{Shape::Prism, {6, 7, 8, 15, 16, 17}}, {Shape::Prism, {15, 16, 17, 12, 13, 14}}};
    case Shape::Pyramid:
        return {{Shape::Pyramid, {9, 12, 11, 10, 13}},
                {Shape::Tetrahedron, {5, 13, 9, 10}},
                {Shape::Tetrahedron, {6, 13, 10, 11}},
                {Shape::Tetrahedron, {7, 13, 11, 12}},
                {Shape::Tetrahedron, {8, 13, 12, 9}}};
    default:
        return {};
    }
}

/// The corners of all children, in reference coordinates of the parent.
struct PlacedPiece {
    ReferenceShape shape;
    std::vector<Point> corners;
};

/// Corner copies are the parent scaled by a half about each corner.
std::vector<PlacedPiece> piecesOf(ReferenceShape shape) {
    std::vector<PlacedPiece> pieces;
    const int corners = referenceTable(shape).corners;
    for (int k = 0; k < corners; k++) {
        pieces.push_back({shape, {}});
        for (int j = 0; j < corners; j++)
            pieces.back().corners.push_back(0.5 * (referenceNode(shape, k) + referenceNode(shape, j)));
    }
    for (const InnerPiece &piece : middleOf(shape)) {
        pieces.push_back({piece.shape, {}});
        for (const int corner : piece.corners)
            pieces.back().corners.push_back(referenceNode(shape, corner));
    }
    return pieces;
}

/// The type of this shape with the order of `like`, and without nodes inside faces (serendipity) if `like` has none,
/// where the shape has quadrilaterals.
ElementType typeOf(ReferenceShape shape, const ElementLayout &like) {
    const bool serendipity = like.complete > like.nodes;
    ElementType best = ElementType::Node;
    for (int type = static_cast<int>(ElementType::Bar2); type <= static_cast<int>(ElementType::Pyra13); type++) {
        const ElementLayout layout = elementLayout(static_cast<ElementType>(type));
        if (layout.nodes > 0 && layout.shape == shape && layout.order == like.order &&
            (layout.complete > layout.nodes) == (serendipity && referenceTable(shape).quads > 0))
            best = static_cast<ElementType>(type);
    }
    return best;
}

/// Makes the pattern of one type.
/// At most 125 nodes a pattern, found by a linear search; made once a process, so cost does not matter.
class PatternMaker {
  public:
    explicit PatternMaker(ElementType type) : type_(type), layout_(elementLayout(type)) {}

    RefinementPattern make() {
        for (const PlacedPiece &piece : piecesOf(layout_.shape))
            addChild(piece);
        return std::move(pattern_);
    }

  private:
    // Centre and axes are those of the linear map of the child's corners: exact, since all pieces are images of
    // reference shapes under it.
    void addChild(const PlacedPiece &piece) {
        RefinementPattern::Child child{typeOf(piece.shape, layout_), {}, {}, {}};
        const ElementLayout layout = elementLayout(child.type);
        const ShapeFunctions centre = linear(piece.shape, referenceCentre(piece.shape));
        for (std::size_t k = 0; k < piece.corners.size(); k++) {
            child.centre = child.centre + centre.values[k] * piece.corners[k];
            for (std::size_t d = 0; d < 3; d++)
                child.axes[d] = child.axes[d] + centre.gradients[k][d] * piece.corners[k];
        }
        for (int n = 0; n < layout.nodes; n++)
            child.nodes.push_back(nodeAt(place(piece, n)));
        pattern_.children.push_back(std::move(child));
    }

    /// Node `n` of a child: the mean of the corners around it. Exact, as all numbers are multiples of 1/8.
    static Point place(const PlacedPiece &piece, int n) {
        const ReferenceTable &table = referenceTable(piece.shape);
        std::vector<int> around;
        if (n < table.corners)
            around = {n};
        else if (n - table.corners < table.edges)
            around.assign(std::begin(table.edge[n - table.corners]), std::end(table.edge[n - table.corners]));
        else if (const int quad = n - table.corners - table.edges; quad < table.quads)
            around.assign(std::begin(table.quad[quad]), std::begin(table.quad[quad]) + 4);
        else
            for (int k = 0; k < table.corners; k++)
                around.push_back(k);
        Point sum{};
        for (const int k : around)
            sum = sum + piece.corners[static_cast<std::size_t>(k)];
        return (1.0 / static_cast<real>(around.size())) * sum;
    }

    /// The linear shape functions of a shape: the weights of its corners at a point.
    static ShapeFunctions linear(ReferenceShape shape, const Point &at) {
        return shapeFunctions(typeOf(shape, {shape, 1, 0, 0}), at);
    }

    /// Positions are multiples of 1/8 and compare exactly, so nodes that children share are found by position.
    std::uint8_t nodeAt(const Point &at) {
        for (std::size_t n = 0; n < pattern_.nodes.size(); n++)
            if (pattern_.nodes[n].at == at)
                return static_cast<std::uint8_t>(n);
        RefinementPattern::Node node;
        node.at = at;
        for (int k = 0; k < layout_.nodes; k++)
            if (referenceNode(layout_.shape, k) == at)
                node.old = k;
        const ShapeFunctions functions = shapeFunctions(type_, at);
        for (int k = 0; k < layout_.nodes; k++) { // nodes off a face have no influence there, not even by rounding
            const real value = functions.values[static_cast<std::size_t>(k)];
            node.values.push_back(std::fabs(value) < 1e-14 ? 0.0 : value);
        }
        node.inner = outside(layout_.shape, at) < 0.0;
        // Weights are products of multiples of a quarter: integers in sixteenths compare exactly between elements.
        const ShapeFunctions weights = linear(layout_.shape, at);
        std::array<std::uint8_t, 8> sixteenths{};
        for (int k = 0; k < weights.nodes; k++) {
            const auto i = static_cast<std::size_t>(k);
            sixteenths[i] = static_cast<std::uint8_t>(std::lround(16.0 * weights.values[i]));
            node.corners += sixteenths[i] > 0 ? 1 : 0;
        }
        if (node.corners > 4)
            node.corners = 0; // in the middle of a volume
        for (std::size_t k = 0, n = 0; n < static_cast<std::size_t>(node.corners); k++)
            if (sixteenths[k] > 0) {
                node.corner[n] = static_cast<std::uint8_t>(k);
                node.weight[n++] = sixteenths[k];
            }
        pattern_.nodes.push_back(std::move(node));
        return static_cast<std::uint8_t>(pattern_.nodes.size() - 1);
    }

    ElementType type_;
    ElementLayout layout_;
    RefinementPattern pattern_;
};

} // namespace

/// All patterns are made at the first call; the initialization of a local static is safe in several threads.
const RefinementPattern &refinementPattern(ElementType type) {
    static const std::vector<RefinementPattern> patterns = [] {
        std::vector<RefinementPattern> all(static_cast<std::size_t>(ElementType::Polyhedron) + 1);
        for (std::size_t t = 0; t < all.size(); t++)
            if (const auto of = static_cast<ElementType>(t); elementLayout(of).order > 0)
                all[t] = PatternMaker(of).make();
        return all;
    }();
    return patterns[static_cast<std::size_t>(type)];
}

} // namespace DNDS::Geom
