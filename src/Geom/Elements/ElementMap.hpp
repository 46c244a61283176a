/// @file ElementMap.hpp
/// @brief The map of an element from reference coordinates to space, and back; usable in kernels.
#pragma once

#include "DNDS/Geom/Elements/ShapeFunctions.hpp"

namespace DNDS::Geom {

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
