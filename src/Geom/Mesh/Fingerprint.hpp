/// @file Fingerprint.hpp
/// @brief A number that identifies the mesh of a checkpoint.
#pragma once

#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"

#include <cstdint>

namespace DNDS::Geom {

/// A number for the cells and nodes of a mesh, their positions in the file, how they are connected, and where nodes
/// are: the same on all ranks, and for any number of ranks, any partition and any local order of one mesh. Another
/// mesh, another order of the file, or moved nodes have another one (but for one case in 2^64; it is no protection
/// against malice). To be given to `CheckpointOptions::mesh` and `CheckpointReadOptions::mesh`.
///
/// A sum of hashes over owned cells and nodes. Collective: one reduction, O(cells + nodes). Boundary patches and
/// the way in which a file writes them do not count. Coordinates count to the last bit: a mesh that was written with
/// fewer digits is another one.
std::uint64_t fingerprint(const UnstructuredMesh &mesh);

} // namespace DNDS::Geom
