// The computations of a solver, as graphs of tasks.

#include "Solver.hpp"

#include "DNDS/Task/Graph.hpp"

namespace Euler {

using DNDS::Task::around;
using DNDS::Task::Graph;
using DNDS::Task::owned;
using DNDS::Task::RowSpace;
using DNDS::Task::through;
using DNDS::Task::whole;

Solver::Plan Solver::compile(const Graph &graph) const {
    DNDS::Task::CompileOptions options;
    options.overlap = scheme_.overlap;
    options.graphs = scheme_.graphs;
    return graph.compile(executor(), options);
}

/// Ghosts in rotated images are turned after each pull.
void Solver::declareTurns(Graph &graph, RowSpace &cells) {
    const GhostTurns turns{constant(images_), constant(turns_)};
    const auto turned = cells.define("ghosts in rotated images", turnedGhosts_);
    graph.finishPulls(state_, turned, TurnStateKernel{turns});
    graph.finishPulls(gradient_, turned, TurnGradientKernel{turns});
}

/// From states to fluxes.
void Solver::declareFluxes(Graph &graph, const RowSpace &cells, const RowSpace &faces) {
    const auto faceCondition = constant(faceCondition_);
    const auto conditions = constant(conditions_);
    graph.task("gradient", cells)
        .reads(around(state_, mesh_.cellCells))
        .writes(gradient_)
        .run(GradientKernel{kernelMesh_, constant(weights_), faceCondition, conditions, gas_, scheme_.limiter,
                            mesh_.dimension});
    graph.task("flux", faces)
        .reads(through(state_, mesh_.faceCells), through(gradient_, mesh_.faceCells))
        .writes(flux_)
        .run(FluxKernel{kernelMesh_, faceCondition, conditions, gas_, scheme_.flux, scheme_.entropyFix,
                        mesh_.dimension});
}

/// All stages of a step.
Solver::Plan Solver::declareStages() {
    // The weight of the state at the start of the step in each stage.
    static constexpr std::array<real, 2> second{0, 1.0 / 2};
    static constexpr std::array<real, 3> third{0, 3.0 / 4, 1.0 / 3};
    const std::span<const real> keeps = scheme_.time == TimeScheme::SspRk2 ? std::span<const real>(second) : third;
    Graph graph("stages", mesh_.comm);
    mesh_.comm.guarded([&] {
        RowSpace cells("cells", mesh_.cells), faces("faces", mesh_.faces);
        declareTurns(graph, cells);
        for (const real keep : keeps) {
            declareFluxes(graph, cells, faces);
            auto update = graph.task("update", cells).reads(through(flux_, mesh_.cellFaces), timeStep_, whole(length_));
            if (keep == 0)
                std::move(update)
                    .writes(start_)
                    .readsWrites(conserved_)
                    .writes(state_)
                    .run(FirstUpdateKernel{kernelMesh_, gas_});
            else
                std::move(update)
                    .reads(start_)
                    .readsWrites(conserved_)
                    .writes(state_)
                    .run(UpdateKernel{kernelMesh_, gas_, keep});
        }
    });
    return compile(graph);
}

/// The rates of change of a flow beside the one that the steps have reached.
Solver::Plan Solver::declareTrial(Trial &trial) {
    Graph graph("trial", mesh_.comm);
    mesh_.comm.guarded([&] {
        RowSpace cells("cells", mesh_.cells), faces("faces", mesh_.faces);
        declareTurns(graph, cells);
        graph.task("trial state", cells)
            .reads(conserved_, trial.change, whole(trial.share))
            .writes(state_)
            .run(TrialKernel{gas_});
        declareFluxes(graph, cells, faces);
        graph.task("rate", cells)
            .reads(through(flux_, mesh_.cellFaces))
            .writes(trial.rates)
            .run(RateKernel{kernelMesh_});
    });
    return compile(graph);
}

/// The longest time step of each cell.
Solver::Plan Solver::declareTimeSteps() {
    Graph graph("time steps", mesh_.comm);
    mesh_.comm.guarded([&] {
        graph.task("time step", mesh_.cells).reads(state_).writes(timeStep_).run(TimeStepKernel{kernelMesh_, gas_});
    });
    return compile(graph);
}

Solver::Plan Solver::declareResidual() const {
    Graph graph("residual", mesh_.comm);
    mesh_.comm.guarded([&] {
        graph.task("squares", mesh_.cells)
            .reads(through(flux_, mesh_.cellFaces))
            .writes(start_)
            .run(ResidualKernel{kernelMesh_});
    });
    return compile(graph);
}

Solver::Plan Solver::declareTotal() const {
    Graph graph("total", mesh_.comm);
    mesh_.comm.guarded(
        [&] { graph.task("amounts", mesh_.cells).reads(conserved_).writes(start_).run(AmountKernel{kernelMesh_}); });
    return compile(graph);
}

Solver::Plan Solver::declareForces(ForceFaces &faces) const {
    Graph graph("force", mesh_.comm);
    mesh_.comm.guarded([&] {
        graph.task("force", RowSpace("faces of forces", faces.faces.size()))
            .reads(owned(flux_))
            .writes(faces.forces)
            .run(ForceKernel{kernelMesh_, constant(faces.faces), faces.reference});
    });
    return compile(graph);
}

namespace {
struct NothingKernel {
    template <class Rows>
    DNDS_HOST_DEVICE void operator()(index /*row*/, const Rows & /*rows*/) const {}
};
} // namespace

/// The pulls of a stage, and nothing else.
Solver::Plan Solver::declarePulls() {
    Graph graph("pulls", mesh_.comm);
    mesh_.comm.guarded([&] {
        const RowSpace none("no rows", 0);
        graph.task("after states", none).reads(whole(state_)).run(NothingKernel{});
        graph.task("after gradients", none).reads(whole(gradient_)).run(NothingKernel{});
    });
    DNDS::Task::CompileOptions options;
    options.dropPulls = false;
    return graph.compile(executor(), options);
}

} // namespace Euler
