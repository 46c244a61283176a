/// @file MeshStep.hpp
/// @brief A step of a finite-volume method with cheap kernels, as a plan and by hand.
#pragma once

#include "HandPull.hpp"

#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Task/Graph.hpp"

#include <memory>
#include <vector>

namespace DNDS::Bench {

/// A square of about so many quadrilaterals, with two layers of ghosts.
struct SquareMesh {
    Geom::UnstructuredMesh mesh;
    Geom::MeshMetrics metrics;
    /// Collective.
    SquareMesh(CommunicatorView comm, index cells);
};

/// Gradients of a state in cells, fluxes on faces from states, gradients and a material, and the new state. The
/// material is never written: its ghosts stay current. The mesh must outlive it.
class MeshStep {
  public:
    /// Collective.
    explicit MeshStep(const SquareMesh &square);
    MeshStep(const MeshStep &) = delete;

    /// Collective.
    Task::Plan compile(const Executor &executor, const Task::CompileOptions &options);
    /// How a step without task graphs pulls.
    enum class Pulls : unsigned char {
        Persistent, ///< the library's persistent pulls
        Mpi,        ///< persistent MPI by hand
        None        ///< not at all: the work alone, with old ghosts
    };
    /// One step without task graphs: with pulls beside rows that read no ghosts, or pulls and then all rows.
    /// Collective.
    void advanceByHand(bool overlap, Pulls by = Pulls::Persistent);
    /// The work that overlaps with the first and the second pull. Local.
    void innerGradients();
    void innerFluxes();

    /// The start.
    void reset();
    /// [own cells]
    std::vector<real> state() const;

  private:
    void byHandUpdate();
    void byHandGradients(std::span<const index> cells);
    void byHandFluxes(std::span<const LocalIndex> faces);

    const Geom::UnstructuredMesh &mesh_;
    Geom::MeshView view_;
    ArrayPair<ParArray<real, 1>> u_, material_;
    ArrayPair<ParArray<real, 2>> gradient_;
    ParArray<real, 1> flux_;
    Communicator mpi_; ///< of the two pulls by hand
    std::unique_ptr<HandPull> stateByMpi_, gradientByMpi_;
    std::vector<LocalIndex> innerFaces_, edgeFaces_; ///< faces of own cells
};

} // namespace DNDS::Bench
