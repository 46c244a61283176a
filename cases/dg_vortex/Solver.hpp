/// @file Solver.hpp
/// @brief A discontinuous Galerkin method of third order on curved cells, on tasks.
#pragma once

#include "Kernels.hpp"

#include "DNDS/Device/Stream.hpp"
#include "DNDS/Geom/Elements/ReferenceElement.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Task/Plan.hpp"

#include <optional>
#include <string>

namespace DgVortex {

/// The mesh and the flow. The same on all ranks.
struct Options {
    Geom::BoxCells fill = Geom::BoxCells::Quadrilaterals; ///< or Triangles
    index cells = 16;                                     ///< rectangles in each direction
    real bend = 0.3;       ///< displacement of nodes by the smooth map, in units of length
    bool shuffled = false; ///< numbered at random
    Vortex vortex{};
    bool device = false;
};

/// A periodic box of QUAD_9 or TRI_6 whose nodes a smooth map has moved, those of the sides too. Collective.
Geom::UnstructuredMesh bentMesh(DNDS::CommunicatorView comm, const Options &options);

/// Integrals over the box.
struct Integrals {
    real area = 0;
    real mass = 0;
    real error = 0; ///< the root of the mean square error of the density
};

/// The Euler equations in two dimensions (Cockburn and Shu, J. Sci. Comput. 16, 2001): in each cell the shape functions
/// of its own element times a state a node, so that polynomials are of second degree in reference coordinates; HLLC
/// fluxes between cells; SSP Runge-Kutta of third order.
///
/// States have the same bits on any number of ranks, on host and device: all sums follow the order of the file. A stage
/// pulls states of one layer of ghosts.
class Solver {
  public:
    /// Starts with the vortex in the middle. Collective. Throws NotBuiltError on all ranks if one has no device.
    Solver(DNDS::CommunicatorView comm, const Options &options);
    Solver(const Solver &) = delete; // plans know where fields are
    Solver &operator=(const Solver &) = delete;

    /// The time step for a CFL number; up to about 1 is stable. Collective. Throws DataError on all ranks for a state
    /// without one, after steps that were too long.
    real timeStep(real cfl);
    /// Collective, without waiting for all ranks.
    void advance(real dt, int steps);
    /// With the error against the vortex at `time`. Collective; exact sums.
    Integrals integrals(real time);

    const Geom::UnstructuredMesh &mesh() const { return mesh_; }
    const Geom::MeshMetrics &metrics() const { return metrics_; }
    /// [owned cells x width], on the host. Local.
    const DNDS::ParArray<real, width> &state();
    /// The tasks of a step, and what the library made of them: readable. Local.
    std::string describe() const { return step_->describe(); }

  private:
    using Table = DNDS::Array<TablePoint, 1>;

    void makeTables();
    void makeSides(const Geom::QuadratureView &rule);
    void invertMasses();
    void setVortex();
    MethodView methodView();
    void declareStep();
    void declareIntegrals();
    template <class TArray>
    auto constant(TArray &array);

    Options options_;
    Geom::UnstructuredMesh mesh_;
    Geom::MeshMetrics metrics_;
    Geom::FaceElements faces_;
    Geom::ElementType type_; ///< of all cells
    Table inCell_, fine_, onFace_, atFace_;
    DNDS::Array<int, 2> faceInCells_;
    DNDS::Array<real, maxNodes * maxNodes> inverseMass_;

    DNDS::ArrayPair<DNDS::ParArray<real, width>> u_;
    DNDS::Array<real, width> start_;
    DNDS::Array<real, variables * facePoints> flux_;
    DNDS::Array<real, 3> integrals_;
    DNDS::Task::Value<real> dt_{"dt"}, time_{"time"};
    std::optional<DNDS::Device::Stream> stream_; ///< none: on the host. Plans go before the memory they use.
    std::optional<DNDS::Task::Plan> step_, measure_;
    std::optional<DNDS::Task::Reduction> sums_;
};

} // namespace DgVortex
