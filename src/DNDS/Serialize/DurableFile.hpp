/// @file DurableFile.hpp
/// @brief Files that are read and written at given places, and brought to the disk.
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
    static DurableFile forReading(const std::string &path);
    /// A file that is there already.
    static DurableFile forWriting(const std::string &path);
    /// A new file of `bytes`, in place of any that is there. Room on the disk is taken at once where the file system
    /// can, so that a disk too full is known before anything is written.
    static DurableFile create(const std::string &path, index bytes);
    DurableFile(DurableFile &&other) noexcept;
    DurableFile &operator=(DurableFile &&other) noexcept;
    DurableFile(const DurableFile &) = delete;
    DurableFile &operator=(const DurableFile &) = delete;
    ~DurableFile();

    const std::string &path() const noexcept { return path_; }
    index size() const;
    /// Its number in the file system (inode), which another file in its place does not have.
    index number() const;
    /// All the bytes, or an exception: a file that ends before is truncated.
    void readAt(index place, std::span<std::byte> bytes) const;
    void writeAt(index place, std::span<const std::byte> bytes) const;
    /// Waits until what was written is on the disk.
    void flush() const;

  private:
    DurableFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

    std::string path_;
    int descriptor_ = -1;
};

/// Waits until a file, or the names in a folder, are on the disk. Local. Throws DataError.
void flushToDisk(const std::string &path);

/// Brings a file to the disk, then gives it another name in place of any that has it, and has the folder on the disk
/// afterwards: at any moment the name stands for a whole file. Local. Throws DataError.
void renameDurably(const std::string &from, const std::string &to);

} // namespace DNDS
