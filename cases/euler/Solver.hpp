/// @file Solver.hpp
/// @brief The finite-volume method on one rank's part of a mesh: fields, exchanges, time steps.
#pragma once

#include "StepKernels.hpp"

#include "DNDS/Device/Algorithms.hpp"
#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Task/Plan.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace DNDS {
template <int b>
class SparseMatrix;
namespace Task {
class Graph;
class RowSpace;
} // namespace Task
} // namespace DNDS

namespace Euler {

enum class TimeScheme : unsigned char { SspRk2, SspRk3 };

struct Scheme {
    FluxScheme flux = FluxScheme::Hllc;
    real entropyFix = 0.1;
    GradientScheme gradient = GradientScheme::LeastSquares;
    LimiterChoice limiter;
    TimeScheme time = TimeScheme::SspRk3;
    bool overlap = true; ///< compute during pulls; results are the same
    int threads = 1;     ///< threads of a rank, on the host; results are the same
    /// Residuals, forces and totals are exact sums: the same bits on any number of ranks. States always are.
    bool reproducible = true;
    bool device = false; ///< compute on the device: the same functors, the same order of sums
    bool graphs = true;  ///< on the device, replay steps from graphs
};

/// Stages of a step.
inline int stagesOf(const Scheme &scheme) { return scheme.time == TimeScheme::SspRk2 ? 2 : 3; }

/// Seconds of this rank, and its pulls.
///
/// On the device, `compute` is the host's time for starting kernels and waiting for them, and `wait` the time waiting
/// for messages and for the kernels that a pull packs for.
struct SolverTimes {
    double compute = 0;
    double start = 0; ///< start of pulls
    double wait = 0;  ///< for ghosts, late peers included
    index pulls = 0;
    std::size_t bytesSent = 0;
    std::size_t bytesReceived = 0;
    index stages = 0;
};

/// Cell-centred, second order. A step is a task graph (`declareStages`), which pulls states while gradients are
/// computed in cells without ghosts, and limited gradients while fluxes between own cells are computed. Nothing else is
/// exchanged.
///
/// Results have the same bits for any number of ranks: all sums follow the order of faces in the file. (Except sums
/// over all cells if `Scheme::reproducible` is off.)
///
/// On the device (`Scheme::device`) fields stay there from the first step on and are copied to the host on request;
/// time steps, residuals, forces and totals are summed there. Steps are replayed from graphs.
class Solver {
  public:
    /// Collective. `conditions` is [patches of the mesh]. Mesh and metrics must outlive the solver; the mesh needs one
    /// layer of ghosts, by faces; on the device they are copied there. Throws ArgumentError on all ranks for meshes of
    /// curved surfaces, NotBuiltError on all ranks if a device is requested and one of them has none.
    Solver(DNDS::Geom::UnstructuredMesh &mesh, DNDS::Geom::MeshMetrics &metrics, Gas gas, const Scheme &scheme,
           std::vector<BoundaryCondition> conditions);
    Solver(const Solver &) = delete; // plans know where fields are
    Solver &operator=(const Solver &) = delete;

    /// Sets own cells by their centroids. Local.
    void setState(const std::function<Primitive(Vector)> &flow);
    /// Sets own cells to `conserved`, as returned after a step. Local.
    void setConserved(const ParArray<real, variables> &conserved);

    /// One step for all cells: by `cfl`, but at most `longest`. Collective. Returns its length. Throws DataError on all
    /// ranks if a cell no longer has positive density and pressure, naming the cell.
    real advance(real cfl, real longest);
    /// One step with local time steps, towards a steady flow. Local except for pulls.
    void advanceLocally(real cfl);
    /// Throws DataError on all ranks if a cell no longer has positive density and pressure. Collective.
    void checkState();

    // For implicit steps, on the host.

    /// A change of the conserved variables to try, [owned cells x variables]: set it, then call the functions below.
    DNDS::Array<real, variables> &change() { return trial_->change; }
    const DNDS::Array<real, variables> &change() const { return trial_->change; }
    /// Makes `change` available. Collective.
    void prepareTrials();
    /// Rates of change, [owned cells x variables], of the flow with `conserved() + share * change()`. State, residual
    /// and force are of that flow then, until the next call or step. Local except for pulls.
    const DNDS::Array<real, variables> &ratesWith(real share);
    /// Adds share * change() to the conserved variables; the state is that of the last `ratesWith`. Local.
    void accept(real share);
    /// The time steps that CFL number 1 allows cells in the state as it is, [owned cells]. Local.
    const DNDS::Array<real, 1> &longestTimeSteps();
    /// Sets a matrix of the pattern of `cellCells` to the derivatives of the rates of change by the conserved
    /// variables, in the state of the last `ratesWith`, without gradients: a scheme of first order with the same
    /// fluxes. Entries have the same bits on any number of ranks. Local, O(faces).
    void setJacobian(DNDS::SparseMatrix<variables> &matrix) const;

    /// Root mean squares of the rates of change, at the start of the last stage computed. Collective.
    std::array<real, variables> residual() const;
    /// The force of the pressure minus `reference` on the faces of `patches`, at the same time. Collective.
    Vector force(const std::vector<int> &patches, real reference) const;
    /// The integral of the conserved variables. Collective.
    std::array<real, variables> total() const;

    /// Fields of own cells, on the host.
    const ParArray<real, variables> &state() const { return fetched(*state_.father); }
    const ParArray<real, variables> &conserved() const { return fetched(conserved_); }
    /// Limited; of the last stage computed.
    const ParArray<real, gradientWidth> &gradient() const { return fetched(*gradient_.father); }
    /// The pressure at boundary faces at the start of the last stage. Local.
    std::vector<real> wallPressures(std::span<const index> faces) const;

    /// Of all steps so far, and those of a solver that this one replaces. Local.
    SolverTimes times() const;
    void continueTimes(const SolverTimes &before) { before_ = before; }
    /// The use of device graphs; empty on the host.
    std::optional<DNDS::Task::PlanGraphs> graphUse() const;
    /// The tasks of a step and the library's plan of them, readable. Local.
    std::string describeStep() const { return stages_->describe(); }
    /// The peers and transports of a stage's pulls; both pulls one after the other. Local.
    std::vector<DNDS::PeerPath> pullPaths() const;
    /// Of the fields of this rank, ghosts included. Local.
    std::size_t bytes() const;
    /// Seconds that the pulls of one stage take without overlap: a mean. Collective.
    double timePulls(int repetitions);

  private:
    using Plan = DNDS::Task::Plan;

    /// Faces that forces are summed over.
    struct ForceFaces {
        std::vector<int> patches;
        real reference = 0;
        DNDS::Array<LocalIndex> faces;
        DNDS::Array<real, 3> forces;
        std::optional<Plan> plan;
    };

    /// Flows beside the one that the steps have reached.
    struct Trial {
        DNDS::Array<real, variables> change, rates;
        DNDS::Array<real, 1> share; ///< [1]
        std::optional<Plan> plan;
    };

    void findConditions(const std::vector<BoundaryCondition> &conditions);
    void findTurnedGhosts();
    /// The view of an array that no task writes, for kernels.
    template <class TArray>
    auto constant(TArray &array) const {
        if (device_)
            array.toDevice();
        return device_ ? std::as_const(array).template deviceView<DNDS::DeviceBackend::CUDA>()
                       : std::as_const(array).view();
    }
    DNDS::Executor executor() const {
        return device_ ? DNDS::Executor::device(device_->stream) : DNDS::Executor::hostThreads(scheme_.threads);
    }
    Plan compile(const DNDS::Task::Graph &graph) const;
    void declareTurns(DNDS::Task::Graph &graph, DNDS::Task::RowSpace &cells);
    void declareFluxes(DNDS::Task::Graph &graph, const DNDS::Task::RowSpace &cells, const DNDS::Task::RowSpace &faces);
    Plan declareStages();
    Plan declareTrial(Trial &trial);
    Plan declareTimeSteps();
    Plan declareResidual() const;
    Plan declareTotal() const;
    Plan declareForces(ForceFaces &faces) const;
    Plan declarePulls();
    /// Makes the host's copy current, after the device's queued work.
    template <class TArray>
    const TArray &fetched(TArray &array) const {
        finish();
        array.toHost();
        return array;
    }
    void finish() const { stages_->wait(); }
    /// The elements of all rows, where kernels run.
    template <class TArray>
    std::span<const real> elementsOf(const TArray &array) const {
        const auto view = device_ ? array.template deviceView<DNDS::DeviceBackend::CUDA>() : array.view();
        return {view.data(), static_cast<std::size_t>(view.size() * view.rowSize())};
    }
    real smallestTimeStep() const;
    void runStages(real number, bool alike);
    index firstImpossibleCell() const;
    ForceFaces &forceFaces(const std::vector<int> &patches, real reference) const;
    template <class TArray, std::size_t count>
    std::array<real, count> sumColumns(const TArray &rows) const;

    const DNDS::Geom::UnstructuredMesh &mesh_;
    DNDS::Geom::MeshView view_;       ///< on the host
    DNDS::Geom::MeshView kernelMesh_; ///< in the memory space of kernels
    Gas gas_;
    Scheme scheme_;
    DNDS::Array<BoundaryCondition> conditions_;
    DNDS::Array<int> faceCondition_;
    DNDS::Array<real, DNDS::NonUniformSize> weights_;
    std::vector<index> turnedGhosts_; ///< cells in rotated images
    DNDS::Array<int> images_;         ///< [cells]
    DNDS::Array<real, 9> turns_;      ///< [images]

    mutable Field<variables> state_; ///< primitive; mutable: reading may bring values from the device
    mutable Field<gradientWidth> gradient_;
    mutable ParArray<real, variables> conserved_;
    /// Conserved variables at the start of a step. Between steps, scratch for rows to be summed.
    mutable DNDS::Array<real, variables> start_;
    mutable DNDS::Array<real, 1> timeStep_; ///< time step for CFL number 1
    DNDS::Array<real, 2> length_;           ///< length of steps: see StepLength
    mutable DNDS::Array<real, variables> flux_;
    real volume_ = 0; ///< volume over all ranks
    index stagesDone_ = 0;
    SolverTimes before_;
    /// Additional state of a solver on the device. Streams and plans go before the memory they use.
    struct OnDevice {
        explicit OnDevice(index cells) : minimum(cells) {}
        DNDS::Device::Minimum minimum;
        DNDS::Device::DeviceBuffer<real> smallest{1};
        DNDS::Device::Stream stream;
    };
    mutable std::optional<OnDevice> device_;
    mutable std::optional<Plan> timeSteps_, stages_, residual_, total_;
    mutable std::unique_ptr<ForceFaces> forceFaces_; ///< those used last
    std::unique_ptr<Trial> trial_;
};

} // namespace Euler
