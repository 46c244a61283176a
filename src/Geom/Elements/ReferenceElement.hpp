/// @file ReferenceElement.hpp
/// @brief Reference shapes of the element types: where their nodes are, and their edges; usable in kernels. And the
/// faces and edges of an element with all their nodes, second-order ones included; quadrature on the reference shapes.
#pragma once

#include "DNDS/Geom/Source/ElementType.hpp"
#include "DNDS/Storage/Array.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace DNDS::Geom {

/// The domains of reference coordinates (xi, eta, zeta). Unused coordinates are 0.
enum class ReferenceShape : std::uint8_t {
    Vertex,
    Segment,       ///< [-1, 1]
    Triangle,      ///< corners (0, 0), (1, 0), (0, 1)
    Quadrilateral, ///< [-1, 1]^2
    Tetrahedron,   ///< corners at the origin and the three unit vectors
    Pyramid,       ///< base [-1, 1]^2 at zeta = 0, apex (0, 0, 1)
    Prism,         ///< triangle x [-1, 1]
    Hexahedron     ///< [-1, 1]^3
};

/// Number of reference shapes.
inline constexpr std::size_t referenceShapeCount = 8;

/// The most nodes an element with shape functions has: HEXA_27.
inline constexpr int maxElementNodes = 27;

/// Numbers that shape functions need of a type.
struct ElementLayout {
    ReferenceShape shape = ReferenceShape::Vertex;
    int order = 0;    ///< 1 or 2; 0 of Node
    int nodes = 0;    ///< 0: the type has no shape functions (polygons, polyhedra, MIXED)
    int complete = 0; ///< nodes of the complete element of that shape and order: 9 of QUAD_8; `nodes` if it is complete
};

/// The layout of a type. Local, O(1); in kernels, too.
DNDS_HOST_DEVICE constexpr ElementLayout elementLayout(ElementType type) {
    using Shape = ReferenceShape;
    switch (type) {
    case ElementType::Node:
        return {Shape::Vertex, 0, 1, 1};
    case ElementType::Bar2:
        return {Shape::Segment, 1, 2, 2};
    case ElementType::Bar3:
        return {Shape::Segment, 2, 3, 3};
    case ElementType::Tri3:
        return {Shape::Triangle, 1, 3, 3};
    case ElementType::Tri6:
        return {Shape::Triangle, 2, 6, 6};
    case ElementType::Quad4:
        return {Shape::Quadrilateral, 1, 4, 4};
    case ElementType::Quad8:
        return {Shape::Quadrilateral, 2, 8, 9};
    case ElementType::Quad9:
        return {Shape::Quadrilateral, 2, 9, 9};
    case ElementType::Tetra4:
        return {Shape::Tetrahedron, 1, 4, 4};
    case ElementType::Tetra10:
        return {Shape::Tetrahedron, 2, 10, 10};
    case ElementType::Pyra5:
        return {Shape::Pyramid, 1, 5, 5};
    case ElementType::Pyra13:
        return {Shape::Pyramid, 2, 13, 14};
    case ElementType::Pyra14:
        return {Shape::Pyramid, 2, 14, 14};
    case ElementType::Penta6:
        return {Shape::Prism, 1, 6, 6};
    case ElementType::Penta15:
        return {Shape::Prism, 2, 15, 18};
    case ElementType::Penta18:
        return {Shape::Prism, 2, 18, 18};
    case ElementType::Hexa8:
        return {Shape::Hexahedron, 1, 8, 8};
    case ElementType::Hexa20:
        return {Shape::Hexahedron, 2, 20, 27};
    case ElementType::Hexa27:
        return {Shape::Hexahedron, 2, 27, 27};
    default:
        return {};
    }
}

/// Corners, edges and quadrilaterals of a shape. Second-order types number their nodes by it, as the CGNS standard
/// (SIDS, unstructured grid element numbering) does: corners, one node an edge, one a quadrilateral, one in the middle
/// of a hexahedron.
struct ReferenceTable {
    std::uint8_t dimension;
    std::uint8_t corners;
    std::uint8_t edges;
    std::uint8_t quads;       ///< quadrilateral faces; of a quadrilateral 1: itself
    std::int8_t corner[8][3]; ///< reference coordinates
    std::uint8_t edge[12][2]; ///< corners
    std::uint8_t quad[6][8];  ///< four corners counter-clockwise seen from outside, then the edges that follow them
};

/// The table of a shape. Local, O(1); in kernels, too.
DNDS_HOST_DEVICE inline const ReferenceTable &referenceTable(ReferenceShape shape) {
    static constexpr ReferenceTable tables[] = {
        {0, 1, 0, 0, {{0, 0, 0}}, {}, {}},
        {1, 2, 1, 0, {{-1, 0, 0}, {1, 0, 0}}, {{0, 1}}, {}},
        {2, 3, 3, 0, {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}}, {{0, 1}, {1, 2}, {2, 0}}, {}},
        {2,
         4,
         4,
         1,
         {{-1, -1, 0}, {1, -1, 0}, {1, 1, 0}, {-1, 1, 0}},
         {{0, 1}, {1, 2}, {2, 3}, {3, 0}},
         {{0, 1, 2, 3, 0, 1, 2, 3}}},
        {3,
         4,
         6,
         0,
         {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
         {{0, 1}, {1, 2}, {2, 0}, {0, 3}, {1, 3}, {2, 3}},
         {}},
        {3,
         5,
         8,
         1,
         {{-1, -1, 0}, {1, -1, 0}, {1, 1, 0}, {-1, 1, 0}, {0, 0, 1}},
         {{0, 1}, {1, 2}, {2, 3}, {3, 0}, {0, 4}, {1, 4}, {2, 4}, {3, 4}},
         {{0, 3, 2, 1, 3, 2, 1, 0}}},
        {3,
         6,
         9,
         3,
         {{0, 0, -1}, {1, 0, -1}, {0, 1, -1}, {0, 0, 1}, {1, 0, 1}, {0, 1, 1}},
         {{0, 1}, {1, 2}, {2, 0}, {0, 3}, {1, 4}, {2, 5}, {3, 4}, {4, 5}, {5, 3}},
         {{0, 1, 4, 3, 0, 4, 6, 3}, {1, 2, 5, 4, 1, 5, 7, 4}, {2, 0, 3, 5, 2, 3, 8, 5}}},
        {3,
         8,
         12,
         6,
         {{-1, -1, -1}, {1, -1, -1}, {1, 1, -1}, {-1, 1, -1}, {-1, -1, 1}, {1, -1, 1}, {1, 1, 1}, {-1, 1, 1}},
         {{0, 1}, {1, 2}, {2, 3}, {3, 0}, {0, 4}, {1, 5}, {2, 6}, {3, 7}, {4, 5}, {5, 6}, {6, 7}, {7, 4}},
         {{0, 3, 2, 1, 3, 2, 1, 0},
          {0, 1, 5, 4, 0, 5, 8, 4},
          {1, 2, 6, 5, 1, 6, 9, 5},
          {2, 3, 7, 6, 2, 7, 10, 6},
          {0, 4, 7, 3, 4, 11, 7, 3},
          {4, 5, 6, 7, 8, 9, 10, 11}}},
    };
    return tables[static_cast<int>(shape)];
}

/// The reference coordinates of a node: mid-nodes are the means of the corners around them. `node` counts as in the
/// complete element. Local, O(1); in kernels, too.
DNDS_HOST_DEVICE inline Point referenceNode(ReferenceShape shape, int node) {
    const ReferenceTable &table = referenceTable(shape);
    const auto mean = [&](const std::uint8_t *corners, int count) {
        Point sum{};
        for (int k = 0; k < count; k++)
            for (int d = 0; d < 3; d++)
                sum[static_cast<std::size_t>(d)] += table.corner[corners[k]][d];
        return (1.0 / count) * sum;
    };
    if (node < table.corners) {
        const auto corner = static_cast<std::uint8_t>(node);
        return mean(&corner, 1);
    }
    const int edge = node - table.corners;
    if (edge < table.edges)
        return mean(table.edge[edge], 2);
    const int quad = edge - table.edges;
    return quad < table.quads ? mean(table.quad[quad], 4) : Point{};
}

/// The length, area or volume of a reference shape; 1 of a vertex. Local; in kernels, too.
DNDS_HOST_DEVICE constexpr real referenceMeasure(ReferenceShape shape) {
    constexpr real measures[] = {1.0, 2.0, 0.5, 4.0, 1.0 / 6.0, 4.0 / 3.0, 1.0, 8.0};
    return measures[static_cast<int>(shape)];
}

/// Distance of a point outside a reference shape, in reference coordinates: the largest violation of its bounds, not
/// above 0 for points inside or on the boundary. Local; in kernels, too.
DNDS_HOST_DEVICE inline real outside(ReferenceShape shape, const Point &at) {
    const auto larger = [](real a, real b) { return a > b ? a : b; };
    const auto [x, y, z] = at;
    const real beyond[] = {std::fabs(x) - 1.0, std::fabs(y) - 1.0, std::fabs(z) - 1.0};
    const real triangle = larger(larger(-x, -y), x + y - 1.0);
    switch (shape) {
    case ReferenceShape::Segment:
        return beyond[0];
    case ReferenceShape::Triangle:
        return triangle;
    case ReferenceShape::Quadrilateral:
        return larger(beyond[0], beyond[1]);
    case ReferenceShape::Tetrahedron:
        return larger(larger(larger(-x, -y), -z), x + y + z - 1.0);
    case ReferenceShape::Pyramid:
        return larger(-z, larger(beyond[0], beyond[1]) + z);
    case ReferenceShape::Prism:
        return larger(triangle, beyond[2]);
    case ReferenceShape::Hexahedron:
        return larger(larger(beyond[0], beyond[1]), beyond[2]);
    default:
        return larger(larger(std::fabs(x), std::fabs(y)), std::fabs(z));
    }
}

/// A point well inside: the mean of the corners. Local; in kernels, too.
DNDS_HOST_DEVICE inline Point referenceCentre(ReferenceShape shape) {
    const int corners = referenceTable(shape).corners;
    Point sum{};
    for (int k = 0; k < corners; k++)
        sum = sum + referenceNode(shape, k);
    return (1.0 / corners) * sum;
}

/// A face or an edge of an element: an element itself, of nodes numbered within the other.
struct SubElement {
    ElementType type = ElementType::Node;
    std::array<std::uint8_t, 9> node{};

    /// [nodes of `type`] in the order of the standard.
    std::span<const std::uint8_t> nodes() const {
        return std::span<const std::uint8_t>(node).first(static_cast<std::size_t>(elementLayout(type).nodes));
    }
};

/// Face `face` of `elementInfo(type).faces`: the normal of its own map, the cross product of its tangents, points out
/// of the element; the edge of a surface runs counter-clockwise. A face of HEXA_20 is a QUAD_8, of HEXA_27 a QUAD_9.
/// Local, O(1). Throws ArgumentError for types without shape functions and for numbers that are no face.
SubElement faceOf(ElementType type, int face);

/// Number of edges of a type, and edge `edge`, in the order of the standard. Local, O(1). Throws as `faceOf`.
int edgeCount(ElementType type);
SubElement edgeOf(ElementType type, int edge);

/// The point `at` of a face's or edge's reference shape in reference coordinates of the element, to evaluate fields of
/// the cell at points of its face. Local.
Point inElement(ElementType type, const SubElement &part, const Point &at);

/// Points and weights of a rule, for kernels: points into a Quadrature, which must outlive it.
struct QuadratureView {
    ArrayView<const real, 4> rows; ///< [points] reference coordinates, weight

    /// The number of points; point and weight `q`. In kernels, too.
    DNDS_HOST_DEVICE index size() const { return rows.size(); }
    DNDS_HOST_DEVICE Point point(index q) const { return {rows(q, 0), rows(q, 1), rows(q, 2)}; }
    DNDS_HOST_DEVICE real weight(index q) const { return rows(q, 3); }
};
static_assert(std::is_trivially_copyable_v<QuadratureView>);

/// The highest degree of a rule that `Quadrature` makes.
inline constexpr int maxQuadratureDegree = 10;

/// A quadrature rule: sum of weight(q) * f(point(q)) is the integral of f over the reference shape, exact for
/// polynomials up to `degree`. All weights are positive, all points inside; weights add up to `referenceMeasure`.
///
///     const Quadrature rule(ReferenceShape::Hexahedron, 3);
///     const QuadratureView points = rule.view();
///     for (index q = 0; q < points.size(); q++)
///         integral += points.weight(q) * f(points.point(q));
///
/// Products of Gauss rules with n = degree / 2 + 1 points in each direction, computed once by Newton's method; in
/// triangles, tetrahedra and pyramids of Gauss-Jacobi rules in collapsed coordinates (Karniadakis and Sherwin,
/// Spectral/hp Element Methods, 2005, section 4.1 and appendix B). Those are exact for the functions of pyramids, too.
/// Degree 2 in triangles and tetrahedra: the symmetric rules of 3 and 4 points (Hammer and Stroud, 1956).
class Quadrature {
  public:
    /// Local. Throws ArgumentError for degrees that are not in 0 to `maxQuadratureDegree`.
    Quadrature(ReferenceShape shape, int degree);

    /// As asked for, and the number of points. Local.
    ReferenceShape shape() const noexcept { return shape_; }
    int degree() const noexcept { return degree_; }
    index size() const noexcept { return rows_.size(); }

    /// The view of the memory of `backend`. Local, O(1). Throws StaleError for a device without `toDevice()` before.
    template <DeviceBackend backend = DeviceBackend::Host>
    QuadratureView view() const {
        return {rows_.template deviceView<backend>()};
    }

    /// Copies the rule to the device. Local; waits. Throws NotBuiltError, MemoryError.
    void toDevice() { rows_.toDevice(); }

  private:
    ReferenceShape shape_;
    int degree_;
    Array<real, 4> rows_;
};

/// Rules of one degree on all shapes, for kernels: points into a QuadratureSet, which must outlive it.
struct QuadratureSetView {
    std::array<QuadratureView, referenceShapeCount> rules; ///< indexed by ReferenceShape

    /// The rule of a shape. In kernels, too.
    DNDS_HOST_DEVICE const QuadratureView &operator[](ReferenceShape shape) const {
        return rules[static_cast<std::size_t>(shape)];
    }
};
static_assert(std::is_trivially_copyable_v<QuadratureSetView>);

/// Rules of one degree on all shapes, for meshes of several types: `view()[elementLayout(type).shape]`.
class QuadratureSet {
  public:
    /// Local. Throws as Quadrature.
    explicit QuadratureSet(int degree);

    /// As of Quadrature. Local.
    template <DeviceBackend backend = DeviceBackend::Host>
    QuadratureSetView view() const {
        QuadratureSetView view;
        for (std::size_t i = 0; i < rules_.size(); i++)
            view.rules[i] = rules_[i].template view<backend>();
        return view;
    }
    void toDevice() {
        for (Quadrature &rule : rules_)
            rule.toDevice();
    }

  private:
    std::vector<Quadrature> rules_; ///< [referenceShapeCount]
};

} // namespace DNDS::Geom
