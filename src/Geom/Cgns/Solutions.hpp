/// @file Solutions.hpp
/// @brief Reads the solutions of a CGNS file, each rank the values of its nodes and cells.
#pragma once

#include "DNDS/Geom/Cgns/NodeJoin.hpp"
#include "DNDS/Geom/Source/MeshSlice.hpp"

namespace DNDS::Geom::Cgns {

/// Reads all fields of the whole mesh; `mesh.warnings` says what is left out. `nodes` are those of the file, joined,
/// and `mesh` is complete. Merged nodes have the value of the first of them. Collective. Throws DataError on all ranks
/// if values cannot be read.
MeshFields readSolutions(CommunicatorView comm, const Model &model, const NodeBlock &nodes, SourceMesh &mesh,
                         TreeSource &source);

} // namespace DNDS::Geom::Cgns
