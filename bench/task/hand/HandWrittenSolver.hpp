/// @file HandWrittenSolver.hpp
/// @brief Steps of cases/euler, orchestrated by hand: what task graphs are compared with.
#pragma once

#include "Launch.hpp"
#include "Solver.hpp"
#include "StreamPair.hpp"

#include <optional>
#include <vector>

namespace HandWritten {

/// The same kernels, fields and results as Euler::Solver, with lists of inner and edge rows, two streams and captured
/// graphs. It has what a timed step needs and nothing else; functions that it shares with Euler::Solver are described
/// there.
class Solver {
  public:
    Solver(DNDS::Geom::UnstructuredMesh &mesh, DNDS::Geom::MeshMetrics &metrics, Euler::Gas gas,
           const Euler::Scheme &scheme, std::vector<Euler::BoundaryCondition> conditions);

    void setConserved(const DNDS::ParArray<real, Euler::variables> &conserved);
    real advance(real cfl, real longest);
    void advanceLocally(real cfl);
    const DNDS::ParArray<real, Euler::variables> &conserved() const;

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

    void classify();
    void findTurnedGhosts();
    void moveToDevice(DNDS::Geom::UnstructuredMesh &mesh, DNDS::Geom::MeshMetrics &metrics);
    template <class TArray>
    auto toRead(const TArray &array) const {
        return streams_ ? array.template deviceView<DNDS::DeviceBackend::CUDA>() : array.view();
    }
    template <class TArray>
    auto toWrite(TArray &array) {
        return streams_ ? array.template deviceView<DNDS::DeviceBackend::CUDA>() : array.view();
    }
    Views views();
    DNDS::Executor inner() const;
    DNDS::Executor boundary() const;
    template <class Kernel>
    void run(const DNDS::Executor &executor, const List &rows, const Kernel &kernel) {
        launch(executor, toRead(rows), kernel, views_);
    }
    template <class Work>
    void runPart(std::size_t part, const DNDS::Executor &executor, const Work &work);
    template <DNDS::rowsize width, class Inner, class Edge>
    void pullAround(Euler::Field<width> &field, const Inner &innerRows, const Edge &edgeRows);
    void update(const DNDS::Executor &executor, const List &cells, real keep);
    void runStage(std::size_t stage, real keep);
    void runStages();
    void computeTimeSteps();
    real smallestTimeStep();
    void begin(Part part, real number, bool ownLengths);

    const DNDS::Geom::UnstructuredMesh &mesh_;
    DNDS::Geom::MeshView view_;       ///< on the host
    DNDS::Geom::MeshView kernelMesh_; ///< in the memory space of kernels
    Euler::Gas gas_;
    Euler::Scheme scheme_;
    DNDS::Array<Euler::BoundaryCondition> conditions_;
    DNDS::Array<int> faceCondition_;
    DNDS::Array<real, DNDS::NonUniformSize> weights_;
    /// Own cells and their faces: those without ghosts, and the others.
    List allCells_, innerCells_, edgeCells_, innerFaces_, edgeFaces_;
    List turnedGhosts_;
    DNDS::Array<int> images_;
    DNDS::Array<real, 9> turns_;

    Euler::Field<Euler::variables> state_; ///< primitive
    Euler::Field<Euler::gradientWidth> gradient_;
    mutable DNDS::ParArray<real, Euler::variables> conserved_; ///< mutable: reading may bring values from the device
    DNDS::ParArray<real, Euler::variables> start_;
    DNDS::ParArray<real, 1> longest_;
    DNDS::Array<real, 2> length_; ///< on the host
    DNDS::Array<real, Euler::variables> flux_;
    Views views_; ///< views of a step
    /// None on the host. Last: graphs and streams go before the memory they use.
    mutable std::optional<StreamPair> streams_;
};

} // namespace HandWritten
