// The second program of docs/guides/meshes.md: integrals over cells and over boundaries, which may be curved.
//
//   mpiexec -n 3 integrate [MESH]
//
// It ends with exit code 0 only if the divergence theorem holds.

#include "DNDS/Geom/Geom.hpp"

#include <fmt/core.h>

#include <cmath>

namespace {

namespace Geom = DNDS::Geom;
using DNDS::Index;
using DNDS::LocalIndex;
using DNDS::real;
using Geom::Point;

/// The integral of `f` over all cells of all ranks. Collective.
template <class F>
real overCells(const Geom::UnstructuredMesh &mesh, int degree, F &&f) {
    const Geom::QuadratureSet rules(degree);
    real sum = 0;
    for (Index cell = 0; cell < mesh.cells.owned; cell++) {
        const Geom::ElementType type = mesh.cellTypes[static_cast<std::size_t>(cell)];
        const Geom::ElementNodes nodes{mesh.coordinates.view(), mesh.cellNodes[cell]};
        const Geom::QuadratureView rule = rules.view()[Geom::elementLayout(type).shape];
        for (Index q = 0; q < rule.size(); q++) {
            const Geom::MappedPoint x = Geom::mapPoint(Geom::shapeFunctions(type, rule.point(q)), nodes);
            sum += rule.weight(q) * x.measure() * f(x.position);
        }
    }
    return mesh.comm.allReduce(sum, MPI_SUM);
}

/// The flow of the vector field `f` out of a patch of a three-dimensional mesh. Collective.
template <class F>
real through(const Geom::UnstructuredMesh &mesh, const Geom::MeshPatch &patch, int degree, F &&f) {
    const Geom::QuadratureSet rules(degree);
    const Geom::FaceElements faces = Geom::faceElements(mesh);
    real sum = 0;
    for (const LocalIndex face : patch.ownFaces()) {
        const Geom::ElementType type = faces.types[static_cast<std::size_t>(face)];
        const Geom::ElementNodes nodes{mesh.coordinates.view(), faces.nodes[face]};
        const Geom::QuadratureView rule = rules.view()[Geom::elementLayout(type).shape];
        for (Index q = 0; q < rule.size(); q++) {
            const Geom::MappedPoint x = Geom::mapPoint(Geom::shapeFunctions(type, rule.point(q)), nodes);
            sum += rule.weight(q) * Geom::dot(f(x.position), x.areaVector());
        }
    }
    return mesh.comm.allReduce(sum, MPI_SUM);
}

int run(DNDS::CommunicatorView world, int argc, char **argv) {
    const Geom::UnstructuredMesh mesh = Geom::buildMesh(
        world, argc > 1 ? Geom::readMesh(world, argv[1])
                        : Geom::makeBoxMesh({.fill = Geom::BoxCells::MixedVolume, .cells = {8, 4, 4}}, world));
    const real divergence = overCells(mesh, 5, [](const Point &x) { return 2 * x[0]; });
    real flow = 0;
    for (const Geom::MeshPatch &patch : mesh.patches)
        flow += through(mesh, patch, 6, [](const Point &x) { return Point{x[0] * x[0], 0, 0}; });
    const Geom::MeshMetrics metrics = Geom::computeMetrics(mesh, {.curved = true});
    real volume = 0;
    for (Index cell = 0; cell < mesh.cells.owned; cell++)
        volume += metrics.volumes(cell, 0);
    volume = world.allReduce(volume, MPI_SUM);
    if (world.rank() == 0)
        fmt::print("volume {:.6f}; divergence of (x^2, 0, 0) {:.6f}, its flow out {:.6f}\n", volume, divergence, flow);
    return std::fabs(divergence - flow) < 1e-10 * volume ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
    return DNDS::runMain(argc, argv, [&](DNDS::CommunicatorView world) { return run(world, argc, argv); });
}
