/// @file FileSegments.hpp
/// @brief Divides the lists of a mesh file among ranks: one rank finds the positions, all ranks read.
#pragma once

#include "DNDS/Geom/File/MeshFile.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <vector>

namespace DNDS::Geom {

/// Some entries of a list (nodes, elements) that are contiguous in the file.
/// Text files can be entered at known positions only: a scan on one rank notes a position every segmentLength
/// entries, and each rank starts to read at those of its share.
struct FileSegment {
    index first = 0; ///< number of the first entry in the list
    /// Number of entries.
    index count = 0;
    FilePlace place;       ///< position of the first entry, or of the header of its block
    FilePlace secondPlace; ///< position of the second part, if entries are in two parts
    index inBlock = 0;     ///< entries left in the current block; 0: a header follows
    /// The content of the block's header, as the format defines it.
    index dimension = 0;
    index tag = 0;
    index type = 0;
};

/// The number of entries per segment, about: enough segments for an even share for each rank, and few enough to
/// broadcast.
inline index segmentLength(index entries, int ranks) {
    return std::clamp<index>(entries / (8 * index{ranks}), 1, 16384);
}

/// The segments of this rank; contiguous, in order of rank. Local.
std::vector<FileSegment> ownSegments(const std::vector<FileSegment> &all, index entries, CommunicatorView comm);

/// The number of entries of all segments. Local.
std::size_t entriesOf(const std::vector<FileSegment> &segments);

/// The values of all ranks, ascending, without duplicates; the same on every rank. Collective. O(result) memory, which
/// should be small.
std::vector<index> unionOfAll(CommunicatorView comm, std::vector<index> mine);

} // namespace DNDS::Geom
