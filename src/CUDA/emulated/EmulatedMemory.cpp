#include "EmulatedMemory.hpp"

#include "DNDS/Base/Error.hpp"

#include <cerrno>
#include <cstring>
#include <exception>
#include <iterator>
#include <string>
#include <type_traits>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace DNDS::Device {

namespace {

/// Begins every handle.
constexpr std::uint64_t handleMark = 0x444E4453454D5531; // "DNDSEMU1"

/// The content of a SharedHandle, which identifies a byte of emulated device memory to other processes.
struct Share {
    std::uint64_t mark = handleMark;
    std::int64_t process = 0;
    std::int64_t file = 0;    ///< descriptor in that process
    std::uint64_t inode = 0;  ///< inode, which tells apart processes that reuse a number
    std::uint64_t begin = 0;  ///< begin of the allocation in the file
    std::uint64_t bytes = 0;  ///< size of the allocation
    std::uint64_t offset = 0; ///< offset of the byte in the allocation
    void *address = nullptr;  ///< address of the byte in that process
};
static_assert(std::is_trivially_copyable_v<Share> && sizeof(Share) <= sizeof(SharedHandle));

[[noreturn]] void throwNoMemory(std::size_t bytes, int error) {
    throw MemoryError(fmt::format("emulated device: no room for {} bytes ({})", bytes, std::strerror(error)));
}

// Null on failure.
std::byte *mapFile(int file, std::uint64_t begin, std::size_t bytes, int protection) {
    void *pointer = ::mmap(nullptr, bytes, protection, MAP_SHARED, file, static_cast<off_t>(begin));
    return pointer == MAP_FAILED ? nullptr : static_cast<std::byte *>(pointer);
}

// Protection works in whole pages. Accesses past the end of an array but within its last page go unnoticed.
std::size_t inPages(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return (bytes + page - 1) / page * page;
}

} // namespace

// At the first allocation. Closed on exec; other processes open it by /proc.
void EmulatedMemory::openFile() {
    if (file_ < 0)
        file_ = ::memfd_create("DNDS emulated device memory", MFD_CLOEXEC);
    if (file_ < 0)
        throw MemoryError(fmt::format("emulated device: no memory file ({})", std::strerror(errno)));
}

// Two mappings of the same pages; allocated during a kernel, the user's is open at once.
// If either mapping fails, neither remains. The caller holds the mutex.
std::byte *EmulatedMemory::map(int file, std::uint64_t begin, std::size_t bytes, std::size_t mapped, bool foreign) {
    std::byte *user = mapFile(file, begin, mapped, openings_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
    std::byte *alias = user ? mapFile(file, begin, mapped, PROT_READ | PROT_WRITE) : nullptr;
    if (!alias) {
        const int error = errno;
        if (user)
            ::munmap(user, mapped);
        throwNoMemory(bytes, error);
    }
    blocks_.emplace(user, Block{alias, bytes, mapped, begin, foreign});
    return user;
}

// O(bytes) to fill, and two mappings. The file is extended before it is mapped, so no access beyond its end can
// raise SIGBUS.
void *EmulatedMemory::allocate(std::size_t bytes) {
    if (bytes > static_cast<std::size_t>(PTRDIFF_MAX) / 2)
        throwNoMemory(bytes, ENOMEM);
    const std::size_t mapped = inPages(bytes);
    const std::scoped_lock guard(mutex_);
    openFile();
    // The file only grows: places of freed blocks are holes and are not used again.
    if (::ftruncate(file_, static_cast<off_t>(fileEnd_ + mapped)) != 0)
        throwNoMemory(bytes, errno);
    std::byte *user = map(file_, fileEnd_, bytes, mapped, false);
    fileEnd_ += mapped;
    // Fresh device memory is not zero: signalling bytes expose code that relies on it.
    std::memset(blocks_.at(user).alias, 0xFB, mapped);
    return user;
}

void EmulatedMemory::unmap(Blocks::const_iterator block) noexcept {
    ::munmap(block->second.alias, block->second.mapped);
    ::munmap(const_cast<std::byte *>(block->first), block->second.mapped);
    blocks_.erase(block);
}

// Punching a hole returns the memory, while other processes that have it open read zeros instead of faulting.
void EmulatedMemory::deallocate(void *pointer) noexcept {
    const std::scoped_lock guard(mutex_);
    const auto found = blocks_.find(static_cast<std::byte *>(pointer));
    if (found == blocks_.end() || found->second.foreign)
        std::terminate(); // a double free, or not device memory of this process
    // Memory that cannot be freed here is freed when the process ends.
    static_cast<void>(::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                  static_cast<off_t>(found->second.begin), static_cast<off_t>(found->second.mapped)));
    unmap(found);
}

// A range of no bytes may start at an allocation's end.
// O(log allocations): the last block that begins at or before the address is the only candidate, as blocks are
// disjoint.
EmulatedMemory::Blocks::const_iterator EmulatedMemory::find(const void *pointer, std::size_t bytes) const {
    const auto *wanted = static_cast<const std::byte *>(pointer);
    auto after = blocks_.upper_bound(wanted);
    if (after != blocks_.begin()) {
        const auto &[user, block] = *--after;
        const auto offset = static_cast<std::size_t>(wanted - user);
        if (offset <= block.bytes && bytes <= block.bytes - offset)
            return after;
    }
    throw ArgumentError(
        fmt::format("emulated device: [{}, +{}) is not within one allocation of device memory", pointer, bytes));
}

// The address of the mapping that is always open, for copies.
std::byte *EmulatedMemory::alias(const void *pointer, std::size_t bytes) const {
    const std::scoped_lock guard(mutex_);
    const auto block = find(pointer, bytes);
    return block->second.alias + (static_cast<const std::byte *>(pointer) - block->first);
}

SharedHandle EmulatedMemory::share(const void *pointer) const {
    const std::scoped_lock guard(mutex_);
    const auto block = find(pointer, 0);
    DNDS_CHECK(!block->second.foreign, ArgumentError,
               "emulated device: memory that another process shared cannot be shared on");
    struct ::stat status {};
    DNDS_CHECK(::fstat(file_, &status) == 0, StateError, "emulated device: {}", std::strerror(errno));
    const Share shared{
        handleMark,
        ::getpid(),
        file_,
        status.st_ino,
        block->second.begin,
        block->second.bytes,
        static_cast<std::uint64_t>(static_cast<const std::byte *>(pointer) - block->first),
        const_cast<void *>(pointer), // NOLINT
    };
    SharedHandle handle;
    std::memcpy(handle.bytes.data(), &shared, sizeof(shared));
    return handle;
}

// The inode tells whether the process number has been reused by a program with other files.
// Mappings share pages with the owner: writes of either process are visible to the other at once, as with CUDA IPC.
void *EmulatedMemory::open(const SharedHandle &handle) {
    Share shared;
    std::memcpy(&shared, handle.bytes.data(), sizeof(shared));
    DNDS_CHECK(shared.mark == handleMark, ArgumentError,
               "emulated device: this is not a handle of shared device memory");
    if (shared.process == ::getpid())
        return shared.address;
    const std::string path = fmt::format("/proc/{}/fd/{}", shared.process, shared.file);
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    DNDS_CHECK(file >= 0, StateError,
               "emulated device: cannot open the memory of process {} ({}): it has ended, or belongs to another "
               "user, machine or container",
               shared.process, std::strerror(errno));
    struct ::stat status {};
    const bool same = ::fstat(file, &status) == 0 && status.st_ino == shared.inode &&
                      shared.begin + inPages(shared.bytes) <= static_cast<std::uint64_t>(status.st_size);
    if (!same) {
        ::close(file);
        throw ArgumentError(
            fmt::format("emulated device: process {} does not have the memory that the handle names", shared.process));
    }
    const std::scoped_lock guard(mutex_);
    std::byte *user = nullptr;
    const std::exception_ptr failure =
        attempt([&] { user = map(file, shared.begin, shared.bytes, inPages(shared.bytes), true); });
    ::close(file); // mappings keep it alive
    if (failure)
        std::rethrow_exception(failure);
    return user + shared.offset;
}

void EmulatedMemory::close(void *pointer) noexcept {
    const std::scoped_lock guard(mutex_);
    const auto after = blocks_.upper_bound(static_cast<std::byte *>(pointer));
    if (after == blocks_.begin())
        std::terminate(); // was not opened
    const auto block = std::prev(after);
    if (block->second.foreign && pointer < block->first + block->second.mapped) // or it was shared within the process
        unmap(block);
}

// All or nothing: while any kernel runs, all threads of the process can access device memory.
void EmulatedMemory::protectAll(int protection) const noexcept {
    for (const auto &[user, block] : blocks_)
        if (::mprotect(const_cast<std::byte *>(user), block.mapped, protection) != 0)
            std::terminate(); // only if the mapping is no longer ours
}

// Counts kernels that run at the same time. Device memory is mapped twice: kernels use the user's addresses, which the
// host cannot touch between kernels (SIGSEGV), while copies go through `alias`.
// O(allocations) system calls at the first kernel and after the last one; kernels that overlap only count.
void EmulatedMemory::unlock() {
    const std::scoped_lock guard(mutex_);
    if (openings_++ == 0)
        protectAll(PROT_READ | PROT_WRITE);
}

void EmulatedMemory::lock() noexcept {
    const std::scoped_lock guard(mutex_);
    if (--openings_ == 0)
        protectAll(PROT_NONE);
}

} // namespace DNDS::Device
