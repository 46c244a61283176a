/// @file TraceFile.hpp
/// @brief A file in Chrome's trace format that all ranks append to.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace DNDS::Task {

/// Events in the "JSON array" format of Chrome and Perfetto, one a line. Processes append under a lock of the file, and
/// each append replaces the array's end, so that the file is valid JSON whenever nobody is writing. All functions are
/// Local.
///
/// A process that is killed while it appends leaves a torn event, which the next one to append takes away. A disk that
/// is full leaves the file as it was.
class TraceFile {
  public:
    /// A file with one event, in place of what is at `path`. Throws ArgumentError with the system's reason.
    static TraceFile create(std::string path, std::string_view event);
    /// The file that another process made with `event`. Throws ArgumentError where there is another one, or none.
    static TraceFile join(std::string path, std::string_view event);

    TraceFile() = default;
    TraceFile(TraceFile &&other) noexcept
        : path_(std::move(other.path_)), firstEvent_(std::move(other.firstEvent_)),
          file_(std::exchange(other.file_, -1)) {}
    TraceFile &operator=(TraceFile &&other) noexcept {
        std::swap(path_, other.path_);
        std::swap(firstEvent_, other.firstEvent_);
        std::swap(file_, other.file_);
        return *this;
    }
    TraceFile(const TraceFile &) = delete;
    TraceFile &operator=(const TraceFile &) = delete;
    ~TraceFile();

    /// Where the file is.
    const std::string &path() const noexcept { return path_; }
    /// The event that it was made with.
    const std::string &firstEvent() const noexcept { return firstEvent_; }
    bool isOpen() const noexcept { return file_ >= 0; }

    /// Appends `events`, separated by ",\n". 0, or the `errno` of what failed: then nothing was appended. Not
    /// thread-safe.
    int append(const std::string &events);

  private:
    /// Opens `path` for reading and writing with the given flags of open(2).
    TraceFile(std::string path, std::string_view event, int flags);
    /// The same with the file locked.
    int appendLocked(const std::string &events) const;

    std::string path_;
    std::string firstEvent_;
    int file_ = -1;
};

} // namespace DNDS::Task
