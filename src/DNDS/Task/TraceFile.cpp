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

constexpr std::string_view start = "[\n";
constexpr std::string_view end = "\n]\n";
/// More than any event has (`Trace` cuts names).
constexpr std::size_t longestEvent = std::size_t{1} << 16;

std::string reasonOf(int error) { return std::generic_category().message(error); }

[[noreturn]] void refuse(const std::string &path, std::string_view reason) {
    throw ArgumentError(fmt::format("the trace '{}' (DNDS_TRACE) cannot be written: {}", path, reason));
}

/// 0 or `errno`.
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

/// What a file of `size` bytes holds from `position`; shorter where that cannot be read.
std::string readFrom(int file, std::size_t position, std::size_t size) {
    std::string text(size - position, '\0');
    const ssize_t got = ::pread(file, text.data(), text.size(), static_cast<off_t>(position));
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return text;
}

/// The end of the last whole event in a file of `size` bytes, or npos where no event ends.
std::size_t endOfEvents(int file, std::size_t size) {
    const auto search = [&](std::size_t length) {
        const std::size_t position = size - std::min(size, length);
        const std::string tail = readFrom(file, position, size);
        // Names have no line breaks, so that one after a brace ends an event.
        const std::size_t found = std::max(tail.rfind("}\n") + 1, tail.rfind("},\n") + 1); // npos + 1 is 0
        return found == 0 ? std::string::npos : position + found;
    };
    const std::size_t found = search(end.size() + 1); // of a file that nobody tore
    return found != std::string::npos ? found : search(longestEvent);
}

} // namespace

TraceFile::TraceFile(std::string where, std::string event, int flags)
    : path(std::move(where)), firstEvent(std::move(event)) {
    // Other kinds are not opened: that may wait (a pipe) or have effects (a tape).
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
        refuse(path, S_ISDIR(status.st_mode) ? "it is a folder" : "it is not a file but a device or pipe");
    file_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC | flags, 0666);
    if (file_ < 0)
        refuse(path, reasonOf(errno));
}

TraceFile::~TraceFile() { ::close(file_); }

std::unique_ptr<TraceFile> TraceFile::create(std::string path, std::string event) {
    std::unique_ptr<TraceFile> made(new TraceFile(std::move(path), std::move(event), O_CREAT));
    int error = ::ftruncate(made->file_, 0) != 0 ? errno : 0;
    if (error == 0)
        error = writeAll(made->file_, fmt::format("{}{}{}", start, made->firstEvent, end), 0);
    if (error != 0)
        refuse(made->path, reasonOf(error));
    return made;
}

std::unique_ptr<TraceFile> TraceFile::join(std::string path, std::string event) {
    std::unique_ptr<TraceFile> joined(new TraceFile(std::move(path), std::move(event), 0));
    const std::string expected = fmt::format("{}{}", start, joined->firstEvent);
    if (readFrom(joined->file_, 0, expected.size()) != expected)
        refuse(joined->path, "rank 0 made another file of that name, on a disk of its own perhaps: choose a folder "
                             "that all machines share");
    return joined;
}

int TraceFile::append(const std::string &events) {
    while (::flock(file_, LOCK_EX) != 0)
        if (errno != EINTR)
            return errno;
    const int error = appendLocked(events);
    ::flock(file_, LOCK_UN);
    return error;
}

int TraceFile::appendLocked(const std::string &events) const {
    struct stat status {};
    if (::fstat(file_, &status) != 0)
        return errno;
    const auto size = static_cast<std::size_t>(status.st_size);
    const std::size_t kept = size == 0 ? 0 : endOfEvents(file_, size); // 0: somebody emptied the file
    if (kept == std::string::npos)
        return EBADMSG;
    const std::string text = fmt::format("{}{}{}", kept == 0 ? start : ",\n", events, end);
    int error = writeAll(file_, text, kept);
    std::size_t length = kept + text.size();
    if (error != 0) { // the old end had room
        const std::string_view old = kept == 0 ? "[\n]\n" : end;
        writeAll(file_, old, kept);
        length = kept + old.size();
    }
    if (length < std::max(size, kept + text.size()) && ::ftruncate(file_, static_cast<off_t>(length)) != 0 &&
        error == 0)
        error = errno;
    return error;
}

} // namespace DNDS::Task
