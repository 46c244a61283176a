/// @file FileSegments.hpp
/// @brief Divides the lists of a mesh file among ranks: one rank finds out where things stand, all ranks read.
#pragma once

#include "DNDS/Geom/File/MeshFile.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <vector>

namespace DNDS::Geom {

/// Some entries of a list (nodes, elements) that follow each other in the file.
struct FileSegment {
    index first = 0; ///< number of the first entry in the list
    index count = 0;
    FilePlace place;       ///< of the first entry, or of the header of its block
    FilePlace secondPlace; ///< where entries are in two parts, of the second one
    index inBlock = 0;     ///< how many entries of the present block follow; 0: a header follows
    /// What the block's header says; the meaning is the format's.
    index dimension = 0;
    index tag = 0;
    index type = 0;
};

/// Entries of a list are indexed in segments of about so many: enough of them for an even share for each rank, and few
/// enough to tell all ranks.
inline index segmentLength(index entries, int ranks) {
    return std::clamp<index>(entries / (8 * index{ranks}), 1, 16384);
}

/// The segments that belong to this rank; contiguous, in order of rank. Local.
std::vector<FileSegment> ownSegments(const std::vector<FileSegment> &all, index entries, CommunicatorView comm);

/// How many entries segments have together. Local.
std::size_t entriesOf(const std::vector<FileSegment> &segments);

/// The values of all ranks, ascending, each once; the same on every rank. Collective. O(result) memory, which should
/// be small.
std::vector<index> unionOfAll(CommunicatorView comm, std::vector<index> mine);

} // namespace DNDS::Geom
