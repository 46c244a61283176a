// The third program of docs/guides/tasks.md: sums over faces, an image with a jump, a call; in one thread, in two, on a
// device. Compiled by nvcc in builds with CUDA, else by the C++ compiler.
//
//   mpiexec -n 2 task_sums
//
// It ends with exit code 0 only if all come to the same bits.

#include "DNDS/Device/Stream.hpp"
#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "DNDS/Mpi/RunMain.hpp"
#include "DNDS/Task/Graph.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace {

namespace Geom = DNDS::Geom;
namespace Task = DNDS::Task;
using DNDS::Index;
using DNDS::LocalIndex;
using DNDS::real;
using Field = DNDS::ArrayPair<DNDS::ParArray<real, 1>>;

struct ClearKernel {
    template <class Write>
    DNDS_HOST_DEVICE void operator()(Index cell, const Write &residual) const {
        residual(cell) = 0;
    }
};

/// Adds what flows through a face to both of its cells.
struct FlowKernel {
    Geom::MeshView mesh;

    template <class Read, class Sums>
    DNDS_HOST_DEVICE void operator()(Index face, const Read &potential, const Sums &residual) const {
        const LocalIndex first = mesh.faceCells(face, 0), second = mesh.faceCells(face, 1);
        if (second < 0)
            return;
        const real flow = potential(second) - potential(first);
        residual.add(first, flow);
        residual.add(second, -flow);
    }
};

struct RelaxKernel {
    template <class Potential, class Residual, class Write>
    DNDS_HOST_DEVICE void operator()(Index cell, const Potential &potential, const Residual &residual,
                                     const Write &next) const {
        next(cell) = potential(cell) + 0.2 * residual(cell);
    }
};

/// The potential rises by 1 from one period to the next.
struct JumpKernel {
    const real *jumps; // [cells]

    template <class Change>
    DNDS_HOST_DEVICE void operator()(Index cell, const Change &potential) const {
        potential(cell) += jumps[cell];
    }
};

/// Where tasks run, and the mesh as they see it there.
struct Place {
    DNDS::Executor executor;
    Geom::MeshView mesh;
    const real *jumps;
};

class Solver {
  public:
    explicit Solver(const Geom::UnstructuredMesh &mesh) : mesh_(mesh) {
        for (Field *field : {&potential_, &next_, &residual_}) {
            field->initPair(field == &potential_ ? "potential" : field == &next_ ? "next" : "residual", mesh.comm);
            field->father->resize(mesh.cells.owned);
            Geom::attachField(*field, mesh.cells);
        }
    }

    Task::Plan compile(const Place &place) {
        Task::RowSpace cells("cells", mesh_.cells);
        std::vector<Index> beyond;
        for (Index cell = mesh_.cells.owned; cell < mesh_.cells.size(); cell++)
            if (mesh_.cells.images[static_cast<std::size_t>(cell)] != 0)
                beyond.push_back(cell);
        const Task::Region images = cells.define("images", beyond);

        Task::Graph step("relaxation", mesh_.comm);
        step.finishPulls(potential_, images, JumpKernel{place.jumps});
        step.task("clear", cells).writes(residual_).run(ClearKernel{});
        step.task("flow", mesh_.faces)
            .reads(Task::through(potential_, mesh_.faceCells))
            .adds(Task::through(residual_, mesh_.faceCells))
            .run(FlowKernel{place.mesh});
        step.task("relax", cells).reads(potential_, residual_).writes(next_).run(RelaxKernel{});
        step.swap(potential_, next_);
        step.call("watch").reads(Task::owned(potential_)).run([this](const auto &potential) {
            highest_ = -1e300;
            for (Index cell = 0; cell < mesh_.cells.owned; cell++)
                highest_ = std::max(highest_, potential(cell));
        });
        return step.compile(place.executor);
    }

    /// The field after 50 runs from the same start.
    std::vector<real> run(Task::Plan plan, const Geom::MeshMetrics &metrics) {
        for (Index cell = 0; cell < mesh_.cells.owned; cell++)
            potential_(cell, 0) = metrics.centroids(cell, 0) > 0.5 ? 1 : 0;
        for (int i = 0; i < 50; i++)
            plan.run();
        potential_.toHost();
        return {potential_.father->data(), potential_.father->data() + mesh_.cells.owned};
    }

    real highest() const { return highest_; } ///< of the own cells, after the last run

  private:
    const Geom::UnstructuredMesh &mesh_;
    Field potential_, next_, residual_;
    real highest_ = 0;
};

int run(DNDS::CommunicatorView world) {
    const Geom::BoxMeshOptions ring{
        .fill = Geom::BoxCells::Quadrilaterals, .cells = {32, 8}, .periodic = {true, false, false}};
    Geom::UnstructuredMesh mesh = Geom::buildMesh(world, Geom::makeBoxMesh(ring, world));
    Geom::MeshMetrics metrics = Geom::computeMetrics(mesh);
    DNDS::ParArray<real, 1> jumps("jumps", world);
    jumps.resize(mesh.cells.size());
    for (Index cell = 0; cell < mesh.cells.size(); cell++)
        jumps(cell, 0) = std::round(mesh.images[DNDS::toSize(mesh.cells.images[DNDS::toSize(cell)])].motion.shift[0]);

    Solver solver(mesh);
    const auto onHost = [&](const DNDS::Executor &executor) {
        return Place{executor, Geom::viewOf(mesh, metrics), std::as_const(jumps).data()};
    };
    const std::vector<real> one = solver.run(solver.compile(onHost(DNDS::Executor::host())), metrics);
    bool same = solver.run(solver.compile(onHost(DNDS::Executor::hostThreads(2))), metrics) == one;
    const DNDS::real highest = world.allReduce(solver.highest(), MPI_MAX);
    if (DNDS::Device::available()) {
        const DNDS::Device::Stream stream;
        Geom::toDevice(mesh, metrics);
        jumps.toDevice();
        const Place place{DNDS::Executor::device(stream), Geom::viewOf<DNDS::DeviceBackend::CUDA>(mesh, metrics),
                          std::as_const(jumps).deviceView<DNDS::DeviceBackend::CUDA>().data()};
        same = solver.run(solver.compile(place), metrics) == one && same;
    }
    same = world.allReduce(same ? 1 : 0, MPI_MIN) != 0;
    if (world.rank() == 0)
        fmt::print("highest potential {:.4f}, {}\n", highest, same ? "the same everywhere" : "different bits");
    return same ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) { return DNDS::runMain(argc, argv, run); }
