/// @file Solver.hpp
/// @brief The finite-volume method on one rank's part of a mesh: fields, exchanges, time steps.
#pragma once

#include "Launch.hpp"
#include "StreamPair.hpp"

#include "DNDS/Geom/Mesh/MeshMetrics.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace Euler {

enum class TimeScheme : unsigned char { SspRk2, SspRk3 };

struct Scheme {
    FluxScheme flux = FluxScheme::Hllc;
    real entropyFix = 0.1;
    GradientScheme gradient = GradientScheme::LeastSquares;
    LimiterChoice limiter;
    TimeScheme time = TimeScheme::SspRk3;
    bool overlap = true; ///< compute while ghosts travel; results are the same
    /// Residuals, forces and totals are exact sums: the same bits on any number of ranks. States are so anyway.
    bool reproducible = true;
    bool device = false; ///< compute there: the same functors, the same order of sums
    bool graphs = true;  ///< on the device, replay steps from graphs
};

/// Seconds of this rank, and what it pulled.
///
/// On the device, where kernels run while the host goes on, `compute` is what the host spends on starting kernels and
/// on waiting for them, and `wait` is waiting for ghosts behind all kernels that a pull packs for: nothing of it while
/// kernels that need no ghosts still run at the end of the pull, all of it otherwise.
struct SolverTimes {
    double compute = 0;
    double start = 0; ///< of pulls
    double wait = 0;  ///< for ghosts, late peers included
    index pulls = 0;
    std::size_t bytesSent = 0;
    std::size_t bytesReceived = 0;
    index cellStages = 0; ///< cells times stages computed
};

/// Cell-centred, second order. State variables are pulled and, while they travel, gradients computed in cells that need
/// no ghost; limited gradients are pulled while fluxes between own cells are computed. Nothing else is exchanged.
///
/// Results are the same to the bit for any number of ranks: all sums follow the order of faces in the file. (Those over
/// all cells do not if the scheme is not to be reproducible.)
///
/// On the device (`Scheme::device`) fields stay there from `setState` on; the host sees them when it asks for them, and
/// time steps, residuals, forces and totals are sums made there. What needs ghosts is computed, packed and pulled on a
/// stream of high priority, all else beside it on another. All kernels of a step are replayed from graphs: those of a
/// stage from four, between which the host starts pulls and waits for them; those of all stages from one where no rows
/// come from other ranks.
class Solver {
  public:
    /// Collective. `conditions` is [patches of the mesh]. Mesh and metrics must outlive the solver; ghosts are needed
    /// in one layer, by faces; on the device they are copied there. Throws ArgumentError on all ranks for meshes of
    /// curved surfaces, NotBuiltError on all ranks where a device is asked for and one of them has none.
    Solver(DNDS::Geom::UnstructuredMesh &mesh, DNDS::Geom::MeshMetrics &metrics, Gas gas, const Scheme &scheme,
           std::vector<BoundaryCondition> conditions);

    /// Sets own cells by their centroids. Local.
    void setState(const std::function<Primitive(Vector)> &flow);
    /// Sets own cells to conserved amounts that `conserved` has had, behind a step. Local.
    void setConserved(const ParArray<real, variables> &conserved);

    /// One step for all cells: by `cfl`, but at most `longest`. Collective. Returns its length. Throws DataError on all
    /// ranks where a cell has no density or pressure any more, naming the cell.
    real advance(real cfl, real longest);
    /// One step with time steps of each cell's own, towards a steady flow. Local but for pulls.
    void advanceLocally(real cfl);
    /// Throws DataError on all ranks where a cell has no density or pressure any more. Collective.
    void checkState();

    /// Root mean squares of the changes in a unit of time, at the start of the last stage computed. Collective.
    std::array<real, variables> residual() const;
    /// The force of the pressure beyond `reference` on the faces of `patches`, at the same time. Collective.
    Vector force(const std::vector<int> &patches, real reference) const;
    /// The integral of conserved amounts. Collective.
    std::array<real, variables> total() const;

    /// Fields of own cells, on the host.
    const ParArray<real, variables> &state() const { return fetched(*state_.father); }
    const ParArray<real, variables> &conserved() const { return fetched(conserved_); }
    /// Limited; of the last stage computed.
    const ParArray<real, gradientWidth> &gradient() const { return fetched(*gradient_.father); }
    /// The pressure at boundary faces at the start of the last stage. Local.
    std::vector<real> wallPressures(std::span<const index> faces) const;

    const SolverTimes &times() const noexcept { return times_; }
    /// How steps are started on the device; nothing on the host.
    std::optional<GraphUse> graphUse() const { return streams_ ? std::optional(streams_->use()) : std::nullopt; }
    /// Whom the pulls of a stage reach, and how; both pulls one after the other. Local.
    std::vector<DNDS::PeerPath> pullPaths() const;
    /// Of the fields of this rank, ghosts included. Local.
    std::size_t bytes() const;
    /// Seconds that the pulls of one stage take when nothing is computed meanwhile: the mean of some. Collective.
    double timePulls(int repetitions);

  private:
    using List = DNDS::Array<index>;

    /// Parts of a step on the device. Those of the second stage follow those of the first, and so on.
    enum Part : std::size_t {
        Bound,        ///< the longest time step
        BeginAlike,   ///< a step of one length
        BeginLocally, ///< a step of lengths of its own in each cell
        Stages,       ///< all of them, where they are one part
        InnerGradients,
        EdgeGradients,
        InnerUpdate,
        EdgeUpdate,
        EndOfStage
    };

    /// Faces that forces are summed over.
    struct ForceFaces {
        bool found = false;
        std::vector<int> patches;
        List faces;
        DNDS::Array<real, 3> forces;
    };

    void classify();
    void findTurnedGhosts();
    void moveToDevice(DNDS::Geom::UnstructuredMesh &mesh, DNDS::Geom::MeshMetrics &metrics);
    /// Makes the host's copy current, after what the device is doing.
    template <class TArray>
    const TArray &fetched(TArray &array) const {
        finish();
        array.toHost();
        return array;
    }
    void finish() const;
    void takeToHost();
    void takeToDevice();

    /// What kernels see of an array.
    template <class TArray>
    auto toRead(const TArray &array) const {
        return streams_ ? array.template deviceView<DNDS::DeviceBackend::CUDA>() : array.view();
    }
    template <class TArray>
    auto toWrite(TArray &array) const {
        return streams_ ? array.template deviceView<DNDS::DeviceBackend::CUDA>() : array.view();
    }
    DNDS::Executor inner() const;
    DNDS::Executor boundary() const;
    /// All elements of what a view shows.
    template <class View>
    static auto elementsOf(const View &view) {
        return std::span(view.data(), static_cast<std::size_t>(view.size() * view.rowSize()));
    }
    /// Runs a kernel for each row of a list.
    template <class Kernel>
    void run(const DNDS::Executor &executor, const List &rows, const Kernel &kernel) const {
        launch(executor, toRead(rows), kernel);
    }
    template <class Work>
    void runPart(std::size_t part, const DNDS::Executor &executor, const Work &work);
    template <rowsize width, class Inner, class Edge>
    void pullAround(Field<width> &field, const Inner &innerRows, const Edge &edgeRows);
    template <rowsize width>
    void awaitGhosts(Field<width> &field);
    void runStage(std::size_t stage, real keep);
    void runAllStages();
    void runStages();
    void makeHostStale();
    GradientKernel gradientKernel();
    FluxKernel fluxKernel();
    RateKernel rateKernel() const;
    UpdateKernel updateKernel(real keep);
    void computeTimeSteps() const;
    real smallestTimeStep() const;
    void begin(Part part, real number, bool ownLengths);
    index firstImpossibleCell() const;
    void findForceFaces(const std::vector<int> &patches) const;
    void sumColumns(std::span<const real> rows, std::span<real> sums) const;

    const DNDS::Geom::UnstructuredMesh &mesh_;
    DNDS::Geom::MeshView view_;       ///< on the host
    DNDS::Geom::MeshView kernelMesh_; ///< where kernels run
    Gas gas_;
    Scheme scheme_;
    DNDS::Array<BoundaryCondition> conditions_;
    DNDS::Array<int> faceCondition_;
    DNDS::Array<real, DNDS::NonUniformSize> weights_;
    /// Own cells and their faces: those that need no ghosts, and the others.
    List allCells_, innerCells_, edgeCells_, innerFaces_, edgeFaces_;
    List turnedGhosts_, turnedRows_; ///< rows of the sons that are turned, and 0, 1, ...
    DNDS::Array<real, 9> turns_;

    Field<variables> state_; ///< primitive
    Field<gradientWidth> gradient_;
    mutable ParArray<real, variables> conserved_; ///< mutable: reading may bring values from the device
    /// Conserved, at the start of a step. Between steps room for rows to be summed.
    mutable ParArray<real, variables> start_;
    mutable ParArray<real, 1> timeStep_; ///< the same
    mutable DNDS::Array<real, variables> flux_;
    mutable ForceFaces forceFaces_;               ///< those that were asked for last
    real volume_ = 0;                             ///< of all ranks
    std::size_t rowsSent_ = 0, rowsReceived_ = 0; ///< by each pull, in either field
    mutable SolverTimes times_;
    /// None on the host. Last: graphs and streams go before the memory they use.
    mutable std::optional<StreamPair> streams_;
};

} // namespace Euler
