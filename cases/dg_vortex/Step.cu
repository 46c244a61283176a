// The step of the method as a graph of tasks.

#include "Solver.hpp"

#include "DNDS/Task/Graph.hpp"

namespace DgVortex {

namespace Task = DNDS::Task;

/// The view of an array that no task writes, where kernels run.
template <class TArray>
auto Solver::constant(TArray &array) {
    if (stream_)
        array.toDevice();
    return stream_ ? std::as_const(array).template deviceView<DNDS::DeviceBackend::CUDA>()
                   : std::as_const(array).template deviceView<DNDS::DeviceBackend::Host>();
}

/// For the place where steps are computed.
MethodView Solver::methodView() {
    if (stream_)
        Geom::toDevice(mesh_, metrics_);
    return {stream_ ? Geom::viewOf<DNDS::DeviceBackend::CUDA>(mesh_, metrics_) : Geom::viewOf(mesh_, metrics_),
            constant(faces_.nodes),
            constant(faceInCells_),
            constant(inverseMass_),
            constant(inCell_),
            constant(onFace_),
            constant(atFace_)};
}

void Solver::declareStep() {
    Task::Graph step("step", mesh_.comm);
    mesh_.comm.guarded([&] {
        const MethodView method = methodView();
        step.task("start", mesh_.cells).reads(u_).writes(start_).run(StartKernel{});
        for (const real keep : {0.0, 3.0 / 4, 1.0 / 3}) {
            step.task("flux", mesh_.faces)
                .reads(Task::through(u_, mesh_.faceCells))
                .writes(flux_)
                .run(FaceKernel{method});
            step.task("update", mesh_.cells)
                .reads(Task::through(flux_, mesh_.cellFaces), start_, dt_)
                .readsWrites(u_)
                .run(StageKernel{method, keep});
        }
    });
    step_ = step.compile(stream_ ? DNDS::Executor::device(*stream_) : DNDS::Executor::host());
}

} // namespace DgVortex
