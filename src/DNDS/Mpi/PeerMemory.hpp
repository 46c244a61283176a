/// @file PeerMemory.hpp
/// @brief The shared memory of the ranks of a node, mapped on demand.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/Revocation.hpp"
#include "DNDS/Mpi/RollCall.hpp"
#include "DNDS/Mpi/SharedSegment.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace DNDS {

/// Header at the start of each rank's first segment, from which others find the rest.
struct ArenaHeader {
    static constexpr std::size_t maxSegments = 64;
    /// A segment: the number of its file in the owner's process, and its size.
    struct Entry {
        int file;
        std::uint64_t bytes;
    };
    ActivityRecord activity; ///< activity of the rank's process
    /// The node's record, on its first rank. All poll it: in a cache line that `activity` does not write.
    alignas(128) RevocationRecord revocation;
    std::uint64_t mark; ///< unique among ranks, to tell their memory apart
    std::array<Entry, maxSegments> entries;
    /// Number of entries; written last, with release.
    std::atomic<std::uint32_t> count;
};

/// The segments of all ranks of a node as mapped by this process. A rank's memory is mapped on first access:
/// a rank that has few peers opens few files. All functions are Local and may be called on any thread.
class PeerMemory {
  public:
    /// A rank's identity, sent to the others.
    struct Announcement {
        ProcessId owner;
        std::int64_t file = -1; ///< number of the first segment's file
        std::int64_t mark = 0;
    };

    /// `ranks` holds each rank's announcement. Maps nothing yet.
    explicit PeerMemory(std::span<const Announcement> ranks);

    /// The number of ranks of the node.
    int nodeSize() const noexcept { return static_cast<int>(peers_.size()); }
    /// Throws MemoryError unless this rank can map the memory of the rank after it, or if a rank has none, or
    /// process numbers differ in meaning.
    void tryNext(int nodeRank);
    /// The header of a rank. Throws MemoryError if its memory cannot be mapped, or is that of another process.
    const ArenaHeader &header(int nodeRank);
    /// The address in this process of a location of a rank. Throws MemoryError.
    std::byte *translate(int nodeRank, const ArenaLocation &location);
    /// Whether a rank's process still exists. A system call.
    ProcessState state(int nodeRank) const noexcept {
        return peers_[static_cast<std::size_t>(nodeRank)].told.owner.state();
    }
    bool alive(int nodeRank) const noexcept { return peers_[static_cast<std::size_t>(nodeRank)].told.owner.alive(); }

  private:
    /// A rank of the node: its announcement, and its segments by number, empty until they are first used.
    struct Peer {
        Announcement told;
        std::vector<SharedSegment> segments; ///< mapped by this process
    };
    /// Under the lock: the segment of a rank, mapped if it was not.
    const SharedSegment &mapped(int nodeRank, std::uint32_t segment);

    /// Guards the mappings in `peers_`; announcements do not change.
    std::mutex mutex_;
    /// [node ranks], this rank included.
    std::vector<Peer> peers_;
};

} // namespace DNDS
