#include "DNDS/Mpi/SharedSegment.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

// Under the address sanitizer, unallocated memory of an arena is as forbidden as that of the heap.
#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

#include <csignal>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace DNDS {

void SharedSegment::forbid(void *address, std::size_t bytes) noexcept { ASAN_POISON_MEMORY_REGION(address, bytes); }
void SharedSegment::allow(void *address, std::size_t bytes) noexcept { ASAN_UNPOISON_MEMORY_REGION(address, bytes); }

// The inode of the namespace tells whether numbers of processes mean the same in two containers.
ProcessId ProcessId::own() noexcept {
    struct stat info {};
    const bool known = stat("/proc/self/ns/pid", &info) == 0;
    return {getpid(), known ? static_cast<std::int64_t>(info.st_ino) : 0};
}

// EPERM also means that the process exists. A number that was reused looks alive.
bool ProcessId::alive() const noexcept { return kill(static_cast<pid_t>(process), 0) == 0 || errno != ESRCH; }

ProcessState ProcessId::state() const noexcept {
    if (!alive())
        return ProcessState::Ended;
    // Signal 0 finds zombies alive: /proc tells them from running processes. If it cannot be read, the process
    // counts as running.
    std::array<char, 512> text{};
    std::array<char, 64> path{};
    std::snprintf(path.data(), path.size(), "/proc/%lld/stat", static_cast<long long>(process));
    const int file = open(path.data(), O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return ProcessState::Runs;
    const ssize_t size = read(file, text.data(), text.size() - 1);
    close(file);
    // "PID (NAME) STATE ...", and the name may hold anything
    const char *end = size > 0 ? std::strrchr(text.data(), ')') : nullptr;
    const char letter = end != nullptr && end[1] == ' ' ? end[2] : 'R';
    return letter == 'T' || letter == 't'   ? ProcessState::Stopped
           : letter == 'Z' || letter == 'X' ? ProcessState::Ended
                                            : ProcessState::Runs;
}

SharedSegment::~SharedSegment() {
    if (base_ != nullptr) {
        allow(base_, bytes_); // others may be mapped there next
        munmap(base_, bytes_);
    }
    if (file_ >= 0)
        close(file_);
}

// An anonymous file instead of shm_open: it has no name that could outlive a killed job, and no /dev/shm of fixed size
// limits it. Memory is committed by `reserve` only, so that a shortage is an error and not a SIGBUS.
SharedSegment SharedSegment::make(std::size_t bytes) {
    // Growing a file beyond the limit would end the process with SIGXFSZ.
    rlimit limit{};
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur)
        throw NoMemory("shared memory counts as a file: {} bytes are needed, but the limit on the size of files "
                       "is {}; raise it with ulimit -f",
                       bytes, limit.rlim_cur);
    SharedSegment made;
    made.file_ = memfd_create("dnds-arena", MFD_CLOEXEC);
    if (made.file_ < 0)
        throw NoMemory("memfd_create failed: {}", std::strerror(errno));
    void *base = MAP_FAILED;
    if (ftruncate(made.file_, static_cast<off_t>(bytes)) == 0)
        base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, made.file_, 0);
    if (base == MAP_FAILED)
        throw NoMemory("{} bytes of shared memory cannot be mapped: {}", bytes, std::strerror(errno));
    made.base_ = static_cast<std::byte *>(base);
    made.bytes_ = bytes;
    return made;
}

// Any process of the same user and namespace can open it by number, while the owner lives. The descriptor is closed
// at once: the mapping keeps the memory.
SharedSegment SharedSegment::open(const ProcessId &owner, int file, std::size_t atLeast) {
    // The link in /proc opens a memfd, which has no name in any file system. That needs the permission to inspect
    // the owner: usually, to be the same user.
    const std::string path = fmt::format("/proc/{}/fd/{}", owner.process, file);
    const int opened = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    DNDS_CHECK(opened >= 0, MemoryError, "cannot open shared memory of process {}: {}", owner.process,
               std::strerror(errno));
    struct stat info {};
    void *base = MAP_FAILED;
    int reason = EINVAL;
    std::size_t bytes = 0;
    if (fstat(opened, &info) != 0) {
        reason = errno;
    } else if (bytes = static_cast<std::size_t>(info.st_size); bytes > 0 && bytes >= atLeast) {
        base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
        reason = errno;
    }
    close(opened);
    DNDS_CHECK(base != MAP_FAILED, MemoryError, "cannot map shared memory of process {}: {}", owner.process,
               std::strerror(reason));
    SharedSegment mapped;
    mapped.base_ = static_cast<std::byte *>(base);
    mapped.bytes_ = bytes;
    return mapped;
}

/// In pieces, because each restarts when a signal arrives, as it does all the time under some profilers.
void SharedSegment::reserve(const SegmentPages::Range &range) const {
    constexpr std::size_t atOnce = std::size_t{1} << 22U;
    const std::size_t end = range.begin + range.bytes;
    for (std::size_t begin = range.begin; begin < end;) {
        const std::size_t bytes = std::min(end - begin, atOnce);
        if (fallocate(file_, 0, static_cast<off_t>(begin), static_cast<off_t>(bytes)) == 0) {
            begin += bytes;
            continue;
        }
        if (errno == EINTR)
            continue;
        if (errno == EOPNOTSUPP || errno == ENOSYS)
            return; // memory comes when it is touched
        throw NoMemory("the system has no {} bytes of shared memory: {}", range.bytes, std::strerror(errno));
    }
}

bool SharedSegment::giveBack(const SegmentPages::Range &range) const noexcept {
    // A hole: mappings of all processes stay valid, and read zeros there.
    return fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(range.begin),
                     static_cast<off_t>(range.bytes)) == 0;
}

std::size_t SharedSegment::held() const noexcept {
    struct stat info {};
    return fstat(file_, &info) == 0 ? static_cast<std::size_t>(info.st_blocks) * 512 : 0;
}

} // namespace DNDS
