#include "DNDS/Task/TraceFile.hpp"

#include "DNDS/Base/Error.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace DNDS::Task {

namespace {

// Between start and end there is always at least one event, so appends begin with a comma.
constexpr std::string_view start = "[\n";
constexpr std::string_view end = "\n]\n";

std::string reasonOf(int error) { return std::generic_category().message(error); }

// Names the environment variable, as no code of the program has given the path.
[[noreturn]] void refuse(const std::string &path, std::string_view reason) {
    throw ArgumentError(fmt::format("the trace '{}' (DNDS_TRACE) cannot be written: {}", path, reason));
}

/// Returns 0 or `errno`. All of `text` at `position`, in as many calls of pwrite as it takes.
int writeAll(int file, std::string_view text, std::size_t position) {
    rlimit limit{}; // beyond it, writing would end the process with SIGXFSZ
    if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        position + text.size() > limit.rlim_cur)
        return EFBIG;
    while (!text.empty()) {
        const ssize_t written = ::pwrite(file, text.data(), text.size(), static_cast<off_t>(position));
        if (written < 0 && errno != EINTR)
            return errno;
        const auto count = static_cast<std::size_t>(std::max<ssize_t>(written, 0));
        text.remove_prefix(count);
        position += count;
    }
    return 0;
}

} // namespace

TraceFile::TraceFile(std::string where, std::string event, int flags)
    : path(std::move(where)), firstEvent(std::move(event)) {
    // Only regular files are opened: others may wait (a pipe) or have effects (a tape).
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
        refuse(path, S_ISDIR(status.st_mode) ? "it is a folder" : "it is not a file but a device or pipe");
    file_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC | flags, 0666);
    if (file_ < 0)
        refuse(path, reasonOf(errno));
}

TraceFile::~TraceFile() { ::close(file_); }

// Complete JSON from the start: viewers can read the file at any time.
std::unique_ptr<TraceFile> TraceFile::create(std::string path, std::string event) {
    std::unique_ptr<TraceFile> made(new TraceFile(std::move(path), std::move(event), O_CREAT));
    int error = ::ftruncate(made->file_, 0) != 0 ? errno : 0;
    if (error == 0)
        error = writeAll(made->file_, fmt::format("{}{}{}", start, made->firstEvent, end), 0);
    if (error != 0)
        refuse(made->path, reasonOf(error));
    return made;
}

/// The first event has an id of rank 0's process and time: it tells a shared file from one of the same name on a
/// local disk.
std::unique_ptr<TraceFile> TraceFile::join(std::string path, std::string event) {
    std::unique_ptr<TraceFile> joined(new TraceFile(std::move(path), std::move(event), 0));
    const std::string expected = fmt::format("{}{}", start, joined->firstEvent);
    std::string found(expected.size(), '\0');
    if (::pread(joined->file_, found.data(), found.size(), 0) < 0 || found != expected)
        refuse(joined->path, "rank 0 made another file of that name, on a disk of its own perhaps: choose a folder "
                             "that all machines share");
    return joined;
}

/// The lock of the whole file (flock) orders appends of all processes; on a network file system it depends on the
/// system whether it reaches other machines. After a failed write the old end is put back, which fits where it was.
/// Each append overwrites the closing bracket and writes it again after its events: the file is complete JSON between
/// appends. O(bytes of the events), whatever the length of the file.
int TraceFile::append(const std::string &events) {
    while (::flock(file_, LOCK_EX) != 0)
        if (errno != EINTR)
            return errno;
    const auto place = ::lseek(file_, 0, SEEK_END) - static_cast<off_t>(end.size());
    int error = writeAll(file_, fmt::format(",\n{}{}", events, end), static_cast<std::size_t>(place));
    if (error != 0 && writeAll(file_, end, static_cast<std::size_t>(place)) == 0 && // the old end had room
        ::ftruncate(file_, place + static_cast<off_t>(end.size())) != 0)
        error = errno;
    ::flock(file_, LOCK_UN);
    return error;
}

} // namespace DNDS::Task
