/// @file ElementFaces.hpp
/// @brief The faces and the measure of any element, including polygons and polyhedra.
#pragma once

#include "DNDS/Geom/Source/ElementType.hpp"
#include "DNDS/Geom/Source/NumberTable.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace DNDS::Geom {

/// `corners` without repeated ones. Local.
std::vector<index> distinctCorners(std::span<const index> corners);

/// Whether a corner occurs twice. Local.
bool hasRepeats(std::span<const index> corners);

/// Calls `visit(corners)` for each face of a cell, counter-clockwise seen from outside, in the order of the standard
/// (edges of a Polygon in order around it, faces of a Polyhedron as listed). Local.
///
/// `nodes` as in `ElementBlock`. Corners that a face repeats are passed once; faces with fewer distinct corners than
/// the cell has dimensions are skipped: they are edges or points of a collapsed element.
/// The position in the sequence of calls is the face's slot: stable, as it depends on the cell's node list alone. No
/// allocation for fixed types without repeated corners.
template <class Visit>
void forEachFace(ElementType type, std::span<const index> nodes, Visit &&visit) {
    const auto give = [&](std::span<const index> corners, std::size_t least) {
        if (!hasRepeats(corners)) {
            visit(corners);
            return;
        }
        const std::vector<index> kept = distinctCorners(corners);
        if (kept.size() >= least)
            visit(std::span<const index>(kept));
    };
    if (type == ElementType::Polyhedron) {
        for (std::size_t at = 0; at < nodes.size(); at += toSize(nodes[at]) + 1)
            give(nodes.subspan(at + 1, toSize(nodes[at])), 3);
    } else if (type == ElementType::Polygon) {
        for (std::size_t i = 0; i < nodes.size(); i++)
            give(std::array{nodes[i], nodes[i + 1 == nodes.size() ? 0 : i + 1]}, 2);
    } else {
        const ElementInfo &info = elementInfo(type);
        std::array<index, 4> corners;
        for (const ElementFace &face : info.faces) {
            const auto count = static_cast<std::size_t>(face.corners);
            for (std::size_t k = 0; k < count; k++)
                corners[k] = nodes[face.corner[k]];
            give(std::span<const index>(corners).first(count), static_cast<std::size_t>(info.dimension));
        }
    }
}

/// Calls `visit(node)` for each listed node of a cell, mid-nodes included; for a Polyhedron once per face. `Node` is
/// `index` or `const index`. Local.
template <class Node, class Visit>
void forEachNode(ElementType type, std::span<Node> nodes, Visit &&visit) {
    if (type != ElementType::Polyhedron) {
        for (Node &node : nodes)
            visit(node);
        return;
    }
    for (std::size_t at = 0; at < nodes.size(); at += toSize(nodes[at]) + 1)
        for (Node &node : nodes.subspan(at + 1, toSize(nodes[at])))
            visit(node);
}

/// Twice the vector area of a polygon whose corner `i` is at `pointOf(i)`: counter-clockwise around the vector. Local.
/// For four corners the cross product of the diagonals: exact for warped quadrilaterals, too, as the vector area of a
/// closed polygon depends on its boundary only.
template <class PointOf>
Point twiceArea(std::size_t corners, PointOf &&pointOf) {
    const Point a = pointOf(0);
    if (corners == 3)
        return cross(pointOf(1) - a, pointOf(2) - a);
    if (corners == 4)
        return cross(pointOf(2) - a, pointOf(3) - pointOf(1));
    Point sum{};
    for (std::size_t i = 1; i + 1 < corners; i++)
        sum = sum + cross(pointOf(i) - a, pointOf(i + 1) - a);
    return sum;
}

template <class PointOf>
Point meanPoint(std::size_t count, PointOf &&pointOf) {
    Point sum{};
    for (std::size_t i = 0; i < count; i++)
        sum = sum + pointOf(i);
    return (1.0 / static_cast<real>(std::max<std::size_t>(count, 1))) * sum;
}

/// The positions of a cell's corners in its list of nodes: all but higher-order nodes. Local.
inline std::span<const index> cornerNodes(ElementType type, std::span<const index> nodes) {
    const ElementInfo &info = elementInfo(type);
    return info.corners > 0 ? nodes.first(static_cast<std::size_t>(info.corners)) : nodes;
}

/// The volume of a three-dimensional element from its corners, negative if its faces point inward: the sum of cones
/// over its faces, each fanned around the mean of its corners, so that neighbours fill space without gaps. Local.
/// By the divergence theorem; the apex is a corner, so that the coordinates' offset from the origin cancels early.
template <class PointOf>
real signedVolume(ElementType type, std::span<const index> nodes, PointOf &&pointOf) {
    real sum = 0.0;
    bool started = false;
    Point apex{};
    forEachFace(type, nodes, [&](std::span<const index> corners) {
        if (!started)
            apex = pointOf(corners[0]);
        started = true;
        const auto corner = [&](std::size_t i) { return pointOf(corners[i]) - apex; };
        sum += dot(meanPoint(corners.size(), corner), twiceArea(corners.size(), corner));
    });
    return sum / 6.0;
}

/// The vector area of a two-dimensional element from its corners. Local.
template <class PointOf>
Point vectorArea(ElementType type, std::span<const index> nodes, PointOf &&pointOf) {
    const auto corners = cornerNodes(type, nodes);
    return 0.5 * twiceArea(corners.size(), [&](std::size_t i) { return pointOf(corners[i]); });
}

} // namespace DNDS::Geom
