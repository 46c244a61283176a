// Heat in a mesh, by explicit finite volumes: a program to begin with.
//
//   mpiexec -n 2 solver [MESH [RESULT.vtkhdf]]
//
// Ends with exit code 0 only if no heat is lost.

#include "DNDS/Geom/Geom.hpp"
#include "DNDS/Task/Graph.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace Geom = DNDS::Geom;
namespace Task = DNDS::Task;
using DNDS::real;

/// Visits the neighbours of a cell, each with the conductance of the face between: area over distance.
static void forEachNeighbour(const Geom::MeshView &mesh, DNDS::Index cell, auto &&visit) {
    Geom::forEachFaceOf(mesh, cell, [&](DNDS::Index face, DNDS::Index other, real /*sign*/) {
        if (other < 0)
            return; // the boundary is adiabatic; mesh.facePatches(face) says which part of it this is
        const real *a = mesh.centroids[cell];
        const real *b = mesh.centroids[other];
        visit(other, mesh.areas(face) / std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]));
    });
}

static int run(DNDS::CommunicatorView world, int argc, char **argv) {
    const Geom::BoxMeshOptions square{.fill = Geom::BoxCells::Triangles, .cells = {40, 40}};
    const Geom::UnstructuredMesh mesh =
        Geom::buildMesh(world, argc > 1 ? Geom::readMesh(world, argv[1]) : Geom::makeBoxMesh(square, world),
                        {.ghostsBy = Geom::GhostNeighbours::Faces});
    const Geom::MeshMetrics metrics = Geom::computeMetrics(mesh);
    const Geom::MeshView cells = Geom::viewOf(mesh, metrics);

    // A field has a row for each cell of this rank and for each ghost. The first cells are hot.
    auto heat = mesh.field<1>("heat");
    auto next = mesh.field<1>("next");
    real step = 1e300; // in which no cell loses more than half of its content
    for (DNDS::Index cell = 0; cell < mesh.cells.owned; cell++) {
        heat(cell, 0) = cells.centroids(cell, 0) < 0.3 ? 1 : 0;
        real sum = 0;
        forEachNeighbour(cells, cell, [&](DNDS::Index, real weight) { sum += weight; });
        step = std::min(step, 0.5 * cells.volumes(cell) / sum);
    }
    step = world.allReduce(step, MPI_MIN);

    // One step, as a task that declares its reads and writes. The plan pulls ghosts while inner cells are computed.
    Task::Graph graph("step", world);
    graph.task("diffuse", mesh.cells)
        .reads(Task::around(heat, mesh.cellCells))
        .writes(next)
        .run([cells, step](DNDS::Index cell, const auto &now, const auto &later) {
            real flow = 0;
            forEachNeighbour(cells, cell,
                             [&](DNDS::Index other, real weight) { flow += weight * (now(other) - now(cell)); });
            later(cell) = now(cell) + step * flow / cells.volumes(cell);
        });
    graph.swap(heat, next);
    Task::Plan plan = graph.compile();

    const auto total = [&] { // the same to the bit on any number of ranks
        std::vector<real> amounts;
        for (DNDS::Index cell = 0; cell < mesh.cells.owned; cell++)
            amounts.push_back(cells.volumes(cell) * heat(cell, 0));
        return DNDS::exactSum(world, amounts);
    };
    std::optional<Geom::MeshWriter> writer;
    if (argc > 2)
        writer.emplace(mesh, argv[2], Geom::MeshWriterOptions{.ranks = true});
    const real before = total();
    constexpr int steps = 200;
    for (int count = 0; count < steps; count++) {
        if (writer && count % 20 == 0)
            writer->writeStep(count * step, {.cells = {Geom::fieldOf("heat", heat)}});
        plan.run();
    }
    if (writer)
        writer->close();

    const real after = total();
    if (world.rank() == 0)
        fmt::print("{} steps on {} ranks: heat {:.12f}, then {:.12f}\n", steps, world.size(), before, after);
    return std::abs(after - before) <= 1e-10 * std::abs(before) ? 0 : 1;
}

int main(int argc, char **argv) {
    return DNDS::runMain(argc, argv, [&](DNDS::CommunicatorView world) { return run(world, argc, argv); });
}
