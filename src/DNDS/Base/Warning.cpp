#include "DNDS/Base/Error.hpp"

#include "DNDS/Base/Environment.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace DNDS {

namespace {

/// The program's sink, replaceable at any time. `warn` calls a copy outside the lock: a sink may warn or set
/// another sink itself, and a sink that is replaced lives until its last call returns.
struct Sink {
    std::mutex mutex;
    std::shared_ptr<const WarningSink> call;
};

/// Never destroyed: objects that outlive main warn, too.
Sink &sink() {
    static Sink *const made = new Sink;
    return *made;
}

/// In one piece, which ranks that write at the same time do not mix; without memory of its own.
void writeToStderr(std::string_view text) noexcept {
    // Formatted first, on the stack. A longer text may be mixed with other ranks' lines.
    std::array<char, 2048> line{};
    const int length =
        std::snprintf(line.data(), line.size(), "DNDS: %.*s\n", static_cast<int>(text.size()), text.data());
    if (length > 0 && static_cast<std::size_t>(length) < line.size())
        std::fwrite(line.data(), 1, static_cast<std::size_t>(length), stderr);
    else
        std::fprintf(stderr, "DNDS: %.*s\n", static_cast<int>(text.size()), text.data());
}

/// The rank by MPI once it runs, else by the launcher's environment variables.
int rankNow() {
    const int rank = errorRank();
    return rank >= 0 ? rank : launcherInfo().rank;
}

/// Adds a line to a file, which is opened for it: warnings are rare. Returns the system's reason where that fails, else
/// an empty text.
std::string appendTo(const std::string &path, std::string_view text) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0)
        return std::strerror(errno); // NOLINT(concurrency-mt-unsafe): glibc's is safe
    std::array<char, 32> time{};
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    std::strftime(time.data(), time.size(), "%Y-%m-%dT%H:%M:%SZ", ::gmtime_r(&now, &parts));
    const std::string line = fmt::format("{} rank {}: {}\n", time.data(), rankNow(), text);
    errno = ENOSPC;                                                    // of a write that is cut short, which sets none
    const ::ssize_t written = ::write(file, line.data(), line.size()); // in one piece
    std::string reason = written == static_cast<::ssize_t>(line.size()) ? "" : std::strerror(errno); // NOLINT
    ::close(file);
    return reason;
}

/// By DNDS_WARNINGS; to stderr where that fails.
void writeWhereUserSays(std::string_view text) {
    std::string path = warningPlace();
    if (path == "none" || (path == "rank0" && rankNow() != 0))
        return;
    if (path.empty() || path == "stderr" || path == "rank0")
        return writeToStderr(text);
    if (const auto place = path.find("%r"); place != std::string::npos)
        path.replace(place, 2, std::to_string(rankNow()));
    const std::string reason = appendTo(path, text);
    if (!reason.empty())
        writeToStderr(fmt::format("{}\n(DNDS_WARNINGS: {} cannot be written: {})", text, path, reason));
}

} // namespace

void setWarningSink(WarningSink call) {
    auto given = call ? std::make_shared<const WarningSink>(std::move(call)) : nullptr;
    const std::lock_guard lock(sink().mutex);
    sink().call.swap(given); // the old one ends after the lock
}

void warn(std::string_view text) noexcept {
    std::shared_ptr<const WarningSink> call;
    const std::exception_ptr failure = attempt([&] {
        {
            const std::lock_guard lock(sink().mutex);
            call = sink().call;
        }
        call ? (*call)(text) : writeWhereUserSays(text);
    });
    if (failure && !call) // no memory for the path; what the program's own sink throws is its own
        writeToStderr(text);
}

} // namespace DNDS
