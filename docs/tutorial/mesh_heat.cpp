// The program of docs/guides/meshes.md: heat flows through a mesh that is read from a file, or made.
//
//   mpiexec -n 3 mesh_heat [MESH [RESULT.vtkhdf]]
//
// It ends with exit code 0 only if no heat is lost.

#include "DNDS/Geom/Geom.hpp"

#include <fmt/core.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace {

namespace Geom = DNDS::Geom;
using DNDS::CommunicatorView;
using DNDS::Index;
using DNDS::LocalIndex;
using DNDS::real;
using Field = DNDS::ArrayPair<DNDS::ParArray<real, 1>>;

Geom::SourceMesh readOrMake(CommunicatorView world, const char *path) {
    if (path != nullptr)
        return Geom::readMesh(world, path);
    return Geom::makeBoxMesh({.fill = Geom::BoxCells::MixedVolume, .cells = {12, 6, 6}}, world);
}

/// How easily heat flows between two neighbours: area over distance.
real conductance(const Geom::MeshView &mesh, LocalIndex cell, LocalIndex other, LocalIndex face) {
    const real *a = mesh.centroids[cell];
    const real *b = mesh.centroids[other];
    return mesh.areas(face) / std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

/// Calls `visit(neighbour, conductance)` for all neighbours of a cell; the boundary is adiabatic.
template <class Visit>
void forEachNeighbour(const Geom::MeshView &mesh, LocalIndex cell, Visit &&visit) {
    Geom::forEachFaceOf(mesh, cell, [&](LocalIndex face, LocalIndex other, real /*sign*/) {
        if (other >= 0)
            visit(other, conductance(mesh, cell, other, face));
    });
}

/// A time step in which no cell gives away more than half of what it has. Collective.
real stableStep(const Geom::MeshView &mesh, CommunicatorView world) {
    real step = 1e300;
    for (LocalIndex cell = 0; cell < mesh.ownedCells; cell++) {
        real sum = 0;
        forEachNeighbour(mesh, cell, [&](LocalIndex, real weight) { sum += weight; });
        step = std::min(step, 0.5 * mesh.volumes(cell) / sum);
    }
    return world.allReduce(step, MPI_MIN);
}

/// One explicit step. Reads owned cells and ghosts of `heat`; `next` has owned cells alone.
void advance(const Geom::MeshView &mesh, const Field &heat, real step, std::vector<real> &next) {
    const auto u = heat.view();
    for (LocalIndex cell = 0; cell < mesh.ownedCells; cell++) {
        real flow = 0;
        forEachNeighbour(mesh, cell, [&](LocalIndex other, real weight) { flow += weight * (u(other) - u(cell)); });
        next[static_cast<std::size_t>(cell)] = u(cell) + step * flow / mesh.volumes(cell);
    }
}

/// The heat of all cells of all ranks; the same to the bit on any number of ranks. Collective.
real totalHeat(const Geom::MeshView &mesh, const Field &heat, CommunicatorView world) {
    std::vector<real> amounts;
    for (Index cell = 0; cell < mesh.ownedCells; cell++)
        amounts.push_back(mesh.volumes(cell) * heat.view()(cell));
    return DNDS::exactSum(world, amounts);
}

int run(DNDS::CommunicatorView world, int argc, char **argv) {
    using DNDS::Index;

    Geom::MeshReport report;
    const Geom::UnstructuredMesh mesh =
        Geom::buildMesh(world, readOrMake(world, argc > 1 ? argv[1] : nullptr), {.report = &report});
    const Geom::MeshMetrics metrics = Geom::computeMetrics(mesh);
    const Geom::MeshView view = Geom::viewOf(mesh, metrics);
    if (world.rank() == 0)
        for (const std::string &warning : report.warnings)
            fmt::print(stderr, "warning: {}\n", warning);

    // Owned cells have a row in the father; ghosts follow from who reads which cell, which the mesh knows.
    auto heat = mesh.field<1>("heat");
    const real middle = 0.5 * (report.lower[0] + report.upper[0]);
    for (Index cell = 0; cell < mesh.cells.owned; cell++)
        heat(cell, 0) = view.centroids(cell, 0) < middle ? 1 : 0;

    std::optional<Geom::MeshWriter> writer;
    if (argc > 2)
        writer.emplace(mesh, argv[2], Geom::MeshWriterOptions{.ranks = true});
    const real before = totalHeat(view, heat, world);
    const real step = stableStep(view, world);
    std::vector<real> next(static_cast<std::size_t>(mesh.cells.owned));
    for (int count = 0; count < 100; count++) {
        if (writer && count % 10 == 0)
            writer->writeStep(count * step, {.cells = {Geom::fieldOf("heat", heat)}});
        heat.trans.startPersistentPull();
        heat.trans.waitPersistentPull();
        advance(view, heat, step, next);
        std::copy(next.begin(), next.end(), heat.father->data());
    }
    if (writer)
        writer->close();

    const real after = totalHeat(view, heat, world);
    real hottest = 0;
    for (Index cell = 0; cell < mesh.cells.owned; cell++)
        hottest = std::max(hottest, heat(cell, 0));
    hottest = world.allReduce(hottest, MPI_MAX);
    if (world.rank() == 0)
        fmt::print("{} cells on {} ranks: heat {:.6f}, then {:.6f}; hottest cell {:.6f}\n", report.cellsTotal,
                   world.size(), before, after, hottest);
    return std::abs(after - before) <= 1e-10 * std::abs(before) ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
    return DNDS::runMain(argc, argv, [&](DNDS::CommunicatorView world) { return run(world, argc, argv); });
}
