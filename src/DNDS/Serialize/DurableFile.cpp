#include "DNDS/Serialize/DurableFile.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Serialize/Checkpoint.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace DNDS {

namespace {

[[noreturn]] void fail(const std::string &path, const std::string &what, int code) {
    throw DataError(fmt::format("{} {}: {}", path, what, std::strerror(code)));
}

// Closed on exec, so that programs that DNDS starts do not keep it open.
int opened(const std::string &path, int flags, const char *what) {
    const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0666); // NOLINT: variadic by POSIX
    if (descriptor < 0)
        fail(path, what, errno);
    return descriptor;
}

/// Writing beyond a limit (ulimit -f) ends a process by a signal: throw before.
void checkLimit(const std::string &path, index bytes) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        DNDS_CHECK(static_cast<rlim_t>(bytes) <= limit.rlim_cur, DataError,
                   "{} would have {} bytes, but this process may write files of at most {} (ulimit -f)", path, bytes,
                   limit.rlim_cur);
}

/// Reserves disk space for bytes of a file, if the file system supports it.
/// Not posix_fallocate, which writes to every block of the file where the file system cannot reserve space.
void allocate(const std::string &path, int descriptor, int mode, index place, index bytes) {
    int result = 0;
    do
        result = ::fallocate(descriptor, mode, place, bytes);
    while (result != 0 && errno == EINTR);
    if (result != 0 && errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL)
        fail(path, fmt::format("has no room for {} bytes{}", bytes, place > 0 ? " more" : ""), errno);
}

} // namespace

DurableFile DurableFile::forReading(const std::string &path) {
    return {path, opened(path, O_RDONLY, "cannot be opened")};
}

DurableFile DurableFile::forWriting(const std::string &path) {
    return {path, opened(path, O_WRONLY, "cannot be opened for writing")};
}

DurableFile DurableFile::create(const std::string &path, index bytes) {
    checkLimit(path, bytes);
    DurableFile file(path, opened(path, O_WRONLY | O_CREAT | O_TRUNC, "cannot be created"));
    file.reserve(bytes);
    return file;
}

void DurableFile::reserve(index bytes) const {
    // Never makes a file shorter.
    if (bytes <= size())
        return;
    checkLimit(path_, bytes);
    allocate(path_, descriptor_, 0, 0, bytes);
    // File systems without reservations get the size alone.
    if (size() < bytes && ::ftruncate(descriptor_, bytes) != 0)
        fail(path_, fmt::format("has no room for {} bytes", bytes), errno);
}

// Keeps the size, which other programs see.
void DurableFile::reserveBehind(index bytes) const {
    const index now = size();
    DNDS_CHECK(bytes <= std::numeric_limits<index>::max() - now, DataError, "{} has no room for {} bytes more", path_,
               bytes);
    checkLimit(path_, now + bytes);
    allocate(path_, descriptor_, FALLOC_FL_KEEP_SIZE, now, bytes);
}

// Truncating to the present size frees blocks reserved beyond it.
void DurableFile::giveBackBehind() const {
    if (::ftruncate(descriptor_, size()) != 0)
        fail(path_, "cannot be cut where it ends", errno);
}

DurableFile::DurableFile(DurableFile &&other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

DurableFile &DurableFile::operator=(DurableFile &&other) noexcept {
    // The other object closes what this one had open.
    path_.swap(other.path_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
}

DurableFile::~DurableFile() {
    if (descriptor_ >= 0)
        ::close(descriptor_);
}

index DurableFile::size() const {
    // Asked each time: other processes may extend the file.
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0)
        fail(path_, "cannot be examined", errno);
    return status.st_size;
}

// System calls may transfer less than asked for, or be interrupted by signals.
void DurableFile::readAt(index place, std::span<std::byte> bytes) const {
    while (!bytes.empty()) {
        const ssize_t count = ::pread(descriptor_, bytes.data(), bytes.size(), place);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            fail(path_, fmt::format("cannot be read at byte {}", place), errno);
        DNDS_CHECK(count > 0, DataError, "{} is truncated: it ends at byte {}", path_, place);
        bytes = bytes.subspan(static_cast<std::size_t>(count));
        place += count;
    }
}

// pwrite needs no file position, so threads and processes may write disjoint ranges of one file at the same time.
void DurableFile::writeAt(index place, std::span<const std::byte> bytes) const {
    if (!bytes.empty())
        checkLimit(path_, place + static_cast<index>(bytes.size()));
    while (!bytes.empty()) {
        const ssize_t count = ::pwrite(descriptor_, bytes.data(), bytes.size(), place);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            fail(path_, fmt::format("cannot be written at byte {}", place), count < 0 ? errno : ENOSPC);
        bytes = bytes.subspan(static_cast<std::size_t>(count));
        place += count;
    }
}

void DurableFile::flush() const {
    // Data and size only reach the disk by this call.
    int result = 0;
    do
        result = ::fsync(descriptor_);
    while (result != 0 && errno == EINTR);
    if (result != 0 && errno != EINVAL && errno != EROFS) // cannot be synchronised, such as pipes
        fail(path_, "cannot be synchronised to the disk", errno);
}

void flushToDisk(const std::string &path) { DurableFile::forReading(path).flush(); }

// The file first, then the name: after a loss of power the name refers to the old content or to the new. POSIX: rename
// is atomic, but durable only when the folder is synchronised.
void renameDurably(const std::string &from, const std::string &to) {
    flushToDisk(from);
    if (std::rename(from.c_str(), to.c_str()) != 0)
        fail(from, fmt::format("cannot be renamed to {}", to), errno);
    const std::string folder = std::filesystem::path(to).parent_path().string();
    flushToDisk(folder.empty() ? "." : folder);
}

} // namespace DNDS
