/// @file PlexMove.hpp
/// @brief The same mesh in PETSc's DMPlex, to be moved beside DNDS's.
#pragma once

#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"

#include <memory>
#include <span>
#include <string>

namespace DNDS::Bench {

/// A rank's part after a move, for comparison.
struct MovedPart {
    index cells = 0;  ///< ghosts included
    double field = 0; ///< the sum of a field over them
};

/// A mesh with faces and edges, whose cells are on the ranks where DNDS has them.
class PlexMove {
  public:
    virtual ~PlexMove() = default;
    /// Moves cells to `targets`, [own cells] ranks, adds a layer of ghosts by nodes, and moves fields of five doubles a
    /// cell, whose numbers are the cells' file numbers: one after the other, or all as one of more components. Frees
    /// its objects. Collective.
    virtual MovedPart move(std::span<const int> targets, bool together) = 0;
};

/// With so many fields; `source` has the nodes of `mesh` in blocks. Collective. Null in builds without PETSc.
std::unique_ptr<PlexMove> makePlexMove(const Geom::UnstructuredMesh &mesh, Geom::SourceMesh source, int fields);

/// Starts PETSc, as long as what this returns lives; does nothing in builds without it.
std::shared_ptr<void> startPetsc();

} // namespace DNDS::Bench
