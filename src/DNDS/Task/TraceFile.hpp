/// @file TraceFile.hpp
/// @brief A file in Chrome's trace format that all ranks append to.
#pragma once

#include <memory>
#include <string>

namespace DNDS::Task {

/// Events in the "JSON array" format of Chrome and Perfetto, one a line. Processes append under a lock of the file, and
/// each append replaces the array's end, so that the file is valid JSON except during an append. All functions are
/// Local.
///
/// A disk that is full leaves the file as it was.
class TraceFile {
  public:
    /// A file with one event, replacing the file at `path`. Throws ArgumentError with the system's reason.
    static std::unique_ptr<TraceFile> create(std::string path, std::string event);
    /// The file that another process made with `event`. Throws ArgumentError if it is missing or another one.
    static std::unique_ptr<TraceFile> join(std::string path, std::string event);

    TraceFile(const TraceFile &) = delete;
    TraceFile &operator=(const TraceFile &) = delete;
    ~TraceFile();

    const std::string path;
    const std::string firstEvent; ///< first event of the file, from its creation

    /// Appends `events`, separated by ",\n". Returns 0, or the `errno` of a failure: then nothing was appended. Not
    /// thread-safe.
    int append(const std::string &events);

  private:
    /// Opens `path` for reading and writing with the given flags of open(2).
    TraceFile(std::string path, std::string event, int flags);

    /// The descriptor. Processes share the file, not the descriptor.
    int file_ = -1;
};

} // namespace DNDS::Task
