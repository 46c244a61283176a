/// @file CurvedMeshes.hpp
/// @brief Makes meshes of second-order elements of linear ones.
#pragma once

#include "DNDS/Geom/Elements/ReferenceElement.hpp"
#include "Geom/Build/WholeMesh.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

namespace DNDS::test {

enum class Order { Linear, Serendipity, Complete };

inline Geom::ElementType raised(Geom::ElementType type, Order order) {
    using Geom::ElementType;
    const bool complete = order == Order::Complete;
    switch (type) {
    case ElementType::Tri3:
        return ElementType::Tri6;
    case ElementType::Quad4:
        return complete ? ElementType::Quad9 : ElementType::Quad8;
    case ElementType::Tetra4:
        return ElementType::Tetra10;
    case ElementType::Pyra5:
        return complete ? ElementType::Pyra14 : ElementType::Pyra13;
    case ElementType::Penta6:
        return complete ? ElementType::Penta18 : ElementType::Penta15;
    case ElementType::Hexa8:
        return complete ? ElementType::Hexa27 : ElementType::Hexa20;
    default:
        return type;
    }
}

/// Gives cells their second-order nodes, in the middle between corners, then moves all nodes by `map`.
inline WholeMesh curve(WholeMesh mesh, Order order, const std::function<Geom::Point(const Geom::Point &)> &map) {
    using Geom::ElementType;
    using Geom::Point;
    using Geom::operator+;
    using Geom::operator*;
    std::map<std::vector<index>, index> made;
    const auto between = [&](std::vector<index> corners) {
        std::sort(corners.begin(), corners.end());
        const auto [it, isNew] = made.try_emplace(corners, static_cast<index>(mesh.points.size()));
        if (isNew) {
            Point sum{};
            for (const index corner : corners)
                sum = sum + mesh.points[toSize(corner)];
            mesh.points.push_back((1.0 / static_cast<real>(corners.size())) * sum);
        }
        return it->second;
    };
    for (auto &cell : mesh.cells) {
        if (order == Order::Linear)
            break;
        const std::vector<index> corners = cell.nodes;
        cell.type = raised(cell.type, order);
        if (elementLayout(cell.type).order != 2)
            continue; // polygons and polyhedra
        const Geom::ReferenceTable &table = referenceTable(elementLayout(cell.type).shape);
        for (int e = 0; e < table.edges; e++)
            cell.nodes.push_back(between({corners[static_cast<std::size_t>(table.edge[e][0])],
                                          corners[static_cast<std::size_t>(table.edge[e][1])]}));
        if (order == Order::Serendipity)
            continue;
        for (int q = 0; q < table.quads; q++) {
            std::vector<index> around;
            for (int k = 0; k < 4; k++)
                around.push_back(corners[static_cast<std::size_t>(table.quad[q][k])]);
            cell.nodes.push_back(between(around));
        }
        if (cell.type == ElementType::Hexa27)
            cell.nodes.push_back(between(corners));
    }
    for (Point &point : mesh.points)
        point = map(point);
    return mesh;
}

} // namespace DNDS::test
