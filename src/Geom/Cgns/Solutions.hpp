/// @file Solutions.hpp
/// @brief Reads the solutions of a CGNS file, each rank the values of its nodes and cells.
#pragma once

#include "DNDS/Geom/Cgns/NodeJoin.hpp"
#include "DNDS/Geom/Source/MeshFields.hpp"

namespace DNDS::Geom::Cgns {

/// Reads all fields that the whole mesh has; says in `mesh.warnings` what is left out. `nodes` are those of the file,
/// joined, and `mesh` is complete. Nodes that became one have the value of the first of them. Collective. Throws
/// DataError on all ranks where values cannot be read.
MeshFields readSolutions(CommunicatorView comm, const Model &model, const NodeBlock &nodes, SourceMesh &mesh,
                         NodeSource &source);

} // namespace DNDS::Geom::Cgns
