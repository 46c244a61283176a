#include "DNDS/Mpi/PeerMemory.hpp"

namespace DNDS {

PeerMemory::PeerMemory(std::span<const Announcement> ranks) : peers_(ranks.size()) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
        peers_[rank].told = ranks[rank];
}

// Under the lock. O(1) once mapped; the first access costs an open, an mmap and, for later segments, the mapping of
// the first one.
const SharedSegment &PeerMemory::mapped(int nodeRank, std::uint32_t segment) {
    // The first segment is known from the announcement; its header lists the others, which may have been added
    // since. Mappings are kept for the life of this object: addresses that `translate` has returned stay valid.
    Peer &peer = peers_[static_cast<std::size_t>(nodeRank)];
    if (peer.segments.size() <= segment)
        peer.segments.resize(std::size_t{segment} + 1);
    if (SharedSegment &wanted = peer.segments[segment]; wanted)
        return wanted;
    SharedSegment opened;
    if (segment == 0) {
        // Only the contents decide: another process may have the same number, or the file another owner by now.
        opened = SharedSegment::open(peer.told.owner, static_cast<int>(peer.told.file), sizeof(ArenaHeader));
        DNDS_CHECK(reinterpret_cast<const ArenaHeader *>(opened.base())->mark ==
                       static_cast<std::uint64_t>(peer.told.mark),
                   MemoryError, "process numbers mean different processes on this node (containers?)");
    } else {
        const auto &header = *reinterpret_cast<const ArenaHeader *>(mapped(nodeRank, 0).base());
        DNDS_CHECK(segment < header.count.load(std::memory_order_acquire), MemoryError,
                   "rank {} of the node has no shared segment {}", nodeRank, segment);
        opened = SharedSegment::open(peer.told.owner, header.entries[segment].file, header.entries[segment].bytes);
    }
    return peer.segments[segment] = std::move(opened);
}

// One neighbour is enough of a trial: each rank's memory is opened by one other rank, and all ranks agree on the
// result.
void PeerMemory::tryNext(int nodeRank) {
    for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
        const ProcessId &owner = peers_[rank].told.owner;
        DNDS_CHECK(owner.process > 0, MemoryError, "rank {} of the node cannot make shared memory", rank);
        DNDS_CHECK(owner.space == peers_.front().told.owner.space, MemoryError,
                   "process numbers mean different processes on this node (containers?)");
    }
    if (nodeSize() > 1)
        (void)header((nodeRank + 1) % nodeSize());
}

const ArenaHeader &PeerMemory::header(int nodeRank) {
    const std::lock_guard lock(mutex_);
    return *reinterpret_cast<const ArenaHeader *>(mapped(nodeRank, 0).base());
}

// O(1) once the segment is mapped; the first use of a segment maps it.
std::byte *PeerMemory::translate(int nodeRank, const ArenaLocation &location) {
    const std::lock_guard lock(mutex_);
    return mapped(nodeRank, location.segment).base() + location.offset;
}

} // namespace DNDS
