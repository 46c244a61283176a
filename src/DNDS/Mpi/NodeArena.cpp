#include "DNDS/Mpi/NodeArena.hpp"

#include "DNDS/Base/BlockAllocator.hpp"
#include "DNDS/Base/Error.hpp"

#include <algorithm>
#include <new>

namespace DNDS {

namespace {

constexpr std::size_t firstSegmentBytes = std::size_t{1} << 20U;
constexpr std::size_t pageBytes = 4096;                    ///< segments begin at multiples of it
constexpr std::size_t maxBytes = std::size_t{1} << 46U;    ///< limit of one allocation, far below where sums overflow
constexpr std::size_t minReturned = std::size_t{1} << 20U; ///< less is not worth a system call
constexpr std::chrono::seconds soon(1);                    ///< memory allocated again within it should have been kept

/// To whole granules.
std::size_t roundedUp(std::size_t bytes, std::size_t granule) { return (bytes + granule - 1) / granule * granule; }

/// To whole cache lines; never 0, so that each block has an address of its own.
std::size_t blockBytes(std::size_t bytes) { return roundedUp(std::max<std::size_t>(bytes, 1), 64); }

} // namespace

/// One anonymous file: its mapping, which of its addresses are allocated, and which of its pages have memory.
/// Two allocators with one key, the offset: addresses are handed out in blocks, memory in granules of 64 KiB.
struct NodeArena::OwnSegment {
    SharedSegment memory;
    BlockAllocator blocks;
    SegmentPages pages;
};

/// An allocation that another rank may still write to until it sets `until`, which lies in shared memory; null:
/// no rank does.
struct NodeArena::Retired {
    void *address;
    std::size_t bytes;
    const std::atomic<std::uint32_t> *until;
};

NodeArena::NodeArena(int nodeRank, int nodeSize) : nodeRank_(nodeRank), nodeSize_(nodeSize) {
    own_.reserve(ArenaHeader::maxSegments); // the header is read while another thread may add a segment
    addSegment(firstSegmentBytes);
    Detail::addActivityRecord(ownHeader().activity);
}

NodeArena::~NodeArena() {
    if (!own_.empty())
        Detail::removeActivityRecord(ownHeader().activity);
}

ArenaHeader &NodeArena::ownHeader() const noexcept {
    return *reinterpret_cast<ArenaHeader *>(own_.front().memory.base());
}

// A few system calls. Works for stopped processes, since nothing of that process has to run.
ActivityRecord::Activity NodeArena::activity(int nodeRank) {
    // A stopped or dead process cannot say so itself: its state comes from the system, its activity from shared
    // memory.
    const ProcessState state = peers_->state(nodeRank);
    if (state == ProcessState::Ended)
        return {"ended", 0};
    ActivityRecord::Activity latest;
    try {
        latest = peers_->header(nodeRank).activity.read();
    } catch (const MemoryError &) {
        // The file could not be opened: the process is ending, or descriptors are used up.
        return {"cannot be seen", 0};
    }
    if (state == ProcessState::Stopped)
        latest.text = fmt::format("stopped by a signal{}{}", latest.text.empty() ? "" : ", in ", latest.text);
    return latest;
}

RevocationRecord &NodeArena::revocationRecord() {
    const ArenaHeader &header = nodeRank_ == 0 ? ownHeader() : peers_->header(0);
    return const_cast<ArenaHeader &>(header).revocation; // mapped for reading and writing
}

// Local: other ranks map the segment on their first access. Everything that may throw comes before the push_back,
// which has reserved room: a failure leaves the arena as it was.
void NodeArena::addSegment(std::size_t bytes) {
    if (own_.size() == ArenaHeader::maxSegments)
        throw NoMemory("this rank's shared memory is in {} segments already", own_.size());
    bytes = roundedUp(bytes, SegmentPages::granule);
    BlockAllocator blocks(bytes);
    SegmentPages pages(bytes);
    SharedSegment memory = SharedSegment::make(bytes);
    // The first segment begins with the header, which is constructed before any other rank learns of the file. All
    // other memory is reserved block by block.
    const std::size_t used = own_.empty() ? sizeof(ArenaHeader) : 0;
    if (used > 0) {
        blocks.allocate(used, 64);
        pages.take(0, used, [&](const SegmentPages::Range &range) { memory.reserve(range); });
        new (memory.base()) ArenaHeader{};
    }
    SharedSegment::forbid(memory.base() + used, bytes - used);
    own_.push_back(OwnSegment{std::move(memory), std::move(blocks), std::move(pages)}); // has room: cannot fail
    ArenaHeader &header = ownHeader();
    // Entry before count, with release: a rank that reads the count (acquire) finds the entry complete. Both only
    // grow.
    header.entries[own_.size() - 1] = {own_.back().memory.file(), bytes};
    header.count.store(static_cast<std::uint32_t>(own_.size()), std::memory_order_release);
}

// Punches a hole into the file: addresses and mappings of all ranks stay valid. One system call.
void NodeArena::returnMemory(OwnSegment &segment, const SegmentPages::Range &range) noexcept {
    if (!segment.memory.giveBack(range))
        return; // the memory stays, and may be used again
    segment.pages.noteReturned(range);
    const auto now = std::chrono::steady_clock::now();
    // Counts what was returned within a second of the previous return: `noteReuse` compares it with new
    // reservations.
    recentlyReturned_ = range.bytes + (now - lastReturn_ < soon ? recentlyReturned_ : 0);
    lastReturn_ = now;
}

std::size_t NodeArena::bytesHeld() const noexcept {
    const std::lock_guard lock(mutex_);
    std::size_t held = 0;
    for (const OwnSegment &segment : own_)
        held += segment.memory.held();
    return held;
}

PeerMemory::Announcement NodeArena::announce() {
    PeerMemory::Announcement mine{ProcessId::own(), own_.front().memory.file(), 0};
    // Unique even if process numbers and addresses of ranks are equal, as they may be in two containers.
    ArenaHeader &header = ownHeader();
    header.mark = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&header)) ^
                  (static_cast<std::uint64_t>(mine.owner.process) << 40U) ^ static_cast<std::uint64_t>(nodeRank_);
    mine.mark = static_cast<std::int64_t>(header.mark);
    return mine;
}

// Collective: an agreement, an allgather of 32 bytes a rank, and a reduction.
std::shared_ptr<NodeArena> NodeArena::create(CommunicatorView node, std::string &whyNot) {
    // Each rank makes its first segment and announces it; each maps that of the next rank as a trial; one reduction
    // tells whether all could. A rank that cannot make one announces no process, which the others notice: all ranks
    // go through the same collectives.
    std::shared_ptr<NodeArena> arena;
    PeerMemory::Announcement mine;
    std::exception_ptr failure = attempt([&] {
        arena.reset(new NodeArena(node.rank(), node.size()));
        mine = arena->announce();
    });
    std::vector<PeerMemory::Announcement> all;
    node.guarded([&] { all.resize(static_cast<std::size_t>(node.size())); });
    static_assert(sizeof(mine) == 4 * sizeof(std::int64_t));
    {
        const ActivityScope activity = ActivityScope::collective("MPI_Allgather");
        checkMpi(MPI_Allgather(&mine, 4, MPI_INT64_T, all.data(), 4, MPI_INT64_T, node.handle()), "MPI_Allgather");
    }
    if (!failure) // ranks that fail earlier must not leave the others waiting
        failure = attempt([&] { arena->peers_.emplace(all).tryNext(node.rank()); });
    // All ranks of the node use the arena, or none does.
    if (node.allReduce(failure ? 0 : 1, MPI_MIN) == 1)
        return arena;
    node.guarded([&] {
        whyNot = failure
                     ? fmt::format("this rank cannot make or map shared memory: {}", describeFailure(failure).message)
                     : "another rank of the node cannot map shared memory";
    });
    return nullptr;
}

// O(free ranges of the segment + bytes / 64 KiB).
std::byte *NodeArena::take(OwnSegment &segment, std::size_t bytes, std::size_t alignment) {
    // Addresses first, memory second: the allocator of addresses is undone if the system has no memory.
    const auto offset = segment.blocks.allocate(bytes, alignment);
    if (!offset)
        return nullptr;
    const std::size_t unused = segment.pages.unusedBytes();
    std::size_t reserved = 0;
    {
        const OnFailure undo([&] {
            static_cast<void>(attempt([&] { segment.blocks.release(*offset, bytes); }));
            returnAllUnused(); // other ranks may need it
        });
        segment.pages.take(*offset, bytes, [&](const SegmentPages::Range &range) {
            segment.memory.reserve(range);
            reserved += range.bytes;
        });
    }
    // Memory that was reserved just now or taken from the kept one: both tell how much to keep.
    if (reserved > 0 || segment.pages.unusedBytes() < unused)
        noteReuse(reserved);
    bytesInUse_ += bytes;
    return segment.memory.base() + *offset;
}

/// Doubles where that is possible, so that segments stay few; else takes what is free, down to `needed`.
/// Doubling keeps the number of segments logarithmic in the memory used, far below the 64 entries of the header.
void NodeArena::grow(std::size_t needed) {
    std::size_t wanted = 0;
    for (const OwnSegment &segment : own_)
        wanted += segment.memory.bytes();
    for (; wanted > needed; wanted /= 2)
        try {
            return addSegment(wanted);
        } catch (const NoMemory &) {
            continue;
        }
    addSegment(needed);
}

// As a std::pmr resource: buffers in shared memory allocate by it. O(segments + free ranges).
// First fit, O(segments x free ranges) at worst; older segments fill first, so that younger ones become empty and
// return their memory.
void *NodeArena::do_allocate(std::size_t bytes, std::size_t alignment) {
    alignment = std::max<std::size_t>(alignment, 64); // no two blocks share a cache line
    if (alignment > pageBytes || bytes > maxBytes)
        throw NoMemory("no segment has {} bytes at a multiple of {}", bytes, alignment);
    if (inForkedChild())
        return ::operator new (bytes, std::align_val_t{alignment});
    const std::lock_guard lock(mutex_);
    forgetReuse();
    // First fit over all segments, the oldest first; a new segment only if none has room. Addresses are never
    // handed out without memory.
    const std::size_t rounded = blockBytes(bytes);
    std::byte *found = nullptr;
    for (auto segment = own_.begin(); segment != own_.end() && found == nullptr; ++segment)
        found = take(*segment, rounded, alignment);
    if (found == nullptr) {
        grow(rounded + alignment);
        found = take(own_.back(), rounded, alignment);
    }
    SharedSegment::allow(found, bytes);
    return found;
}

void NodeArena::do_deallocate(void *address, std::size_t bytes, std::size_t alignment) {
    if (inForkedChild()) { // another thread of the parent may have held the lock at the fork
        const bool shared =
            std::ranges::any_of(own_, [&](const OwnSegment &segment) { return segment.memory.contains(address); });
        if (!shared)
            ::operator delete (address, std::align_val_t{std::max<std::size_t>(alignment, 64)});
        return;
    }
    const std::lock_guard lock(mutex_);
    forgetReuse();
    release(address, bytes);
}

// O(segments + bytes / 64 KiB + log(free ranges)). Addresses are released last: that step may lack memory for its map
// node, and then leaks addresses only.
void NodeArena::release(void *address, std::size_t bytes) noexcept {
    const std::size_t rounded = blockBytes(bytes);
    // O(segments). An address in none of them, from a parent of a fork, is left alone.
    for (OwnSegment &segment : own_) {
        if (!segment.memory.contains(address))
            continue;
        const auto offset = static_cast<std::size_t>(static_cast<std::byte *>(address) - segment.memory.base());
        SharedSegment::forbid(address, rounded);
        const SegmentPages::Range unused = segment.pages.release(offset, rounded);
        // Only beyond what a loop is known to need again: see noteReuse.
        if (unused.bytes >= minReturned && unusedBytes() > keep_)
            returnMemory(segment, unused);
        static_cast<void>(attempt([&] { segment.blocks.release(offset, rounded); })); // else its addresses stay taken
        bytesInUse_ -= rounded;
        return;
    }
}

std::size_t NodeArena::unusedBytes() const noexcept {
    std::size_t unused = 0;
    for (const OwnSegment &segment : own_)
        unused += segment.pages.unusedBytes();
    return unused;
}

void NodeArena::returnAllUnused() noexcept {
    for (OwnSegment &segment : own_)
        for (SegmentPages::Range unused = segment.pages.nextUnused(0); unused.bytes > 0;
             unused = segment.pages.nextUnused(unused.begin + unused.bytes))
            if (unused.bytes >= minReturned)
                returnMemory(segment, unused);
}

/// After an allocation that took unused memory, or had to reserve some: memory returned shortly before should have
/// been kept.
/// Hysteresis for loops that free and allocate in each step, where a return costs a system call and page faults at
/// the next use. `keep_` grows by what was returned within the last second and is reserved again; it falls to 0 after
/// a second without reuse (`forgetReuse`).
void NodeArena::noteReuse(std::size_t reserved) noexcept {
    if (keep_ == 0 && recentlyReturned_ == 0)
        return;
    const auto now = std::chrono::steady_clock::now();
    if (now - lastReturn_ >= soon)
        recentlyReturned_ = 0;
    const std::size_t missed = std::min(reserved, recentlyReturned_);
    recentlyReturned_ -= missed;
    keep_ += missed;
    if (keep_ > 0)
        lastReuse_ = now;
}

/// Before each change: stops keeping memory when no loop has reused it for a second.
void NodeArena::forgetReuse() noexcept {
    if (keep_ == 0 || std::chrono::steady_clock::now() - lastReuse_ < soon)
        return;
    keep_ = 0;
    returnAllUnused();
}

std::optional<ArenaLocation> NodeArena::locate(const void *address) const {
    const std::lock_guard lock(mutex_);
    // O(segments): a few, as each new one is as large as all before together, if the system has memory for it.
    const auto *byte = static_cast<const std::byte *>(address);
    for (std::size_t s = 0; s < own_.size(); ++s) {
        const SharedSegment &segment = own_[s].memory;
        if (segment.contains(address))
            return ArenaLocation{static_cast<std::uint32_t>(s), static_cast<std::uint64_t>(byte - segment.base())};
    }
    return std::nullopt;
}

// For memory that a peer may still use: it sets `until`, which may lie in that memory, when it no longer does.
void NodeArena::retire(void *address, std::size_t bytes, const std::atomic<std::uint32_t> *until) noexcept {
    if (inForkedChild())
        return;
    const std::lock_guard lock(mutex_);
    if (attempt([&] { retired_.push_back({address, bytes, until}); }))
        return; // a few lines of shared memory stay taken
    reapRetired();
}

void NodeArena::reap() noexcept {
    const std::lock_guard lock(mutex_);
    forgetReuse();
    reapRetired();
}

// O(retired). The acquire load pairs with the peer's release store to `until`: the peer's last access happens before
// the memory is reused.
void NodeArena::reapRetired() noexcept {
    std::erase_if(retired_, [&](const Retired &retired) {
        const bool unused = retired.until == nullptr || retired.until->load(std::memory_order_acquire) != 0;
        if (unused)
            release(retired.address, retired.bytes);
        return unused;
    });
}

std::size_t NodeArena::bytesInUse() const noexcept {
    const std::lock_guard lock(mutex_);
    return bytesInUse_;
}

} // namespace DNDS
