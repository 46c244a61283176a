#include "DNDS/Geom/File/MeshFile.hpp"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace DNDS::Geom {

namespace {

// The window holds the longest line, so that lines are views into it.
constexpr std::size_t windowSize = std::size_t{1} << 21;
constexpr std::size_t longestLine = std::size_t{1} << 20;

bool isBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f'; }

} // namespace

// Control characters of damaged files must not reach a terminal.
std::string shown(std::string_view word) {
    std::string text;
    for (const char c : word.substr(0, 40))
        text += c >= ' ' && c <= '~' ? c : '?';
    return text + (word.size() > 40 ? "..." : "");
}

/// Opening a pipe by mistake must not wait for a writer, hence O_NONBLOCK.
MeshFile::MeshFile(std::string path, bool compressed)
    : path_(std::move(path)), descriptor_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    DNDS_CHECK(descriptor_ >= 0, DataError, "{} cannot be opened: {}", path_, std::strerror(errno));
    struct stat status {};
    const bool known = ::fstat(descriptor_, &status) == 0;
    if (!known || !S_ISREG(status.st_mode)) {
        ::close(descriptor_);
        throw DataError(fmt::format("{} is not a file", path_));
    }
    size_ = static_cast<index>(status.st_size);
    if (!compressed)
        return;
    ::close(std::exchange(descriptor_, -1));
    content_ = openGzip(path_);
    size_ = std::numeric_limits<index>::max();
}

MeshFile::MeshFile(MeshFile &&other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_),
      content_(std::move(other.content_)) {}

MeshFile::~MeshFile() {
    if (descriptor_ >= 0)
        ::close(descriptor_);
}

// pread: several cursors may read one file.
std::size_t MeshFile::read(index offset, char *into, std::size_t count) const {
    if (content_)
        return content_->read(offset, into, count);
    std::size_t done = 0;
    while (done < count) {
        const ssize_t got =
            ::pread(descriptor_, into + done, count - done, static_cast<off_t>(offset) + static_cast<off_t>(done));
        if (got < 0 && errno == EINTR)
            continue;
        DNDS_CHECK(got >= 0, DataError, "{} cannot be read at byte {}: {}", path_, offset, std::strerror(errno));
        if (got == 0)
            break;
        done += static_cast<std::size_t>(got);
    }
    return done;
}

// At most as long as the file and one byte more: ranks open several cursors, often on small files.
FileCursor::FileCursor(const MeshFile &file, FilePlace place)
    : file_(&file), window_(std::min<std::size_t>(windowSize, static_cast<std::size_t>(file.size()) + 1)) {
    moveTo(place);
}

/// Within the window a move costs nothing; elsewhere the next access reads.
void FileCursor::moveTo(FilePlace place) {
    const index within = place.offset - windowOffset_;
    if (within >= 0 && within <= static_cast<index>(filled_)) {
        at_ = static_cast<std::size_t>(within);
    } else {
        windowOffset_ = place.offset;
        at_ = filled_ = 0;
    }
    line_ = place.line;
    lineBegin_ = lineEnd_ = at_;
    lineNumber_ = place.line;
}

/// Makes the window hold `bytes` from `at_` on, if the file has them; may drop bytes before `at_`.
/// Amortised O(1) a byte: the window moves by what was consumed.
bool FileCursor::fill(std::size_t bytes) {
    if (filled_ - at_ >= bytes)
        return true;
    std::memmove(window_.data(), window_.data() + at_, filled_ - at_);
    windowOffset_ += static_cast<index>(at_);
    filled_ -= at_;
    at_ = 0;
    lineBegin_ = lineEnd_ = 0;
    filled_ +=
        file_->read(windowOffset_ + static_cast<index>(filled_), window_.data() + filled_, window_.size() - filled_);
    return filled_ >= bytes;
}

// Fills the window at most once for a line. That may move its content: positions found before are invalid, so callers
// read `at_` afterwards.
// O(length of the line) if the line is in the window, as mostly; else the rest of the window moves to its begin
// once, which costs O(window) for each window read.
std::size_t FileCursor::findLineEnd() {
    const auto find = [&]() -> const void * { return std::memchr(window_.data() + at_, '\n', filled_ - at_); };
    const void *end = find();
    if (end == nullptr) {
        fill(longestLine);
        end = find();
    }
    if (end != nullptr)
        return static_cast<std::size_t>(static_cast<const char *>(end) - window_.data());
    if (at_ == filled_)
        return std::string_view::npos;
    lineNumber_ = line_;
    if (filled_ - at_ >= longestLine)
        fail("a line has more than a million characters");
    return filled_;
}

// Lines end with LF; a CR before it is a blank.
bool FileCursor::nextLine() {
    for (;;) {
        std::size_t end = findLineEnd();
        if (end == std::string_view::npos) {
            lineBegin_ = lineEnd_ = at_;
            lineNumber_ = line_;
            return false;
        }
        std::size_t begin = at_;
        at_ = std::min(end + 1, filled_);
        lineNumber_ = line_;
        line_ += line_ > 0 ? 1 : 0;
        while (begin < end && isBlank(window_[begin]))
            begin++;
        while (end > begin && isBlank(window_[end - 1]))
            end--;
        lineBegin_ = begin;
        lineEnd_ = end;
        if (begin < end)
            return true;
    }
}

void FileCursor::requireLine(std::string_view expected) {
    if (!nextLine())
        fail(fmt::format("the file ends where {} should be", expected));
}

// Counts non-blank lines, as nextLine does, but keeps none.
void FileCursor::skipLines(index count, std::string_view expected) {
    while (count > 0) {
        const std::size_t end = findLineEnd();
        if (end == std::string_view::npos) {
            lineNumber_ = line_;
            fail(fmt::format("the file ends where more lines of {} should be", expected));
        }
        std::size_t begin = at_;
        while (begin < end && isBlank(window_[begin]))
            begin++;
        count -= begin < end ? 1 : 0;
        at_ = std::min(end + 1, filled_);
        line_ += line_ > 0 ? 1 : 0;
    }
    lineBegin_ = lineEnd_ = at_;
}

/// Lines of any length: only their first bytes are compared.
/// `fill(text.size())` keeps the compared bytes together in the window even if the line starts at its end.
void FileCursor::skipBehindLine(std::string_view text) {
    bool atLineBegin = true;
    while (fill(1)) {
        fill(text.size());
        if (atLineBegin && std::string_view(window_.data() + at_, filled_ - at_).substr(0, text.size()) == text) {
            nextLine();
            return;
        }
        const void *end = std::memchr(window_.data() + at_, '\n', filled_ - at_);
        atLineBegin = end != nullptr;
        at_ = atLineBegin ? static_cast<std::size_t>(static_cast<const char *>(end) - window_.data()) + 1 : filled_;
        line_ += atLineBegin && line_ > 0 ? 1 : 0;
    }
    lineNumber_ = line_;
    fail(fmt::format("the file ends where {} should be", shown(text)));
}

void FileCursor::takeBytes(char *into, std::size_t count) {
    if (!fill(count))
        fail(fmt::format("the file ends where {} bytes should be", count));
    std::memcpy(into, window_.data() + at_, count);
    at_ += count;
}

// Moves without reading what is between.
void FileCursor::skipBytes(index count) {
    if (count < 0 || count > bytesLeft())
        fail(fmt::format("the file ends where {} bytes should be", count));
    moveTo({place().offset + count, line_});
}

// Text: the line of the last token. Binary, where line_ is 0: the byte.
void FileCursor::fail(const std::string &message, SourceLocation where) const {
    if (line_ > 0)
        throw DataError(fmt::format("{}, line {}: {}", file_->path(), lineNumber_, message), where);
    throw DataError(fmt::format("{}, byte {}: {}", file_->path(), place().offset, message), where);
}

void WordReader::dropBlanks() noexcept {
    while (!rest_.empty() && isBlank(rest_.front()))
        rest_.remove_prefix(1);
}

// A view into the line, valid as long as that.
std::string_view WordReader::word(std::string_view what) {
    if (rest_.empty())
        cursor_->fail(fmt::format("the line ends where {} should be", what));
    std::size_t length = 0;
    while (length < rest_.size() && !isBlank(rest_[length]))
        length++;
    const std::string_view result = rest_.substr(0, length);
    rest_.remove_prefix(length);
    dropBlanks();
    return result;
}

/// std::from_chars knows no leading '+', which some programs write.
index WordReader::integer(std::string_view what) {
    const std::string_view text = word(what);
    const char *begin = text.data() + (text.size() > 1 && text[0] == '+' && text[1] != '-' ? 1 : 0);
    index value = 0;
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range)
        cursor_->fail(fmt::format("{} is {}: too large", what, shown(text)));
    if (error != std::errc() || end != text.data() + text.size())
        cursor_->fail(fmt::format("{} is '{}', which is not an integer", what, shown(text)));
    return value;
}

index WordReader::integer(std::string_view what, index lowest, index highest) {
    const index value = integer(what);
    if (value < lowest || value > highest)
        cursor_->fail(fmt::format("{} is {}: it must lie in [{}, {}]", what, value, lowest, highest));
    return value;
}

// By std::from_chars, as strtod depends on the locale; strtod is asked only to tell underflow from overflow.
real WordReader::number(std::string_view what) {
    const std::string_view text = word(what);
    const char *begin = text.data() + (text.size() > 1 && text[0] == '+' && text[1] != '-' ? 1 : 0);
    real value = 0;
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
    // Numbers below the smallest are 0; from_chars does not distinguish them from those above the largest.
    const bool tiny =
        error == std::errc::result_out_of_range && std::abs(std::strtod(std::string(text).c_str(), nullptr)) < 1;
    if ((error != std::errc() && !tiny) || end != text.data() + text.size() || !std::isfinite(value))
        cursor_->fail(fmt::format("{} is '{}', which is not a finite number", what, shown(text)));
    return value;
}

void WordReader::end() const {
    if (!rest_.empty())
        cursor_->fail(fmt::format("unexpected '{}' at the end of the line", shown(rest_)));
}

} // namespace DNDS::Geom
