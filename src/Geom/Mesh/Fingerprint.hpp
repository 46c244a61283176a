/// @file Fingerprint.hpp
/// @brief A number that identifies the mesh of a checkpoint.
#pragma once

#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"

#include <cstdint>

namespace DNDS::Geom {

/// A hash of a mesh's cells and nodes, their positions in the file, their connectivity and the coordinates: the same on
/// all ranks and for any number of ranks, partition and local order of one mesh. Another mesh, another order of the
/// file or moved nodes have another hash (except for one case in 2^64; not cryptographic). For
/// `CheckpointOptions::mesh` and `CheckpointReadOptions::mesh`.
///
/// A sum of hashes over owned cells and nodes. Collective: one reduction, O(cells + nodes). Boundary patches and the
/// file format do not matter. Coordinates matter to the last bit: a mesh written with fewer digits is another mesh.
std::uint64_t fingerprint(const UnstructuredMesh &mesh);

} // namespace DNDS::Geom
