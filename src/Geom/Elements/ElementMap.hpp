/// @file ElementMap.hpp
/// @brief Elements in space; usable in kernels.
///
/// - `ShapeFunctions`: those of all element types and their gradients at a reference point
/// - the map of an element from reference coordinates to space, and back
#pragma once

#include "DNDS/Geom/Elements/ReferenceElement.hpp"

#include <array>

namespace DNDS::Geom {

/// Values and gradients of an element's shape functions at one point. 872 bytes: tabulate what many elements share.
struct ShapeFunctions {
    int nodes = 0;
    int dimension = 0;
    std::array<real, maxElementNodes> values;     ///< [nodes], in the order of the CGNS standard
    std::array<Point, maxElementNodes> gradients; ///< [nodes] with respect to reference coordinates; unused ones are 0

    /// Sets function `node`. In kernels, too.
    DNDS_HOST_DEVICE void set(int node, real value, const Point &gradient) {
        values[static_cast<std::size_t>(node)] = value;
        gradients[static_cast<std::size_t>(node)] = gradient;
    }
    /// Adds `factor` times function `from` to function `to`. In kernels, too.
    DNDS_HOST_DEVICE void add(int to, real factor, int from) {
        const auto i = static_cast<std::size_t>(to);
        const auto j = static_cast<std::size_t>(from);
        values[i] += factor * values[j];
        gradients[i] = gradients[i] + factor * gradients[j];
    }
};

/// The parts that shape functions are made of.
namespace Shapes {

/// A function of one variable.
struct Line {
    real value;
    real slope;
};

/// The Lagrange polynomial on [-1, 1] that is 1 at `node` (-1, 1, of order 2 also 0). In kernels, too.
DNDS_HOST_DEVICE inline Line line(int order, real node, real x) {
    if (order == 1)
        return {0.5 * (1.0 + node * x), 0.5 * node};
    if (node == 0.0)
        return {1.0 - x * x, -2.0 * x};
    return {0.5 * x * (x + node), x + 0.5 * node};
}

/// Products of lines: segments, quadrilaterals, hexahedra. In kernels, too.
DNDS_HOST_DEVICE inline void setProducts(ShapeFunctions &result, const ElementLayout &layout, const Point &at) {
    for (int k = 0; k < layout.complete; k++) {
        const Point node = referenceNode(layout.shape, k);
        Line lines[3] = {{1.0, 0.0}, {1.0, 0.0}, {1.0, 0.0}};
        for (std::size_t d = 0; d < static_cast<std::size_t>(result.dimension); d++)
            lines[d] = line(layout.order, node[d], at[d]);
        const auto [x, y, z] = lines;
        result.set(k, x.value * y.value * z.value,
                   {x.slope * y.value * z.value, x.value * y.slope * z.value, x.value * y.value * z.slope});
    }
}

/// Polynomials of barycentric coordinates: triangles and tetrahedra. In kernels, too.
DNDS_HOST_DEVICE inline void setSimplex(ShapeFunctions &result, const ElementLayout &layout, const Point &at) {
    const ReferenceTable &table = referenceTable(layout.shape);
    const auto weight = [&](int corner) {
        return corner == 0 ? 1.0 - at[0] - at[1] - at[2] : at[static_cast<std::size_t>(corner - 1)];
    };
    const auto slope = [&](int corner) {
        if (corner == 0)
            return result.dimension == 2 ? Point{-1.0, -1.0, 0.0} : Point{-1.0, -1.0, -1.0};
        return Point{corner == 1 ? 1.0 : 0.0, corner == 2 ? 1.0 : 0.0, corner == 3 ? 1.0 : 0.0};
    };
    for (int k = 0; k < table.corners; k++) {
        const real l = weight(k);
        if (layout.order == 1)
            result.set(k, l, slope(k));
        else
            result.set(k, l * (2.0 * l - 1.0), (4.0 * l - 1.0) * slope(k));
    }
    for (int e = 0; e < layout.complete - table.corners; e++) {
        const int a = table.edge[e][0];
        const int b = table.edge[e][1];
        result.set(table.corners + e, 4.0 * weight(a) * weight(b),
                   (4.0 * weight(b)) * slope(a) + (4.0 * weight(a)) * slope(b));
    }
}

/// Functions of a triangle times lines. In kernels, too.
DNDS_HOST_DEVICE inline void setPrism(ShapeFunctions &result, const ElementLayout &layout, const Point &at) {
    static constexpr std::uint8_t inTriangle[] = {0, 1, 2, 0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 3, 4, 5};
    ShapeFunctions triangle;
    triangle.dimension = 2;
    const int nodes = layout.order == 1 ? 3 : 6;
    setSimplex(triangle, {ReferenceShape::Triangle, layout.order, nodes, nodes}, {at[0], at[1], 0.0});
    for (int k = 0; k < layout.complete; k++) {
        const std::size_t i = inTriangle[k];
        const Line up = line(layout.order, referenceNode(layout.shape, k)[2], at[2]);
        const Point &slope = triangle.gradients[i];
        result.set(k, triangle.values[i] * up.value,
                   {slope[0] * up.value, slope[1] * up.value, triangle.values[i] * up.slope});
    }
}

/// Pyramids: rational functions, which are polynomials in the position a = x / w, b = y / w within the horizontal
/// section of half-width w = 1 - z. Those of order r span the space of Bergot, Cohen and Durufle (Higher-order finite
/// elements for hybrid meshes using new nodal pyramidal elements, J. Sci. Comput. 42, 2010): all polynomials of degree
/// r, and on each face those of the neighbour's element. At the apex, where gradients depend on the direction, they
/// are those along the axis. In kernels, too.
DNDS_HOST_DEVICE inline void setPyramid(ShapeFunctions &result, const ElementLayout &layout, const Point &at) {
    const real z = at[2];
    const real w = 1.0 - z;
    const real a = w != 0.0 ? at[0] / w : 0.0;
    const real b = w != 0.0 ? at[1] / w : 0.0;
    // w times a function g of a, b and z, whose derivatives are given.
    const auto set = [&](int node, real g, real ga, real gb, real gz) {
        result.set(node, w * g, {ga, gb, w * gz - g + a * ga + b * gb});
    };
    const bool linear = layout.order == 1;
    for (int k = 0; k < 4; k++) {
        const Point corner = referenceNode(layout.shape, k);
        const Line x = line(1, corner[0], a);
        const Line y = line(1, corner[1], b);
        const real g = x.value * y.value;
        const real ga = x.slope * y.value;
        const real gb = x.value * y.slope;
        if (linear) {
            set(k, g, ga, gb, 0.0);
            continue;
        }
        set(9 + k, 4.0 * z * g, 4.0 * z * ga, 4.0 * z * gb, 4.0 * g);
        const Line x2 = line(2, corner[0], a);
        const Line y2 = line(2, corner[1], b);
        const real h = x2.value * y2.value;
        set(k, w * h - z * g, w * x2.slope * y2.value - z * ga, w * x2.value * y2.slope - z * gb, -h - g);
    }
    if (linear) {
        result.set(4, z, {0.0, 0.0, 1.0});
        return;
    }
    result.set(4, z * (2.0 * z - 1.0), {0.0, 0.0, 4.0 * z - 1.0});
    for (const int k : {5, 6, 7, 8, 13}) {
        const Point node = referenceNode(layout.shape, k);
        const Line x = line(2, node[0], a);
        const Line y = line(2, node[1], b);
        set(k, w * x.value * y.value, w * x.slope * y.value, w * x.value * y.slope, -x.value * y.value);
    }
}

/// Makes functions of a serendipity element of those of the complete one: a node that it lacks has the value that the
/// others interpolate, so that the terms of highest degree of the quadrilateral, or the hexahedron, vanish. In kernels,
/// too.
DNDS_HOST_DEVICE inline void leaveOutCentres(ShapeFunctions &result, const ElementLayout &layout) {
    const ReferenceTable &table = referenceTable(layout.shape);
    for (int q = 0; q < table.quads; q++)
        for (int k = 0; k < 4; k++) {
            result.add(table.quad[q][k], -0.25, layout.nodes + q);
            result.add(table.corners + table.quad[q][4 + k], 0.5, layout.nodes + q);
        }
    if (layout.shape != ReferenceShape::Hexahedron)
        return;
    for (int k = 0; k < layout.nodes; k++)
        result.add(k, k < table.corners ? -0.25 : 0.25, layout.complete - 1);
}

} // namespace Shapes

/// The shape functions of a type at the reference point `at`: Lagrange polynomials of order 1 or 2 for complete
/// elements, serendipity for QUAD_8, PYRA_13, PENTA_15 and HEXA_20 (Zienkiewicz and Taylor, The Finite Element Method).
/// `nodes` is 0 for types without: polygons, polyhedra, MIXED. Local, O(nodes); in kernels, too.
DNDS_HOST_DEVICE inline ShapeFunctions shapeFunctions(ElementType type, const Point &at) {
    const ElementLayout layout = elementLayout(type);
    ShapeFunctions result;
    result.nodes = layout.nodes;
    result.dimension = referenceTable(layout.shape).dimension;
    switch (layout.shape) {
    case ReferenceShape::Vertex:
        result.set(0, 1.0, {});
        break;
    case ReferenceShape::Segment:
    case ReferenceShape::Quadrilateral:
    case ReferenceShape::Hexahedron:
        Shapes::setProducts(result, layout, at);
        break;
    case ReferenceShape::Triangle:
    case ReferenceShape::Tetrahedron:
        Shapes::setSimplex(result, layout, at);
        break;
    case ReferenceShape::Prism:
        Shapes::setPrism(result, layout, at);
        break;
    case ReferenceShape::Pyramid:
        Shapes::setPyramid(result, layout, at);
        break;
    }
    if (layout.complete > layout.nodes)
        Shapes::leaveOutCentres(result, layout);
    return result;
}

/// The map of an element at one reference point: x = sum of shape functions times nodes.
struct MappedPoint {
    int dimension = 0; ///< dimension of the element: 1 to 3; space has 3
    Point position{};
    std::array<Point, 3> tangents{}; ///< columns of the Jacobian matrix: derivatives of the position

    /// The normal of a surface element, as long as its area is large: the cross product of the tangents. In kernels,
    /// too.
    DNDS_HOST_DEVICE Point areaVector() const { return cross(tangents[0], tangents[1]); }

    /// Size of the image of a unit reference volume: the determinant for volumes, negative if inside out; the area for
    /// surfaces, the length for lines. In kernels, too.
    DNDS_HOST_DEVICE real measure() const {
        if (dimension == 3)
            return dot(areaVector(), tangents[2]);
        return dimension == 2 ? norm(areaVector()) : norm(tangents[0]);
    }

    /// Gradients in space of the reference coordinates: rows of the inverse Jacobian matrix, of its pseudo-inverse for
    /// surfaces and lines. Not finite where `measure()` is 0. In kernels, too.
    DNDS_HOST_DEVICE std::array<Point, 3> reciprocals() const {
        const auto &t = tangents;
        if (dimension == 3) {
            const real scale = 1.0 / measure();
            return {scale * cross(t[1], t[2]), scale * cross(t[2], t[0]), scale * cross(t[0], t[1])};
        }
        if (dimension == 2) {
            const Point normal = areaVector();
            const real scale = 1.0 / dot(normal, normal);
            return {scale * cross(t[1], normal), scale * cross(normal, t[0]), Point{}};
        }
        return {(1.0 / dot(t[0], t[0])) * t[0], Point{}, Point{}};
    }
};

/// A gradient in reference coordinates, as those of shape functions, in space. In kernels, too.
DNDS_HOST_DEVICE inline Point gradientInSpace(const std::array<Point, 3> &reciprocals, const Point &gradient) {
    return gradient[0] * reciprocals[0] + gradient[1] * reciprocals[1] + gradient[2] * reciprocals[2];
}

/// Maps the point of `functions` to space; `nodeAt(k)` is the position of the element's node k. Local, O(nodes); in
/// kernels, too.
///
///     const auto x = mapPoint(shapeFunctions(type, at), [&](int k) { return points[nodes[k]]; });
template <class NodeAt>
DNDS_HOST_DEVICE MappedPoint mapPoint(const ShapeFunctions &functions, NodeAt &&nodeAt) {
    MappedPoint mapped;
    mapped.dimension = functions.dimension;
    for (int k = 0; k < functions.nodes; k++) {
        const auto i = static_cast<std::size_t>(k);
        const Point node = nodeAt(k);
        mapped.position = mapped.position + functions.values[i] * node;
        for (std::size_t d = 0; d < 3; d++)
            mapped.tangents[d] = mapped.tangents[d] + functions.gradients[i][d] * node;
    }
    return mapped;
}

enum class InverseStatus : std::uint8_t {
    Found,       ///< the last step was shorter than the tolerance
    Singular,    ///< the Jacobian matrix is singular, or not finite, where the iteration came to
    NotConverged ///< `maxIterations` steps did not suffice: mostly points far outside of a curved element
};

/// The result of `findReferencePoint`.
struct InverseMap {
    InverseStatus status = InverseStatus::NotConverged;
    Point reference{};   ///< only of use if Found
    real distance = 0.0; ///< from the point to the image of `reference`: for points beside a surface or a line
    int iterations = 0;

    /// In kernels, too.
    DNDS_HOST_DEVICE bool found() const { return status == InverseStatus::Found; }
};

/// The reference coordinates of the point `target`, by Newton's method from the middle of the element; of surfaces and
/// lines those of the nearest point, by Gauss and Newton. Never throws: see `InverseMap::status`. Steps are at most 1
/// long; one shorter than `tolerance`, both in reference coordinates, is the last.
///
/// Found does not mean inside: `outside(elementLayout(type).shape, reference)` says how far the point is outside.
/// Elements with straight sides and parallel faces need one step. Local; in kernels, too.
/// Limiting steps to 1 keeps the iteration in the neighbourhood of the reference element, where the map is close to
/// linear. One more evaluation after convergence gives `distance`.
template <class NodeAt>
DNDS_HOST_DEVICE InverseMap findReferencePoint(ElementType type, NodeAt &&nodeAt, const Point &target,
                                               real tolerance = 1e-10, int maxIterations = 30) {
    InverseMap result;
    result.reference = referenceCentre(elementLayout(type).shape);
    while (true) {
        const MappedPoint mapped = mapPoint(shapeFunctions(type, result.reference), nodeAt);
        const Point rest = target - mapped.position;
        result.distance = norm(rest);
        if (result.found())
            return result;
        if (result.iterations == maxIterations)
            return result;
        const std::array<Point, 3> rows = mapped.reciprocals();
        Point step{dot(rows[0], rest), dot(rows[1], rest), dot(rows[2], rest)};
        const real length = norm(step);
        if (!(length < 1e30)) {
            result.status = InverseStatus::Singular;
            return result;
        }
        if (length > 1.0)
            step = (1.0 / length) * step;
        result.reference = result.reference + step;
        result.iterations++;
        if (length <= tolerance)
            result.status = InverseStatus::Found;
    }
}

} // namespace DNDS::Geom
