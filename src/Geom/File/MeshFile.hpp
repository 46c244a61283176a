/// @file MeshFile.hpp
/// @brief Reads text and binary values of a mesh file from any place on, and says where in the file something is wrong.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/Types.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace DNDS::Geom {

/// A file that is open for reading; each rank that reads has one of its own. All functions are Local. Move-only.
class MeshFile {
  public:
    /// Throws DataError, naming the file, where it cannot be opened or is no file (a folder, say).
    explicit MeshFile(std::string path);
    MeshFile(MeshFile &&other) noexcept;
    MeshFile &operator=(MeshFile &&) = delete;
    MeshFile(const MeshFile &) = delete;
    MeshFile &operator=(const MeshFile &) = delete;
    ~MeshFile();

    const std::string &path() const noexcept { return path_; }
    index size() const noexcept { return size_; }
    /// Reads up to `count` bytes from `offset` on and returns how many there were. Throws DataError where the file
    /// system fails.
    std::size_t read(index offset, char *into, std::size_t count) const;

  private:
    std::string path_;
    int descriptor_ = -1;
    index size_ = 0;
};

/// A place in a file, where a line begins that is number `line` (from 1); 0 where lines are not counted.
struct FilePlace {
    index offset = 0;
    index line = 1;
};

/// Walks through a file from a place on: by lines, or by binary values. It holds a window of the file, two
/// megabytes. All functions are Local; all throw DataError naming file and line (in binary files, the byte)
/// where the file does not hold what is asked for.
class FileCursor {
  public:
    explicit FileCursor(const MeshFile &file, FilePlace place = {});

    const MeshFile &file() const noexcept { return *file_; }
    /// Where the next line or value begins.
    FilePlace place() const noexcept { return {windowOffset_ + static_cast<index>(at_), line_}; }
    index bytesLeft() const noexcept { return file_->size() - place().offset; }
    void moveTo(FilePlace place);
    /// From now on messages name bytes, not lines.
    void countBytes() noexcept { line_ = 0; }

    /// Takes the next line that is not blank; false at the end of the file.
    bool nextLine();
    /// The same, where there must be one.
    void needLine(std::string_view expected);
    /// The line taken last, without blanks at its ends, until the next call.
    std::string_view line() const noexcept { return {window_.data() + lineBegin_, lineEnd_ - lineBegin_}; }
    index lineNumber() const noexcept { return lineNumber_; }
    /// Where the line taken last begins.
    FilePlace linePlace() const noexcept { return {windowOffset_ + static_cast<index>(lineBegin_), lineNumber_}; }
    /// Passes over lines that are not blank.
    void skipLines(index count, std::string_view expected);
    /// Moves behind the next line that begins with `text`, looking at lines of any length.
    void skipBehindLine(std::string_view text);

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

    /// Throws DataError: file and line taken last (or the present byte), then `message`.
    [[noreturn]] void fail(const std::string &message, SourceLocation where = SourceLocation::current()) const;

  private:
    void takeBytes(char *into, std::size_t count);
    bool fill(std::size_t bytes);
    /// Where the line that begins at `at_` ends, or npos at the end of the file. Lines are limited.
    std::size_t findLineEnd();

    const MeshFile *file_;
    std::vector<char> window_;
    std::size_t filled_ = 0;
    std::size_t at_ = 0; ///< in the window
    index windowOffset_ = 0;
    index line_ = 1; ///< of the byte `at_`
    index lineNumber_ = 0;
    std::size_t lineBegin_ = 0;
    std::size_t lineEnd_ = 0;
};

/// Takes a line apart into words. Numbers are read by std::from_chars. All functions are Local and throw DataError
/// through the cursor.
class WordReader {
  public:
    /// The line that `cursor` took last.
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
    /// Nothing more may stand on the line.
    void end() const;

  private:
    void dropBlanks() noexcept;

    const FileCursor *cursor_;
    std::string_view rest_;
};

} // namespace DNDS::Geom
