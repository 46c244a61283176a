// The second program of docs/guides/tasks.md: gradients, fluxes, update, with pulls beside the work.
//
//   mpiexec -n 2 task_gradient
//
// It ends with exit code 0 only if computing ghosts again changes no bit.

#include "DNDS/Geom/Geom.hpp"
#include "DNDS/Task/Graph.hpp"

#include <fmt/core.h>

#include <cmath>
#include <utility>
#include <vector>

namespace {

namespace Geom = DNDS::Geom;
namespace Task = DNDS::Task;
using DNDS::Index;
using DNDS::LocalIndex;
using DNDS::real;

/// By Gauss' theorem; at the boundary from the cell's own value.
struct GradientKernel {
    Geom::MeshView mesh;

    template <class Read, class Write>
    void operator()(Index cell, const Read &u, const Write &gradient) const {
        real sum[2] = {};
        Geom::forEachFaceOf(mesh, cell, [&](Index face, Index other, real sign) {
            const real mean = other >= 0 ? 0.5 * (u(cell) + u(other)) : u(cell);
            for (int d = 0; d < 2; d++)
                sum[d] += sign * mean * mesh.areaVectors(face, d);
        });
        for (int d = 0; d < 2; d++)
            gradient(cell, d) = sum[d] / mesh.volumes(cell);
    }
};

/// What flows through a face by diffusion: nothing at the boundary.
struct FluxKernel {
    Geom::MeshView mesh;

    template <class Gradient, class Write>
    void operator()(Index face, const Gradient &gradient, const Write &flux) const {
        const LocalIndex first = mesh.faceCells(face, 0), second = mesh.faceCells(face, 1);
        flux(face) = 0;
        for (int d = 0; d < 2 && second >= 0; d++)
            flux(face) -= 0.5 * (gradient(first, d) + gradient(second, d)) * mesh.areaVectors(face, d);
    }
};

struct UpdateKernel {
    Geom::MeshView mesh;
    real step;

    template <class Flux, class State>
    void operator()(Index cell, const Flux &flux, const State &u) const {
        real sum = 0;
        Geom::forEachFaceOf(mesh, cell, [&](Index face, Index, real sign) { sum += sign * flux(face); });
        u(cell) -= step * sum / mesh.volumes(cell);
    }
};

class Solver {
  public:
    Solver(const Geom::UnstructuredMesh &mesh, const Geom::MeshMetrics &metrics)
        : mesh_(mesh), view_(Geom::viewOf(mesh, metrics)), flux_("flux", mesh.comm) {
        attach(u_, "u");
        attach(gradient_, "gradient");
        flux_.resize(mesh.faces.size());
    }

    Task::Plan compile(Task::CompileOptions::Recompute recompute) {
        Task::Graph step("step", mesh_.comm);
        step.task("gradient", mesh_.cells)
            .reads(Task::around(u_, mesh_.cellCells))
            .writes(gradient_)
            .run(GradientKernel{view_});
        step.task("flux", mesh_.faces)
            .reads(Task::through(gradient_, mesh_.faceCells))
            .writes(flux_)
            .run(FluxKernel{view_});
        step.task("update", mesh_.cells)
            .reads(Task::through(flux_, mesh_.cellFaces))
            .readsWrites(u_)
            .run(UpdateKernel{view_, 1e-4});
        return step.compile(DNDS::Executor::host(), {.recompute = recompute});
    }

    /// The field after 100 runs from the same start.
    std::vector<real> run(Task::Plan &plan) {
        for (Index cell = 0; cell < mesh_.cells.owned; cell++)
            u_(cell, 0) = std::sin(7 * view_.centroids(cell, 0)) * std::cos(5 * view_.centroids(cell, 1));
        for (int i = 0; i < 100; i++)
            plan.run();
        return {u_.father->data(), u_.father->data() + mesh_.cells.owned};
    }

  private:
    template <class Field>
    void attach(Field &field, const char *name) {
        field.initPair(name, mesh_.comm);
        field.father->resize(mesh_.cells.owned);
        Geom::attachField(field, mesh_.cells);
    }

    const Geom::UnstructuredMesh &mesh_;
    Geom::MeshView view_;
    DNDS::ArrayPair<DNDS::ParArray<real, 1>> u_;
    DNDS::ArrayPair<DNDS::ParArray<real, 2>> gradient_;
    DNDS::ParArray<real, 1> flux_; // a row for each local face, and no pulls
};

int run(DNDS::CommunicatorView world) {
    const Geom::BoxMeshOptions square{.fill = Geom::BoxCells::Quadrilaterals, .cells = {40, 40}};
    const Geom::UnstructuredMesh mesh = Geom::buildMesh(
        world, Geom::makeBoxMesh(square, world),
        {.ghostsBy = Geom::GhostNeighbours::Faces, .ghostLayers = 2, .cellOrder = Geom::CellOrder::Curve});
    const Geom::MeshMetrics metrics = Geom::computeMetrics(mesh);
    Solver solver(mesh, metrics);

    using Recompute = Task::CompileOptions::Recompute;
    Task::Plan pulling = solver.compile(Recompute::Never);
    Task::Plan recomputing = solver.compile(Recompute::WherePossible);
    if (world.rank() == 0)
        fmt::print("{}", pulling.describe());
    const std::vector<real> pulled = solver.run(pulling);
    const std::vector<real> recomputed = solver.run(recomputing);
    const bool same = world.allReduce(pulled == recomputed ? 1 : 0, MPI_MIN) != 0;
    if (world.rank() == 0)
        fmt::print("pulling: {} pulls; recomputing: {} pulls, {} bits\n", pulling.statistics().transfers,
                   recomputing.statistics().transfers, same ? "the same" : "other");
    return same ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) { return DNDS::runMain(argc, argv, run); }
