#include "DNDS/Mpi/NodeArena.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

// Under the address sanitizer, memory of an arena that nobody has allocated is as forbidden as that of the heap.
#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

#if defined(__linux__)
#include <csignal>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace DNDS {

namespace {

constexpr std::size_t mostSegments = 64;
constexpr std::size_t firstSegmentBytes = std::size_t{1} << 20U;
constexpr std::size_t segmentGranularity = std::size_t{1} << 16U;
constexpr std::size_t pageBytes = 4096;                  ///< segments begin at multiples of it, perhaps of more
constexpr std::size_t mostBytes = std::size_t{1} << 46U; ///< of one allocation, far below where sums overflow

/// Where one rank leaves notes for one other, alternating between two slots from round to round.
struct alignas(64) Note {
    std::atomic<std::uint64_t> round{0}; ///< plus one, so that zeroed memory holds no note
    ArenaLocation location;
};

} // namespace

/// At the start of each rank's first segment.
struct NodeArena::Header {
    struct Entry {
        int file;
        std::uint64_t bytes;
    };
    std::uint64_t mark;
    std::array<Entry, mostSegments> entries;
    std::atomic<std::uint32_t> count;

    /// Behind the header: two notes for each rank of the node.
    Note *notes() { return reinterpret_cast<Note *>(reinterpret_cast<std::byte *>(this) + notesOffset()); }
    const Note *notes() const { return const_cast<Header *>(this)->notes(); }
    static std::size_t notesOffset() { return (sizeof(Header) + alignof(Note) - 1) / alignof(Note) * alignof(Note); }
};

std::size_t NodeArena::headerBytes() const noexcept { return Header::notesOffset() + 2 * peers_.size() * sizeof(Note); }

#if defined(__linux__)

NodeArena::NodeArena(int nodeRank, int nodeSize) : nodeRank_(nodeRank), peers_(static_cast<std::size_t>(nodeSize)) {
    own_.reserve(mostSegments); // the header is looked up while another thread may add a segment
    addSegment(std::max(firstSegmentBytes, 2 * headerBytes()));
}

NodeArena::~NodeArena() {
    for (const OwnSegment &segment : own_) {
        ASAN_UNPOISON_MEMORY_REGION(segment.memory.base, segment.memory.bytes); // others may be mapped there next
        munmap(segment.memory.base, segment.memory.bytes);
        close(segment.memory.file);
    }
    for (const Peer &peer : peers_)
        for (const Segment &segment : peer.segments)
            if (segment.base != nullptr)
                munmap(segment.base, segment.bytes);
}

void NodeArena::addSegment(std::size_t bytes) {
    if (own_.size() == mostSegments)
        throw std::bad_alloc();
    bytes = (bytes + segmentGranularity - 1) / segmentGranularity * segmentGranularity;
    BlockAllocator blocks(bytes);
    if (own_.empty())
        blocks.allocate(headerBytes(), 64);
    own_.reserve(own_.size() + 1); // nothing below fails when the memory is there
    const int file = memfd_create("dnds-arena", MFD_CLOEXEC);
    if (file < 0)
        throw std::bad_alloc();
    void *base = MAP_FAILED;
    if (ftruncate(file, static_cast<off_t>(bytes)) == 0)
        base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (base == MAP_FAILED) {
        close(file);
        throw std::bad_alloc();
    }
    const OwnSegment &segment =
        own_.emplace_back(OwnSegment{{static_cast<std::byte *>(base), bytes, file}, std::move(blocks)});
    if (own_.size() == 1) {
        auto *header = new (base) Header{};
        for (std::size_t n = 0; n < 2 * peers_.size(); ++n)
            new (header->notes() + n) Note;
    }
    const std::size_t used = own_.size() == 1 ? headerBytes() : 0;
    ASAN_POISON_MEMORY_REGION(segment.memory.base + used, bytes - used);
    auto &header = *reinterpret_cast<Header *>(own_.front().memory.base);
    header.entries[own_.size() - 1] = {file, bytes};
    header.count.store(static_cast<std::uint32_t>(own_.size()), std::memory_order_release);
}

NodeArena::Segment NodeArena::mapFile(long process, int file, std::size_t bytes) {
    const std::string path = fmt::format("/proc/{}/fd/{}", process, file);
    const int opened = open(path.c_str(), O_RDWR | O_CLOEXEC);
    DNDS_CHECK(opened >= 0, MemoryError, "cannot open shared memory of process {}: {}", process, std::strerror(errno));
    struct stat info {};
    void *base = MAP_FAILED;
    if (fstat(opened, &info) == 0 && (bytes == 0 || info.st_size == static_cast<off_t>(bytes))) {
        bytes = static_cast<std::size_t>(info.st_size);
        base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
    }
    const int reason = errno;
    close(opened);
    DNDS_CHECK(base != MAP_FAILED, MemoryError, "cannot map shared memory of process {}: {}", process,
               std::strerror(reason));
    return {static_cast<std::byte *>(base), bytes, -1};
}

bool NodeArena::alive(int nodeRank) const noexcept {
    const long process = peers_[static_cast<std::size_t>(nodeRank)].process;
    return kill(static_cast<pid_t>(process), 0) == 0 || errno != ESRCH;
}

/// Maps what the others have announced. Only what was really read decides: a mark in every other rank's memory.
void NodeArena::meet(std::span<const Announcement> all) {
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        Peer &peer = peers_[rank];
        peer.process = static_cast<long>(all[rank].process);
        peer.firstFile = static_cast<int>(all[rank].file);
        if (static_cast<int>(rank) == nodeRank_)
            continue;
        DNDS_CHECK(peer.process > 0, MemoryError, "rank {} of the node cannot make shared memory", rank);
        DNDS_CHECK(headerOf(static_cast<int>(rank)).mark == static_cast<std::uint64_t>(all[rank].mark), MemoryError,
                   "process numbers mean different processes on this node (containers?)");
    }
}

std::shared_ptr<NodeArena> NodeArena::create(CommunicatorView node, std::string &whyNot) {
    std::vector<Announcement> all;
    node.guarded([&] { all.resize(static_cast<std::size_t>(node.size())); });
    std::shared_ptr<NodeArena> arena;
    const char *reason = "another rank of the node cannot map shared memory";
    Announcement mine;
    try {
        arena.reset(new NodeArena(node.rank(), node.size()));
        auto &header = *reinterpret_cast<Header *>(arena->own_.front().memory.base);
        // Differs between ranks whose process numbers and addresses are equal, as they may be in two containers.
        header.mark = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&header)) ^
                      (static_cast<std::uint64_t>(getpid()) << 40U) ^ static_cast<std::uint64_t>(node.rank());
        mine = {getpid(), arena->own_.front().memory.file, static_cast<std::int64_t>(header.mark)};
    } catch (const std::bad_alloc &) {
        reason = "this rank cannot make shared memory";
    }
    checkMpi(MPI_Allgather(&mine, 3, MPI_INT64_T, all.data(), 3, MPI_INT64_T, node.handle()), "MPI_Allgather");

    // Ranks that do not get so far, for want of memory, too, must not leave those waiting that do.
    std::exception_ptr failure;
    int works = arena ? 1 : 0;
    try {
        if (arena)
            arena->meet(all);
    } catch (...) {
        failure = std::current_exception();
        works = 0;
    }
    checkMpi(MPI_Allreduce(MPI_IN_PLACE, &works, 1, MPI_INT, MPI_MIN, node.handle()), "MPI_Allreduce");
    if (works == 1)
        return arena;
    node.guarded([&] {
        whyNot = reason;
        if (!failure)
            return;
        try {
            std::rethrow_exception(failure);
        } catch (const Error &error) {
            whyNot = error.message();
        }
    });
    return nullptr;
}

#else

NodeArena::NodeArena(int nodeRank, int nodeSize) : nodeRank_(nodeRank), peers_(static_cast<std::size_t>(nodeSize)) {}
NodeArena::~NodeArena() = default;
void NodeArena::addSegment(std::size_t) { throw std::bad_alloc(); }
NodeArena::Segment NodeArena::mapFile(long, int, std::size_t) {
    throw NotBuiltError("shared memory between ranks is built for Linux only");
}
bool NodeArena::alive(int) const noexcept { return true; }
std::shared_ptr<NodeArena> NodeArena::create(CommunicatorView, std::string &whyNot) {
    whyNot = "shared memory between ranks is built for Linux only";
    return nullptr;
}

#endif

const NodeArena::Segment &NodeArena::mapped(int nodeRank, std::uint32_t segment) {
    Peer &peer = peers_[static_cast<std::size_t>(nodeRank)];
    if (peer.segments.size() <= segment)
        peer.segments.resize(std::size_t{segment} + 1);
    Segment &wanted = peer.segments[segment];
    if (wanted.base == nullptr) {
        if (segment == 0) {
            wanted = mapFile(peer.process, peer.firstFile, 0);
        } else {
            const Header &header = headerOf(nodeRank);
            DNDS_CHECK(segment < header.count.load(std::memory_order_acquire), MemoryError,
                       "rank {} of the node has no shared segment {}", nodeRank, segment);
            wanted = mapFile(peer.process, header.entries[segment].file, header.entries[segment].bytes);
        }
    }
    return wanted;
}

const NodeArena::Header &NodeArena::headerOf(int nodeRank) {
    const std::byte *base = nodeRank == nodeRank_ ? own_.front().memory.base : mapped(nodeRank, 0).base;
    return *reinterpret_cast<const Header *>(base);
}

void *NodeArena::do_allocate(std::size_t bytes, std::size_t alignment) {
    const std::lock_guard lock(mutex_);
    alignment = std::max<std::size_t>(alignment, 64); // no two blocks share a cache line
    if (alignment > pageBytes || bytes > mostBytes)
        throw std::bad_alloc();
    const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + 63) / 64 * 64;
    const auto take = [&](OwnSegment &segment) -> std::byte * {
        const auto offset = segment.blocks.allocate(rounded, alignment);
        if (!offset)
            return nullptr;
        bytesInUse_ += rounded;
        ASAN_UNPOISON_MEMORY_REGION(segment.memory.base + *offset, bytes);
        return segment.memory.base + *offset;
    };
    for (OwnSegment &segment : own_)
        if (std::byte *const found = take(segment))
            return found;
    std::size_t total = 0;
    for (const OwnSegment &segment : own_)
        total += segment.memory.bytes;
    addSegment(std::max(rounded + alignment, total)); // doubles; pages are taken when touched
    return take(own_.back());
}

void NodeArena::do_deallocate(void *address, std::size_t bytes, std::size_t) {
    const std::lock_guard lock(mutex_);
    const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + 63) / 64 * 64;
    for (OwnSegment &segment : own_) {
        const auto offset = static_cast<std::size_t>(static_cast<std::byte *>(address) - segment.memory.base);
        if (address >= segment.memory.base && offset < segment.memory.bytes) {
            ASAN_POISON_MEMORY_REGION(address, rounded);
            try {
                segment.blocks.release(offset, rounded);
            } catch (const std::bad_alloc &) { // called by destructors: some shared memory stays taken
            }
            bytesInUse_ -= rounded;
            return;
        }
    }
}

std::optional<ArenaLocation> NodeArena::locate(const void *address) const {
    const std::lock_guard lock(mutex_);
    const auto *byte = static_cast<const std::byte *>(address);
    for (std::size_t s = 0; s < own_.size(); ++s) {
        const Segment &segment = own_[s].memory;
        if (byte >= segment.base && byte < segment.base + segment.bytes)
            return ArenaLocation{static_cast<std::uint32_t>(s), static_cast<std::uint64_t>(byte - segment.base)};
    }
    return std::nullopt;
}

std::byte *NodeArena::translate(int nodeRank, const ArenaLocation &location) {
    return mapped(nodeRank, location.segment).base + location.offset;
}

void NodeArena::publish(int reader, std::uint64_t round, const ArenaLocation &location) noexcept {
    auto &header = *reinterpret_cast<Header *>(own_.front().memory.base);
    Note &note = header.notes()[2 * static_cast<std::size_t>(reader) + round % 2];
    note.location = location;
    note.round.store(round + 1, std::memory_order_release);
}

std::optional<ArenaLocation> NodeArena::lookUp(int writer, std::uint64_t round) {
    const Note &note = headerOf(writer).notes()[2 * static_cast<std::size_t>(nodeRank_) + round % 2];
    if (note.round.load(std::memory_order_acquire) != round + 1)
        return std::nullopt;
    return note.location;
}

void NodeArena::retire(void *address, std::size_t bytes, const std::atomic<std::uint32_t> *until) noexcept {
    try {
        retired_.push_back({address, bytes, until});
    } catch (const std::bad_alloc &) {
        return; // a few lines of shared memory stay taken
    }
    reap();
}

void NodeArena::reap() noexcept {
    std::erase_if(retired_, [&](const Retired &retired) {
        const bool unused = retired.until == nullptr || retired.until->load(std::memory_order_acquire) != 0;
        if (unused)
            deallocate(retired.address, retired.bytes);
        return unused;
    });
}

std::size_t NodeArena::bytesInUse() const noexcept {
    const std::lock_guard lock(mutex_);
    return bytesInUse_;
}

} // namespace DNDS
