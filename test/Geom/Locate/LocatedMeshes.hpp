/// @file LocatedMeshes.hpp
/// @brief For tests only: meshes of all types of cells, and points in them.
#pragma once

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "Geom/Build/WholeMesh.hpp"
#include "Geom/Elements/ElementTypes.hpp"
#include "Geom/Mesh/CurvedMeshes.hpp"
#include "support/MpiTest.hpp"

#include <random>
#include <string>
#include <vector>

namespace DNDS::Geom::test {

using DNDS::test::BoxOptions;
using DNDS::test::curve;
using DNDS::test::makeBox;
using DNDS::test::Order;
using DNDS::test::pointsInside;
using DNDS::test::WholeMesh;

/// Bends a box of 4 x 3 x 3, a plane stays one.
inline Point bent(const Point &p) {
    return {p[0] + 0.1 * p[1] * p[1], p[1] - 0.05 * p[0] * p[0], p[2] + 0.06 * p[0] * p[2]};
}

struct NamedMesh {
    std::string name;
    WholeMesh whole;
};

/// Boxes of 4 x 3 x 3 of all types of cells with shape functions, and of polygons and polyhedra.
inline std::vector<NamedMesh> meshesOfAllTypes() {
    using Cells = DNDS::test::BoxCells;
    std::vector<NamedMesh> meshes;
    const auto same = [](const Point &p) { return p; };
    for (const auto &[name, cells] : {std::pair{"hexahedra", Cells::Hexahedra},
                                      {"tetrahedra", Cells::Tetrahedra},
                                      {"mixed", Cells::Mixed},
                                      {"polyhedra", Cells::Polyhedra},
                                      {"quadrilaterals", Cells::Quadrilaterals},
                                      {"triangles", Cells::Triangles},
                                      {"polygons", Cells::Polygons}}) {
        const BoxOptions options{.cells = cells, .counts = {4, 3, 3}};
        meshes.push_back({name, curve(makeBox(options), Order::Linear, same)});
        const bool mixed = cells == Cells::Mixed; // has hexahedra, too
        BoxOptions straight = options;
        straight.jitter = false;
        straight.turnSome = false;
        if (mixed || cells == Cells::Tetrahedra || cells == Cells::Triangles || cells == Cells::Quadrilaterals)
            meshes.push_back({std::string("curved ") + name, curve(makeBox(straight), Order::Complete, bent)});
        if (mixed || cells == Cells::Quadrilaterals)
            meshes.push_back({std::string("serendipity ") + name, curve(makeBox(straight), Order::Serendipity, bent)});
    }
    return meshes;
}

/// The positions of the nodes of cells, each once: flat boxes have others, too.
inline std::vector<Point> positionsOf(const WholeMesh &whole) {
    std::vector<bool> used(whole.points.size(), false);
    for (std::size_t cell = 0; cell < whole.cells.size(); cell++)
        for (const index node : whole.nodesOf(cell))
            used[toSize(node)] = true;
    std::vector<Point> points;
    for (std::size_t node = 0; node < used.size(); node++)
        if (used[node])
            points.push_back(whole.points[node]);
    return points;
}

/// The number of a cell in the file.
inline index numberOf(const UnstructuredMesh &mesh, index cell) { return mesh.cells.fileNumbers[toSize(cell)]; }

inline UnstructuredMesh build(CommunicatorView comm, const WholeMesh &whole) {
    return buildMesh(comm, whole.slice(comm), {.partitioner = Partitioner::Curve});
}

/// Random points in a box, the same on all ranks.
inline std::vector<Point> randomPoints(std::size_t count, const Point &lower, const Point &upper) {
    std::mt19937_64 random(DNDS::test::seed());
    std::vector<Point> points(count);
    for (Point &point : points)
        for (std::size_t d = 0; d < 3; d++)
            point[d] = std::uniform_real_distribution<real>(lower[d], upper[d])(random);
    return points;
}

} // namespace DNDS::Geom::test
