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
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace DNDS {

namespace {

constexpr std::size_t mostSegments = 64;
constexpr std::size_t firstSegmentBytes = std::size_t{1} << 20U;
constexpr std::size_t pageBytes = 4096;                      ///< segments begin at multiples of it, perhaps of more
constexpr std::size_t mostBytes = std::size_t{1} << 46U;     ///< of one allocation, far below where sums overflow
constexpr std::size_t leastReturned = std::size_t{1} << 20U; ///< less is not worth a system call
constexpr std::size_t reservedAtOnce = std::size_t{1} << 22U;
constexpr std::chrono::seconds soon(1); ///< what is allocated again within it should have been kept

std::size_t roundedUp(std::size_t bytes, std::size_t granule) { return (bytes + granule - 1) / granule * granule; }

std::size_t blockBytes(std::size_t bytes) { return roundedUp(std::max<std::size_t>(bytes, 1), 64); }

/// Says why; its text needs no memory.
class NoSharedMemory : public std::bad_alloc {
  public:
    template <class... Arguments>
    explicit NoSharedMemory(fmt::format_string<Arguments...> format, Arguments &&...arguments) noexcept {
        *fmt::format_to_n(text_.data(), text_.size() - 1, format, std::forward<Arguments>(arguments)...).out = '\0';
    }
    const char *what() const noexcept override { return text_.data(); }

  private:
    std::array<char, 256> text_;
};

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
        throw NoSharedMemory("this rank's shared memory is in {} segments already", mostSegments);
    bytes = roundedUp(bytes, SegmentPages::granule);
    BlockAllocator blocks(bytes);
    SegmentPages pages(bytes);
    own_.reserve(own_.size() + 1); // nothing below fails when the memory is there
    // Growing a file beyond the limit would end the process with SIGXFSZ.
    rlimit limit{};
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur)
        throw NoSharedMemory("shared memory counts as a file: {} bytes are needed, but the limit on the size of files "
                             "is {}; raise it with ulimit -f",
                             bytes, limit.rlim_cur);
    Segment memory{nullptr, bytes, memfd_create("dnds-arena", MFD_CLOEXEC)};
    if (memory.file < 0)
        throw NoSharedMemory("memfd_create failed: {}", std::strerror(errno));
    try {
        void *base = MAP_FAILED;
        if (ftruncate(memory.file, static_cast<off_t>(bytes)) == 0)
            base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.file, 0);
        if (base == MAP_FAILED)
            throw NoSharedMemory("{} bytes of shared memory cannot be mapped: {}", bytes, std::strerror(errno));
        memory.base = static_cast<std::byte *>(base);
        if (own_.empty()) {
            blocks.allocate(headerBytes(), 64);
            pages.take(0, headerBytes(), [&](const SegmentPages::Range &range) { reserveMemory(memory, range); });
        }
    } catch (...) {
        if (memory.base != nullptr)
            munmap(memory.base, bytes);
        close(memory.file);
        throw;
    }
    own_.push_back(OwnSegment{memory, std::move(blocks), std::move(pages)});
    if (own_.size() == 1) {
        auto *header = new (memory.base) Header{};
        for (std::size_t n = 0; n < 2 * peers_.size(); ++n)
            new (header->notes() + n) Note;
    }
    const std::size_t used = own_.size() == 1 ? headerBytes() : 0;
    ASAN_POISON_MEMORY_REGION(memory.base + used, bytes - used);
    auto &header = *reinterpret_cast<Header *>(own_.front().memory.base);
    header.entries[own_.size() - 1] = {memory.file, bytes};
    header.count.store(static_cast<std::uint32_t>(own_.size()), std::memory_order_release);
}

/// In pieces, because each begins anew when a signal arrives, as it does all the time under some profilers.
void NodeArena::reserveMemory(const Segment &segment, const SegmentPages::Range &range) {
    const std::size_t end = range.begin + range.bytes;
    for (std::size_t begin = range.begin; begin < end;) {
        const std::size_t bytes = std::min(end - begin, reservedAtOnce);
        if (fallocate(segment.file, 0, static_cast<off_t>(begin), static_cast<off_t>(bytes)) == 0) {
            begin += bytes;
            continue;
        }
        if (errno == EINTR)
            continue;
        if (errno == EOPNOTSUPP || errno == ENOSYS)
            return; // memory comes when it is touched
        throw NoSharedMemory("the system has no {} bytes of shared memory: {}", range.bytes, std::strerror(errno));
    }
}

void NodeArena::returnMemory(OwnSegment &segment, const SegmentPages::Range &range) noexcept {
    if (fallocate(segment.memory.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(range.begin),
                  static_cast<off_t>(range.bytes)) != 0)
        return; // it stays, and may be used again
    segment.pages.noteReturned(range);
    const auto now = std::chrono::steady_clock::now();
    recentlyReturned_ = range.bytes + (now - lastReturn_ < soon ? recentlyReturned_ : 0);
    lastReturn_ = now;
}

std::size_t NodeArena::bytesHeld() const noexcept {
    const std::lock_guard lock(mutex_);
    std::size_t held = 0;
    struct stat info {};
    for (const OwnSegment &segment : own_)
        if (fstat(segment.memory.file, &info) == 0)
            held += static_cast<std::size_t>(info.st_blocks) * 512;
    return held;
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
    std::exception_ptr failure;
    Announcement mine;
    try {
        arena.reset(new NodeArena(node.rank(), node.size()));
        auto &header = *reinterpret_cast<Header *>(arena->own_.front().memory.base);
        // Differs between ranks whose process numbers and addresses are equal, as they may be in two containers.
        header.mark = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&header)) ^
                      (static_cast<std::uint64_t>(getpid()) << 40U) ^ static_cast<std::uint64_t>(node.rank());
        mine = {getpid(), arena->own_.front().memory.file, static_cast<std::int64_t>(header.mark)};
    } catch (const std::bad_alloc &) {
        failure = std::current_exception();
    }
    checkMpi(MPI_Allgather(&mine, 3, MPI_INT64_T, all.data(), 3, MPI_INT64_T, node.handle()), "MPI_Allgather");

    // Ranks that do not get so far, for want of memory, too, must not leave those waiting that do.
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
        whyNot = "another rank of the node cannot map shared memory";
        if (!failure)
            return;
        try {
            std::rethrow_exception(failure);
        } catch (const Error &error) {
            whyNot = error.message();
        } catch (const std::bad_alloc &error) {
            whyNot = fmt::format("this rank cannot make shared memory: {}", error.what());
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
void NodeArena::reserveMemory(const Segment &, const SegmentPages::Range &) {}
void NodeArena::returnMemory(OwnSegment &, const SegmentPages::Range &) noexcept {}
std::size_t NodeArena::bytesHeld() const noexcept { return 0; }
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

std::byte *NodeArena::take(OwnSegment &segment, std::size_t bytes, std::size_t alignment) {
    const auto offset = segment.blocks.allocate(bytes, alignment);
    if (!offset)
        return nullptr;
    const std::size_t unused = segment.pages.unusedBytes();
    std::size_t reserved = 0;
    try {
        segment.pages.take(*offset, bytes, [&](const SegmentPages::Range &range) {
            reserveMemory(segment.memory, range);
            reserved += range.bytes;
        });
    } catch (...) {
        segment.blocks.release(*offset, bytes);
        returnAllUnused(); // others may need it
        throw;
    }
    if (reserved > 0 || segment.pages.unusedBytes() < unused)
        noteReuse(reserved);
    bytesInUse_ += bytes;
    return segment.memory.base + *offset;
}

/// Doubles where that is possible, so that segments stay few; else as much as there is, down to what is needed.
void NodeArena::grow(std::size_t needed) {
    std::size_t wanted = 0;
    for (const OwnSegment &segment : own_)
        wanted += segment.memory.bytes;
    for (; wanted > needed; wanted /= 2)
        try {
            return addSegment(wanted);
        } catch (const std::bad_alloc &) {
            continue;
        }
    addSegment(needed);
}

void *NodeArena::do_allocate(std::size_t bytes, std::size_t alignment) {
    alignment = std::max<std::size_t>(alignment, 64); // no two blocks share a cache line
    if (alignment > pageBytes || bytes > mostBytes)
        throw std::bad_alloc();
    if (inForkedChild())
        return ::operator new (bytes, std::align_val_t{alignment});
    const std::lock_guard lock(mutex_);
    forgetReuse();
    const std::size_t rounded = blockBytes(bytes);
    std::byte *found = nullptr;
    for (auto segment = own_.begin(); segment != own_.end() && found == nullptr; ++segment)
        found = take(*segment, rounded, alignment);
    if (found == nullptr) {
        grow(rounded + alignment);
        found = take(own_.back(), rounded, alignment);
    }
    ASAN_UNPOISON_MEMORY_REGION(found, bytes);
    return found;
}

void NodeArena::do_deallocate(void *address, std::size_t bytes, std::size_t alignment) {
    if (inForkedChild()) { // another thread of the parent may have held the lock when it forked
        const bool shared = std::ranges::any_of(own_, [&](const OwnSegment &segment) {
            return address >= segment.memory.base && address < segment.memory.base + segment.memory.bytes;
        });
        if (!shared)
            ::operator delete (address, std::align_val_t{std::max<std::size_t>(alignment, 64)});
        return;
    }
    const std::lock_guard lock(mutex_);
    forgetReuse();
    release(address, bytes);
}

void NodeArena::release(void *address, std::size_t bytes) noexcept {
    const std::size_t rounded = blockBytes(bytes);
    for (OwnSegment &segment : own_) {
        const auto offset = static_cast<std::size_t>(static_cast<std::byte *>(address) - segment.memory.base);
        if (address < segment.memory.base || offset >= segment.memory.bytes)
            continue;
        ASAN_POISON_MEMORY_REGION(address, rounded);
        const SegmentPages::Range unused = segment.pages.release(offset, rounded);
        if (unused.bytes >= leastReturned && unusedBytes() > keep_)
            returnMemory(segment, unused);
        try {
            segment.blocks.release(offset, rounded);
        } catch (const std::bad_alloc &) { // called by destructors: its addresses stay taken
        }
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
            if (unused.bytes >= leastReturned)
                returnMemory(segment, unused);
}

/// After an allocation that took unused memory, or had to reserve some: what was returned shortly before had better
/// been kept.
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

/// Before each change: what has not been used again for a while is not kept any longer.
void NodeArena::forgetReuse() noexcept {
    if (keep_ == 0 || std::chrono::steady_clock::now() - lastReuse_ < soon)
        return;
    keep_ = 0;
    returnAllUnused();
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
    const std::lock_guard lock(mutex_);
    return mapped(nodeRank, location.segment).base + location.offset;
}

void NodeArena::publish(int reader, std::uint64_t round, const ArenaLocation &location) noexcept {
    auto &header = *reinterpret_cast<Header *>(own_.front().memory.base);
    Note &note = header.notes()[2 * static_cast<std::size_t>(reader) + round % 2];
    note.location = location;
    note.round.store(round + 1, std::memory_order_release);
}

std::optional<ArenaLocation> NodeArena::lookUp(int writer, std::uint64_t round) {
    const std::lock_guard lock(mutex_);
    const Note &note = headerOf(writer).notes()[2 * static_cast<std::size_t>(nodeRank_) + round % 2];
    if (note.round.load(std::memory_order_acquire) != round + 1)
        return std::nullopt;
    return note.location;
}

void NodeArena::retire(void *address, std::size_t bytes, const std::atomic<std::uint32_t> *until) noexcept {
    if (inForkedChild())
        return;
    const std::lock_guard lock(mutex_);
    try {
        retired_.push_back({address, bytes, until});
    } catch (const std::bad_alloc &) {
        return; // a few lines of shared memory stay taken
    }
    reapRetired();
}

void NodeArena::reap() noexcept {
    const std::lock_guard lock(mutex_);
    forgetReuse();
    reapRetired();
}

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
