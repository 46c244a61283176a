/// @file BuildMesh.hpp
/// @brief Builds a partitioned mesh with ghosts from the blocks of a reader.
#pragma once

#include "DNDS/Geom/Build/MeshOptions.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"

namespace DNDS::Geom {

/// Checks, partitions and distributes a mesh, finds faces and ghosts, and numbers everything for fast exchange.
/// Collective. Consumes `source`.
///
/// All ranks share all steps, in memory proportional to their blocks of the source and their parts of the mesh. Errors,
/// the same on all ranks: those of `checkSource` and `orientCells`; DataError for faces of three cells and for more
/// cells, faces or nodes on a rank than 32 bits can number; ArgumentError for options out of range; MemoryError if a
/// rank runs out of memory (see `failTogether`). The report warns of doubtful but usable properties.
UnstructuredMesh buildMesh(CommunicatorView comm, SourceMesh &&source, const MeshOptions &options = {});

} // namespace DNDS::Geom
