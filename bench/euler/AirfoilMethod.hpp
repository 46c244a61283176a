/// @file AirfoilMethod.hpp
/// @brief The small solver, whichever way its loops and messages are written.
#pragma once

#include "AirfoilFlow.hpp"

#include "DNDS/Geom/Mesh/MeshView.hpp"

#include <memory>
#include <span>

namespace DNDS::Bench {

class AirfoilMethod {
  public:
    virtual ~AirfoilMethod() = default;
    /// The flow at the start. Local.
    virtual void reset() = 0;
    /// Collective over the ranks of the mesh. Returns this rank's sum of squared changes of the last stage.
    virtual double iterate(int iterations) = 0;
    /// Rows of owned cells: [owned][rowWidth].
    virtual std::span<const double> rows() = 0;
};

/// Walls of a mesh: its boundary faces in patch "y-". The others are far field.
AirfoilSide sideOf(const Geom::UnstructuredMesh &mesh, LocalIndex face);

/// Raw arrays, raw loops, persistent messages; as one would write it for quadrilaterals in a plane: normals of two
/// numbers, four faces a cell, faces sorted into those without and with ghosts.
std::unique_ptr<AirfoilMethod> makeAirfoilByHand(const Geom::UnstructuredMesh &mesh, const Geom::MeshMetrics &metrics,
                                                 const AirfoilFlow &flow);
/// Functors over MeshView and array views, ArrayPair and its pull; nothing is known about the mesh.
std::unique_ptr<AirfoilMethod> makeAirfoilDnds(const Geom::UnstructuredMesh &mesh, const Geom::MeshMetrics &metrics,
                                               const AirfoilFlow &flow);

} // namespace DNDS::Bench
