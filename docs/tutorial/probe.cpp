// The third program of docs/guides/meshes.md: values along a line, and distances to a wall.
//
//   mpiexec -n 3 probe [MESH PATCH]
//
// It ends with exit code 0 only if the line's values and the distances are right.

#include "DNDS/Geom/Geom.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace {

namespace Geom = DNDS::Geom;
using DNDS::Index;
using DNDS::real;
using Geom::Point;

/// Prints a field of one number a cell along a line through the middle; returns the largest error where the field is x.
real alongLine(const Geom::UnstructuredMesh &mesh, const Geom::MeshReport &report) {
    const Geom::MeshMetrics metrics = Geom::computeMetrics(mesh);
    auto u = mesh.field<1>("u");
    auto gradients = mesh.field<3>("gradients");
    for (Index cell = 0; cell < mesh.cells.owned; cell++) {
        u(cell, 0) = metrics.centroids(cell, 0);
        gradients(cell, 0) = 1;
    }
    const auto [x0, y0, z0] = report.lower;
    const auto [x1, y1, z1] = report.upper;
    const Point from{x0, 0.5 * (y0 + y1), 0.5 * (z0 + z1)};
    const Point to{x1, from[1], from[2]};
    std::vector<Point> points; // rank 0 asks for all of them, the others for none
    if (mesh.comm.rank() == 0)
        points = Geom::pointsOnLine(from, to, 5);
    Geom::Probe line(Geom::PointLocator(mesh), points);
    const std::vector<real> steps = line.cellValues(u);                        // of the cell: steps
    const std::vector<real> values = line.linearValues(u, gradients, metrics); // linear in each cell
    real error = 0;
    for (std::size_t i = 0; i < points.size(); i++) {
        fmt::print("x {:.3f}: cell {}, value of the cell {:.3f}, linear {:.3f}\n", points[i][0],
                   line.locations()[i].number, steps[i], values[i]);
        error = line.locations()[i].found() ? std::max(error, std::fabs(values[i] - points[i][0])) : error;
    }
    return mesh.comm.allReduce(error, MPI_MAX);
}

int run(DNDS::CommunicatorView world, int argc, char **argv) {
    Geom::MeshReport report;
    const Geom::UnstructuredMesh mesh =
        Geom::buildMesh(world,
                        argc > 2 ? Geom::readMesh(world, argv[1])
                                 : Geom::makeBoxMesh({.fill = Geom::BoxCells::MixedVolume, .cells = {8, 4, 4}}, world),
                        {.report = &report});
    const real error = alongLine(mesh, report);

    const Geom::WallDistance walls(mesh, {argc > 2 ? argv[2] : "y-"});
    real least = 1e300;
    real most = 0;
    for (const real distance : walls.ofCells(Geom::computeMetrics(mesh))) {
        least = std::min(least, distance);
        most = std::max(most, distance);
    }
    least = world.allReduce(least, MPI_MIN);
    most = world.allReduce(most, MPI_MAX);
    if (world.rank() == 0)
        fmt::print("cells are {:.4f} to {:.4f} from the wall\n", least, most);
    return error < 1e-12 && least > 0 && std::isfinite(most) ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
    return DNDS::runMain(argc, argv, [&](DNDS::CommunicatorView world) { return run(world, argc, argv); });
}
