/// @file DurableFile.hpp
/// @brief Files that are read and written at given offsets and synchronised to the disk.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace DNDS {

/// An open file. Move-only. All functions are Local and throw DataError with the path and the system's reason.
class DurableFile {
  public:
    DurableFile() = default;
    /// Opens an existing file, to read it only.
    static DurableFile forReading(const std::string &path);
    /// Opens an existing file.
    static DurableFile forWriting(const std::string &path);
    /// A new file of `bytes` that replaces an existing one. Disk space is reserved at once where the file system
    /// supports it, so that a full disk is detected before anything is written.
    static DurableFile create(const std::string &path, index bytes);
    DurableFile(DurableFile &&other) noexcept;
    DurableFile &operator=(DurableFile &&other) noexcept;
    DurableFile(const DurableFile &) = delete;
    DurableFile &operator=(const DurableFile &) = delete;
    ~DurableFile();

    /// Makes a shorter file `bytes` long; disk space as above.
    void reserve(index bytes) const;
    /// Reserves disk space of `bytes` beyond the end of the file without changing its size, if the file system supports
    /// that; earlier reservations count. May then release space that was not used.
    void reserveBehind(index bytes) const;
    void giveBackBehind() const;

    /// The path with which it was opened; and its current size in bytes, as the system reports it.
    const std::string &path() const noexcept { return path_; }
    index size() const;
    /// Reads all the bytes, or throws if the file ends before.
    void readAt(index place, std::span<std::byte> bytes) const;
    void writeAt(index place, std::span<const std::byte> bytes) const;
    /// Waits until everything written is on the disk.
    void flush() const;

  private:
    DurableFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

    std::string path_;
    /// Of the system; -1 if moved from or never opened.
    int descriptor_ = -1;
};

/// Waits until a file, or the names in a folder, are on the disk. Local. Throws DataError.
void flushToDisk(const std::string &path);

} // namespace DNDS
