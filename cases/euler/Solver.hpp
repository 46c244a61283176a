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
    bool overlap = true; ///< compute during pulls; results are the same
    /// Residuals, forces and totals are exact sums: the same bits on any number of ranks. States always are.
    bool reproducible = true;
    bool device = false; ///< compute on the device: the same functors, the same order of sums
    bool graphs = true;  ///< on the device, replay steps from graphs
};

/// Seconds of this rank, and its pulls.
///
/// On the device, `compute` is the host's time for starting kernels and waiting for them, and `wait` the time waiting
/// for ghosts after the kernels that a pull packs for: 0 while kernels without ghosts still run at the end of the pull,
/// all of it otherwise.
struct SolverTimes {
    double compute = 0;
    double start = 0; ///< of pulls
    double wait = 0;  ///< for ghosts, late peers included
    index pulls = 0;
    std::size_t bytesSent = 0;
    std::size_t bytesReceived = 0;
    index cellStages = 0; ///< cells times stages computed
};

/// Cell-centred, second order. States are pulled while gradients are computed in cells without ghosts; limited
/// gradients are pulled while fluxes between own cells are computed. Nothing else is exchanged.
///
/// Results have the same bits for any number of ranks: all sums follow the order of faces in the file. (Except sums
/// over all cells if `Scheme::reproducible` is off.)
///
/// On the device (`Scheme::device`) fields stay there from `setState` on and are copied to the host on request; time
/// steps, residuals, forces and totals are summed there. Work that needs ghosts is computed, packed and pulled on a
/// stream of high priority, everything else concurrently on another. All kernels of a step are replayed from graphs:
/// four per stage, between which the host starts pulls and waits for them; one for all stages if no rows come from
/// other ranks.
class Solver {
  public:
    /// Collective. `conditions` is [patches of the mesh]. Mesh and metrics must outlive the solver; the mesh needs one
    /// layer of ghosts, by faces; on the device they are copied there. Throws ArgumentError on all ranks for meshes of
    /// curved surfaces, NotBuiltError on all ranks if a device is requested and one of them has none.
    Solver(DNDS::Geom::UnstructuredMesh &mesh, DNDS::Geom::MeshMetrics &metrics, Gas gas, const Scheme &scheme,
           std::vector<BoundaryCondition> conditions);

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

    const SolverTimes &times() const noexcept { return times_; }
    /// How steps are started on the device; empty on the host.
    std::optional<GraphUse> graphUse() const { return streams_ ? std::optional(streams_->use()) : std::nullopt; }
    /// The peers and transports of a stage's pulls; both pulls one after the other. Local.
    std::vector<DNDS::PeerPath> pullPaths() const;
    /// Of the fields of this rank, ghosts included. Local.
    std::size_t bytes() const;
    /// Seconds that the pulls of one stage take without overlap: a mean. Collective.
    double timePulls(int repetitions);

  private:
    using List = DNDS::Array<index>;

    /// Parts of a step on the device. Those of the second stage follow those of the first, and so on.
    enum Part : std::size_t {
        Bound,        ///< the longest time step
        BeginAlike,   ///< one time step for all cells
        BeginLocally, ///< local time steps
        Stages,       ///< all of them, if they are one part
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
    /// Makes the host's copy current, after the device's queued work.
    template <class TArray>
    const TArray &fetched(TArray &array) const {
        finish();
        array.toHost();
        return array;
    }
    void finish() const;
    void takeToHost();
    void takeToDevice();

    /// The view of an array for kernels.
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
    /// All elements of a view.
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
    /// Own cells and their faces: those without ghosts, and the others.
    List allCells_, innerCells_, edgeCells_, innerFaces_, edgeFaces_;
    List turnedGhosts_, turnedRows_; ///< son rows that are rotated, and 0, 1, ...
    DNDS::Array<real, 9> turns_;

    Field<variables> state_; ///< primitive
    Field<gradientWidth> gradient_;
    mutable ParArray<real, variables> conserved_; ///< mutable: reading may bring values from the device
    /// Conserved variables at the start of a step. Between steps, scratch for rows to be summed.
    mutable ParArray<real, variables> start_;
    mutable ParArray<real, 1> timeStep_; ///< the same
    mutable DNDS::Array<real, variables> flux_;
    mutable ForceFaces forceFaces_;               ///< those used last
    real volume_ = 0;                             ///< of all ranks
    std::size_t rowsSent_ = 0, rowsReceived_ = 0; ///< by each pull, in either field
    mutable SolverTimes times_;
    /// None on the host. Last: graphs and streams go before the memory they use.
    mutable std::optional<StreamPair> streams_;
};

} // namespace Euler
