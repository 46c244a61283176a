#include "DNDS/Geom/File/FileSegments.hpp"

#include "DNDS/Mpi/EvenSplit.hpp"

#include <algorithm>

namespace DNDS::Geom {

/// A segment belongs to the rank of its first entry, so shares are whole segments.
/// O(segments) time, no messages: all ranks have the same list. A share exceeds an even one by one segment at most.
std::vector<FileSegment> ownSegments(const std::vector<FileSegment> &all, index entries, CommunicatorView comm) {
    const EvenSplit split(entries, comm.size());
    std::vector<FileSegment> own;
    for (const FileSegment &segment : all)
        if (split.owner(segment.first) == comm.rank())
            own.push_back(segment);
    return own;
}

std::size_t entriesOf(const std::vector<FileSegment> &segments) {
    index entries = 0;
    for (const FileSegment &segment : segments)
        entries += segment.count;
    return static_cast<std::size_t>(entries);
}

// Duplicates are dropped before and after the gathering.
std::vector<index> unionOfAll(CommunicatorView comm, std::vector<index> mine) {
    const auto unique = [](std::vector<index> &values) {
        std::sort(values.begin(), values.end());
        values.erase(std::unique(values.begin(), values.end()), values.end());
    };
    unique(mine);
    std::vector<index> all = comm.allGatherV(std::span<const index>(mine));
    unique(all);
    return all;
}

} // namespace DNDS::Geom
