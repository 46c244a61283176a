/// @file NodeArena.hpp
/// @brief Memory of this rank that the other ranks of its node can write to.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/PeerMemory.hpp"
#include "DNDS/Mpi/SegmentPages.hpp"
#include "DNDS/Mpi/SharedSegment.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace DNDS {

/// A memory resource whose memory all ranks of a node can map: each rank allocates from its own segments, alone and at
/// any time, and others reach a place by its location. One arena a communicator serves all its sons.
///
/// Segments are anonymous files in memory (Linux memfd), opened by the other ranks through /proc. Compared with MPI
/// shared windows they grow without a collective call, do not depend on the size of /dev/shm, and vanish with the last
/// process that maps them, however it ends. A rank maps another's memory on its first access. The
/// arena lives until the last array in it is destroyed, which may be after MPI_Finalize.
///
/// A block's memory is reserved when it is allocated, so that on a machine without memory the allocation fails
/// instead of the process at first touch. Unused memory of 1 MiB and more is returned to the system; memory that a loop
/// allocates again within a second is then kept, until a call a second or more after the loop.
///
/// All functions may be called on any thread. In a forked child the arena belongs to the parent: there, new memory is
/// private to the child, and freeing memory does nothing. Parent, peers and child see each other's writes.
class NodeArena : public std::pmr::memory_resource {
  public:
    /// Collective over `node`. Null on all ranks, with the reason in `whyNot`, where ranks cannot map each other's
    /// memory (another operating system, other user or process namespaces): each rank tries the rank after it, which is
    /// enough: if users and namespaces differ anywhere, they differ somewhere around this ring.
    static std::shared_ptr<NodeArena> create(CommunicatorView node, std::string &whyNot);

    NodeArena(const NodeArena &) = delete;
    NodeArena &operator=(const NodeArena &) = delete;
    ~NodeArena() override;

    /// This rank's number on the node, and the number of ranks there.
    int nodeRank() const noexcept { return nodeRank_; }
    int nodeSize() const noexcept { return nodeSize_; }

    /// The location of an address in this rank's own segments; nothing for memory elsewhere. Local, O(segments).
    std::optional<ArenaLocation> locate(const void *address) const;
    /// The address in this process of a location of another rank's arena. Local; maps the segment on first use. Throws
    /// MemoryError when the other process has ended.
    std::byte *translate(int nodeRank, const ArenaLocation &location) { return peers_->translate(nodeRank, location); }
    /// Whether a rank's process still exists. Local; a system call.
    bool alive(int nodeRank) const noexcept { return peers_->alive(nodeRank); }

    /// A rank's activity, as far as it has published one; or that it ended or was stopped. Local; some system calls.
    ActivityRecord::Activity activity(int nodeRank);
    /// The ranks in the communicator and in MPI_COMM_WORLD, [node ranks], and whether it has others on other nodes: for
    /// messages. `worldRanks` is empty where they are the same. Local.
    void setRanks(std::vector<int> ranks, std::vector<int> worldRanks, bool hasOthers) noexcept {
        ranks_ = std::move(ranks);
        worldRanks_ = std::move(worldRanks);
        hasOthers_ = hasOthers;
    }
    int rankOf(int nodeRank) const noexcept {
        return ranks_.empty() ? nodeRank : ranks_[static_cast<std::size_t>(nodeRank)];
    }
    /// -1 if it equals `rankOf` on all ranks.
    int worldRankOf(int nodeRank) const noexcept {
        return worldRanks_.empty() ? -1 : worldRanks_[static_cast<std::size_t>(nodeRank)];
    }
    bool hasOthers() const noexcept { return hasOthers_; }

    /// The record by which ranks of the node tell each other of a revocation: in the first one's memory. Local.
    /// Throws MemoryError where it cannot be mapped.
    RevocationRecord &revocationRecord();

    /// Frees an allocation of this rank once `until` is set by another rank, or at once if it is null. Local.
    void retire(void *address, std::size_t bytes, const std::atomic<std::uint32_t> *until) noexcept;
    /// Frees retired allocations that no other rank uses any more. Local.
    void reap() noexcept;

    /// Bytes in use by this rank's allocations. Local.
    std::size_t bytesInUse() const noexcept;
    /// Bytes of memory that the system keeps for this rank's segments. Local; a system call a segment.
    std::size_t bytesHeld() const noexcept;

  private:
    struct OwnSegment;
    struct Retired;
    NodeArena(int nodeRank, int nodeSize);
    ArenaHeader &ownHeader() const noexcept;
    /// This rank's identity, for `create`; writes the mark that others compare.
    PeerMemory::Announcement announce();

    /// As std::pmr asks; blocks of 64 bytes and multiples of it. Throws NoMemory.
    void *do_allocate(std::size_t bytes, std::size_t alignment) override;
    void do_deallocate(void *address, std::size_t bytes, std::size_t alignment) override;
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override { return this == &other; }

    /// A further segment with addresses for at least `bytes`; throws NoMemory.
    void addSegment(std::size_t bytes);
    void grow(std::size_t needed);
    /// A block of a segment, with memory; null if it has no addresses for it.
    std::byte *take(OwnSegment &segment, std::size_t bytes, std::size_t alignment);
    /// Under the lock: frees a block, and returns memory of long unused ranges.
    void release(void *address, std::size_t bytes) noexcept;
    /// Under the lock: as `reap`.
    void reapRetired() noexcept;
    /// Returns the memory of a range without blocks to the system; its addresses stay.
    void returnMemory(OwnSegment &segment, const SegmentPages::Range &range) noexcept;
    void returnAllUnused() noexcept;
    /// Bytes with memory and without blocks, in all segments.
    std::size_t unusedBytes() const noexcept;
    void noteReuse(std::size_t reserved) noexcept;
    void forgetReuse() noexcept;

    int nodeRank_;
    int nodeSize_;
    /// By node rank: see setRanks.
    std::vector<int> ranks_;
    std::vector<int> worldRanks_;
    bool hasOthers_ = false;
    std::optional<PeerMemory> peers_; ///< from `create` on
    mutable std::mutex mutex_;        ///< guards all below, except the header
    /// Only grows: locations name segments by number.
    std::vector<OwnSegment> own_;
    /// Freed by this rank, perhaps still used by another one.
    std::vector<Retired> retired_;
    /// Allocated bytes, rounded up to cache lines.
    std::size_t bytesInUse_ = 0;

    std::size_t keep_ = 0;             ///< bytes of unused memory kept because they are reused soon
    std::size_t recentlyReturned_ = 0; ///< bytes
    /// Moments of the latest return to the system, and of the latest reuse of kept memory.
    std::chrono::steady_clock::time_point lastReturn_{};
    std::chrono::steady_clock::time_point lastReuse_{};
};

} // namespace DNDS
