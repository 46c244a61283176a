// The program of docs/start/first_solver.md: a flow carries a bump once around the middle of a square.
//   mpiexec -n 4 advection [RESULT.vtkhdf [MESH]]

#include "DNDS/Geom/Geom.hpp"
#include "DNDS/Task/Graph.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <vector>

namespace Geom = DNDS::Geom;
namespace Task = DNDS::Task;
using DNDS::real;

/// What is carried, at the start; and at time 1, when the flow has turned once.
static real bump(const real *x) {
    const real r = std::hypot(x[0] - 0.5, x[1] - 0.7) / 0.3;
    return r < 1 ? 0.5 + 0.5 * std::cos(std::numbers::pi * r) : 0;
}

class Advection {
    using Index = DNDS::Index;

  public:
    DNDS::ArrayPair<DNDS::ParArray<real, 1>> u;

    Advection(const Geom::UnstructuredMesh &whole, const Geom::MeshMetrics &metrics)
        : u(whole.field<1>("u")), mesh(Geom::viewOf(whole, metrics)), gradient(whole.field<2>("gradient")),
          start("start", whole.comm), rate("rate", whole.comm), leaving("leaving", whole.comm) {
        for (auto *array : {&start, &rate, &leaving})
            array->resize(mesh.ownedCells);
        for (Index cell = 0; cell < mesh.ownedCells; cell++)
            u(cell, 0) = bump(mesh.centroids[cell]);
        plan.emplace(compile(whole));
    }
    Advection(const Advection &) = delete; // tasks know where it is

    /// One step of Heun's method. Collective.
    void advance(real length) {
        step = length;
        plan->run();
    }

    /// The largest share of an own cell that leaves it in a unit of time, of the last step.
    real quickest() const {
        real most = 0;
        for (Index cell = 0; cell < mesh.ownedCells; cell++)
            most = std::max(most, leaving(cell, 0));
        return most;
    }

  private:
    /// By Gauss' theorem, from the means of both cells at each face; at the boundary from the cell's own value.
    void computeGradient(Index cell, const auto &value, const auto &slope) const {
        real sum[2] = {};
        Geom::forEachFaceOf(mesh, cell, [&](Index face, Index other, real sign) {
            const real mean = other >= 0 ? 0.5 * (value(cell) + value(other)) : value(cell);
            for (int d = 0; d < 2; d++)
                sum[d] += sign * mean * mesh.areaVectors(face, d);
        });
        for (int d = 0; d < 2; d++)
            slope(cell, d) = sum[d] / mesh.volumes(cell);
    }

    /// The velocity is 2 pi (0.5 - y, x - 0.5). Each face carries the value of the upstream cell; the inflow from
    /// outside is zero.
    void computeRate(Index cell, const auto &value, const auto &slope, const auto &change, const auto &lost) const {
        real sum = 0, outflow = 0;
        Geom::forEachFaceOf(mesh, cell, [&](Index face, Index other, real sign) {
            const real *x = mesh.faceCentres[face];
            const real *area = mesh.areaVectors[face];
            const real out = 2 * std::numbers::pi * sign * ((0.5 - x[1]) * area[0] + (x[0] - 0.5) * area[1]);
            const Index from = out > 0 ? cell : other;
            outflow += std::max(0.0, out);
            if (from >= 0)
                sum -= out * (value(from) + slope(from, 0) * (x[0] - mesh.centroids(from, 0)) +
                              slope(from, 1) * (x[1] - mesh.centroids(from, 1)));
        });
        change(cell) = sum / mesh.volumes(cell);
        lost(cell) = outflow / mesh.volumes(cell);
    }

    /// A step of Heun's method as tasks. Collective.
    Task::Plan compile(const Geom::UnstructuredMesh &whole) {
        Task::Graph heun("Heun's method", whole.comm);
        heun.task("start", whole.cells).reads(u).writes(start).run([](Index cell, const auto &now, const auto &kept) {
            kept(cell) = now(cell);
        });
        for (const real weight : {0.0, 0.5}) {
            heun.task("gradient", whole.cells)
                .reads(Task::around(u, whole.cellCells))
                .writes(gradient)
                .run([this](Index cell, const auto &value, const auto &slope) { computeGradient(cell, value, slope); });
            heun.task("rate", whole.cells)
                .reads(Task::around(u, whole.cellCells), Task::around(gradient, whole.cellCells))
                .writes(rate, leaving)
                .run([this](Index cell, const auto &...rows) { computeRate(cell, rows...); });
            heun.task("update", whole.cells)
                .reads(start, rate)
                .readsWrites(u)
                .run([this, weight](Index cell, const auto &first, const auto &change, const auto &value) {
                    value(cell) = weight * first(cell) + (1 - weight) * (value(cell) + step * change(cell));
                });
        }
        return heun.compile();
    }

    Geom::MeshView mesh;
    DNDS::ArrayPair<DNDS::ParArray<real, 2>> gradient;
    DNDS::ParArray<real, 1> start, rate, leaving; // [own cells]
    real step = 0;
    std::optional<Task::Plan> plan;
};

int run(DNDS::CommunicatorView world, int argc, char **argv) {
    const Geom::BoxMeshOptions square{.fill = Geom::BoxCells::Quadrilaterals, .cells = {50, 50}};
    const Geom::UnstructuredMesh mesh =
        Geom::buildMesh(world, argc > 2 ? Geom::readMesh(world, argv[2]) : Geom::makeBoxMesh(square, world),
                        {.ghostsBy = Geom::GhostNeighbours::Faces});
    const Geom::MeshMetrics metrics = Geom::computeMetrics(mesh);
    Advection solver(mesh, metrics);
    std::optional<Geom::MeshWriter> writer;
    if (argc > 1)
        writer.emplace(mesh, argv[1], Geom::MeshWriterOptions{.ranks = true});
    solver.advance(0); // a step of length 0 computes the rates
    const int steps = static_cast<int>(std::ceil(2 * world.allReduce(solver.quickest(), MPI_MAX)));
    for (int step = 0; step <= steps; step++) {
        if (writer && 3 * step % steps < 3) // four times
            writer->writeStep(1.0 * step / steps, {.cells = {Geom::fieldOf("u", solver.u)}});
        if (step < steps)
            solver.advance(1.0 / steps);
    }
    if (writer)
        writer->close();

    std::vector<real> rows; // volume times the square of the error
    for (DNDS::Index cell = 0; cell < mesh.cells.owned; cell++)
        rows.push_back(metrics.volumes(cell) * std::pow(solver.u(cell, 0) - bump(metrics.centroids[cell]), 2));
    const real error = std::sqrt(DNDS::exactSum(world, rows));
    if (world.rank() == 0)
        fmt::print("{} ranks, {} steps: error {:.6f}\n", world.size(), steps, error);
    return error < 0.02 ? 0 : 1;
}

int main(int argc, char **argv) {
    return DNDS::runMain(argc, argv, [&](DNDS::CommunicatorView world) { return run(world, argc, argv); });
}
