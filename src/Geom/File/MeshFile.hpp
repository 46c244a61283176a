/// @file MeshFile.hpp
/// @brief Reads text and binary values of a mesh file from any position, and reports errors with their position.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/Types.hpp"
#include "DNDS/Geom/File/Gzip.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace DNDS::Geom {

/// A file open for reading; each rank that reads has its own. All functions are Local. Move-only.
class MeshFile {
  public:
    /// Throws DataError with the path if it cannot be opened or is not a file (a folder, for example). A compressed
    /// file (gzip) is read as its content: forward at the cost of decompressing, backward from the begin again.
    /// NotBuiltError if this build cannot.
    explicit MeshFile(std::string path, bool compressed = false);
    MeshFile(MeshFile &&other) noexcept;
    MeshFile &operator=(MeshFile &&) = delete;
    MeshFile(const MeshFile &) = delete;
    MeshFile &operator=(const MeshFile &) = delete;
    ~MeshFile();

    const std::string &path() const noexcept { return path_; }
    /// The file's size; for a compressed file the largest index, since the size of its content is unknown.
    index size() const noexcept { return size_; }
    /// Reads up to `count` bytes from `offset` on and returns how many there were. Throws DataError if the file system
    /// fails.
    std::size_t read(index offset, char *into, std::size_t count) const;

  private:
    std::string path_;
    int descriptor_ = -1;
    index size_ = 0;
    std::unique_ptr<GzipContent> content_; ///< set for compressed files
};

/// A file's text as shown in messages: at most 40 characters, with '?' for unprintable ones.
std::string shown(std::string_view text);

/// A position in a file where a line begins, and the line's number (from 1; 0 if lines are not counted).
struct FilePlace {
    index offset = 0;
    index line = 1;
};

/// Reads a file from a position on: lines or binary values. It holds a window of the file, at most two megabytes. All
/// functions are Local; all throw DataError with file and line (in binary files, the byte) if the file does not hold
/// what is requested.
class FileCursor {
  public:
    explicit FileCursor(const MeshFile &file, FilePlace place = {});

    const MeshFile &file() const noexcept { return *file_; }
    /// The position of the next line or value.
    FilePlace place() const noexcept { return {windowOffset_ + static_cast<index>(at_), line_}; }
    index bytesLeft() const noexcept { return file_->size() - place().offset; }
    void moveTo(FilePlace place);
    /// From now on messages give bytes, not lines.
    void countBytes() noexcept { line_ = 0; }

    /// Takes the next non-blank line; false at the end of the file.
    bool nextLine();
    /// The same; throws at the end of the file.
    void requireLine(std::string_view expected);
    /// The last line taken, without blanks at its ends; valid until the next call.
    std::string_view line() const noexcept { return {window_.data() + lineBegin_, lineEnd_ - lineBegin_}; }
    /// The position of the last line taken.
    FilePlace linePlace() const noexcept { return {windowOffset_ + static_cast<index>(lineBegin_), lineNumber_}; }
    /// Skips non-blank lines.
    void skipLines(index count, std::string_view expected);
    /// Moves past the next line that begins with `text`, for lines of any length.
    void skipBehindLine(std::string_view text);

    /// The next byte; -1 at the end of the file.
    int peek() {
        lineNumber_ = line_;
        return at_ < filled_ || fill(1) ? static_cast<unsigned char>(window_[at_]) : -1;
    }
    /// Moves past the byte that `peek` returned.
    void advance() noexcept {
        line_ += line_ > 0 && window_[at_] == '\n' ? 1 : 0;
        at_++;
    }

    /// Takes a binary value.
    template <class T>
    T value(bool swapped) {
        std::array<char, sizeof(T)> bytes;
        takeBytes(bytes.data(), sizeof(T));
        if (swapped)
            std::reverse(bytes.begin(), bytes.end());
        T result;
        std::memcpy(&result, bytes.data(), sizeof(T));
        return result;
    }
    void skipBytes(index count);

    /// Throws DataError: file, last line taken (or current byte), `message`.
    [[noreturn]] void fail(const std::string &message, SourceLocation where = SourceLocation::current()) const;

  private:
    void takeBytes(char *into, std::size_t count);
    /// Makes `bytes` bytes available from `at_` on; false at the end of the file.
    bool fill(std::size_t bytes);
    /// The end of the line that begins at `at_`, or npos at the end of the file. Line length is limited.
    std::size_t findLineEnd();

    const MeshFile *file_;
    std::vector<char> window_;
    /// Bytes of the window that hold the file's content.
    std::size_t filled_ = 0;
    std::size_t at_ = 0; ///< in the window
    /// Position in the file of the window's first byte.
    index windowOffset_ = 0;
    index line_ = 1; ///< line of the byte `at_`
    /// Number of the last line taken, for messages.
    index lineNumber_ = 0;
    /// The last line taken, in the window.
    std::size_t lineBegin_ = 0;
    std::size_t lineEnd_ = 0;
};

/// Splits a line into words. Numbers are read by std::from_chars. All functions are Local and throw DataError through
/// the cursor.
class WordReader {
  public:
    /// The last line that `cursor` took.
    explicit WordReader(const FileCursor &cursor) : cursor_(&cursor), rest_(cursor.line()) { dropBlanks(); }
    WordReader(const FileCursor &cursor, std::string_view text) : cursor_(&cursor), rest_(text) { dropBlanks(); }

    bool done() const noexcept { return rest_.empty(); }
    std::string_view rest() const noexcept { return rest_; }
    std::string_view word(std::string_view what);
    index integer(std::string_view what);
    /// An integer in [lowest, highest].
    index integer(std::string_view what, index lowest, index highest);
    /// A finite number.
    real number(std::string_view what);
    /// Throws unless the line ends here.
    void end() const;

  private:
    void dropBlanks() noexcept;

    const FileCursor *cursor_;
    std::string_view rest_;
};

} // namespace DNDS::Geom
