#include "DNDS/Geom/Ugrid/UgridFile.hpp"

#include "DNDS/Mpi/Communicator.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>

namespace DNDS::Geom {

namespace {

constexpr std::size_t lists = 8;
constexpr std::array<std::string_view, lists> listNames{"nodes",      "triangles", "quadrilaterals", "tags",
                                                        "tetrahedra", "pyramids",  "prisms",         "hexahedra"};
constexpr std::array<index, lists> widths{3, 3, 4, 1, 4, 5, 6, 8};
constexpr std::size_t tagsList = 3;
constexpr std::size_t longestWord = 64;
constexpr std::string_view blanks = " \t\r\n\v\f";

using Counts = std::array<index, lists>;

/// A number as it is stored: `Narrow` if it has 4 bytes, `Wide` if it has 8.
template <class Narrow, class Wide>
Wide decode(const char *bytes, int size, bool swapped) {
    std::array<char, 8> copy{};
    std::copy_n(bytes, size, copy.begin());
    if (swapped)
        std::reverse(copy.begin(), copy.begin() + size);
    return size == 4 ? std::bit_cast<std::array<Narrow, 2>>(copy)[0] : std::bit_cast<Wide>(copy);
}
constexpr auto decodeInteger = decode<std::int32_t, std::int64_t>;
constexpr auto decodeReal = decode<float, double>;

/// The bytes before the lists: the counts, and the marks around their record.
index headerBytes(const UgridForm &form) { return 7 * index{form.integerBytes} + (form.records ? 8 : 0); }

index listBytes(const UgridForm &form, const Counts &counts, std::size_t list) {
    return counts[list] * widths[list] * (list == 0 ? form.realBytes : form.integerBytes);
}

index bytesOf(const UgridForm &form, const Counts &counts) {
    index bytes = 0;
    for (std::size_t list = 0; list < lists; list++)
        bytes += listBytes(form, counts, list);
    return bytes;
}

/// The seven counts of the header; the number of tags follows from them.
Counts countsOf(const UgridForm &form, std::string_view begin) {
    Counts counts{};
    const char *at = begin.data() + (form.records ? 4 : 0);
    for (std::size_t list = 0; list < lists; list++)
        if (list != tagsList) {
            counts[list] = decodeInteger(at, form.integerBytes, form.swapped);
            at += form.integerBytes;
        }
    if (__builtin_add_overflow(counts[1], counts[2], &counts[tagsList]))
        counts[tagsList] = -1; // no header of this form
    return counts;
}

/// Whether the header is complete and its counts are possible in a file of this size.
bool possible(const UgridForm &form, std::string_view begin, index size) {
    if (static_cast<index>(begin.size()) < headerBytes(form))
        return false;
    if (form.records && (decodeInteger(begin.data(), 4, form.swapped) != 7 * form.integerBytes ||
                         decodeInteger(begin.data() + headerBytes(form) - 4, 4, form.swapped) != 7 * form.integerBytes))
        return false;
    const Counts counts = countsOf(form, begin);
    return counts[0] > 0 && std::ranges::all_of(counts, [&](index n) { return n >= 0 && n <= size; });
}

/// The number of numbers on the next line that is not empty; -1 if it holds anything else. `whole`: only integers >= 0.
int numbersOnLine(std::string_view &text, bool whole) {
    text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    int numbers = 0;
    for (;; numbers++) {
        line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
        if (line.empty())
            return numbers;
        const std::string_view word = line.substr(0, std::min(line.find_first_of(blanks), line.size()));
        double value = 0;
        if (std::from_chars(word.data(), word.data() + word.size(), value).ptr != word.data() + word.size() ||
            (whole && word.find_first_not_of("0123456789") != std::string_view::npos))
            return -1;
        line.remove_prefix(word.size());
    }
}

/// Text, or the binary form (of 16) whose counts explain the size: only one does, up to rare coincidence.
std::optional<UgridForm> formOfContent(std::string_view begin, index size) {
    std::string_view text = begin;
    if (numbersOnLine(text, true) == 7 && numbersOnLine(text, false) == 3)
        return UgridForm{.text = true};
    for (const bool records : {false, true})
        for (const bool swapped : {false, true})
            for (const int integerBytes : {4, 8})
                for (const int realBytes : {8, 4}) {
                    const UgridForm form{false, swapped, records, realBytes, integerBytes};
                    if (possible(form, begin, size) &&
                        size == headerBytes(form) + bytesOf(form, countsOf(form, begin)) + (records ? 8 : 0))
                        return form;
                }
    return {}; // damaged, cut off, or with data after the mesh
}

/// "wing" and the form of "wing.lb8.ugrid64" or "wing.lb8l.ugrid", both with integers of 8 bytes.
struct UgridName {
    std::string_view stem;         ///< all of a name without the suffix
    std::optional<UgridForm> form; ///< if the name states it
};

/// Takes a path apart; the form before the suffix counts only if it is known. Local.
UgridName partsOf(std::string_view path) {
    bool longIntegers = path.ends_with(".ugrid64");
    if (!longIntegers && !path.ends_with(".ugrid"))
        return {path, {}};
    const std::string_view stem = path.substr(0, path.rfind('.'));
    const std::size_t dot = std::min(stem.rfind('.'), stem.size());
    std::string_view word = stem.substr(std::min(dot + 1, stem.size()));
    // "lb8": little-endian, C binary, reals of 8 bytes; r instead of b: Fortran records.
    const bool little = word.starts_with('l');
    word.remove_prefix(little ? 1 : 0);
    longIntegers = longIntegers || word.ends_with('l');
    word.remove_suffix(word.ends_with('l') ? 1 : 0);
    if (word != "b8" && word != "b4" && word != "r8" && word != "r4")
        return {stem, {}};
    const bool swapped = little != (std::endian::native == std::endian::little);
    return {stem.substr(0, dot), UgridForm{false, swapped, word[0] == 'r', word[1] - '0', longIntegers ? 8 : 4}};
}

bool isBlank(int c) { return c >= 0 && blanks.find(static_cast<char>(c)) != std::string_view::npos; }

bool isText(std::string_view begin) {
    return std::ranges::all_of(begin.substr(0, 64), [](char c) { return (c >= ' ' && c <= '~') || isBlank(c); });
}

/// Takes the words of a text file, whatever lines they are on.
class Words {
  public:
    explicit Words(const MeshFile &file, FilePlace place = {}) : cursor_(file, place) {}

    /// The place of the next word, or the end of the file.
    FilePlace place() {
        for (int c = cursor_.peek(); isBlank(c); c = cursor_.peek())
            cursor_.advance();
        return cursor_.place();
    }
    /// `what` is the list that the word belongs to.
    std::string_view next(std::string_view what) {
        place();
        word_.clear();
        for (int c = cursor_.peek(); c >= 0 && !isBlank(c); c = cursor_.peek()) {
            if (word_.size() == longestWord)
                cursor_.fail(fmt::format("'{}' is too long for a number", shown(word_)));
            word_ += static_cast<char>(c);
            cursor_.advance();
        }
        if (word_.empty())
            cursor_.fail(fmt::format("the file ends in its {}", what));
        return word_;
    }
    index integer(std::string_view what, index lowest, index highest) {
        return WordReader(cursor_, next(what)).integer(what, lowest, highest);
    }
    /// Fortran's exponents may have a D.
    real number(std::string_view what) {
        next(what);
        std::ranges::replace(word_, 'd', 'e');
        std::ranges::replace(word_, 'D', 'E');
        return WordReader(cursor_, word_).number(what);
    }

  private:
    FileCursor cursor_;
    std::string word_;
};

} // namespace

bool isUgrid(std::string_view path, std::string_view firstBytes, index size) {
    return partsOf(path).stem != path || formOfContent(firstBytes, size).has_value();
}

std::string ugridStem(std::string_view path) { return std::string(partsOf(path).stem); }

UgridFile::UgridFile(CommunicatorView comm, const std::string &path)
    : comm_(comm), file_([&] {
          std::optional<MeshFile> file;
          comm.guarded([&] { file.emplace(path); });
          return std::move(*file);
      }()) {
    comm.guarded([&] {
        if (comm.rank() != 0)
            return;
        std::array<char, 4096> bytes;
        const std::string_view begin{bytes.data(), file_.read(0, bytes.data(), bytes.size())};
        std::optional<UgridForm> form = formOfContent(begin, file_.size());
        if (!form)
            form = partsOf(path).form;
        if (!form && isText(begin))
            form = UgridForm{.text = true};
        if (!form)
            fail(0, "the counts at its begin explain its size in no binary form: it is damaged, or has data after the "
                    "mesh; then name it by its form (.b8.ugrid, .lb8.ugrid, .r8.ugrid, .lr8.ugrid)");
        form_ = *form;
        if (form_.text)
            openText();
        else
            openBinary(begin);
    });
    comm.broadcast(form_);
    comm.broadcast(counts_);
    broadcastList(comm, pieces_);
    broadcastList(comm, places_);
}

void UgridFile::openText() {
    Words words(file_);
    for (std::size_t list = 0; list < lists; list++)
        if (list != tagsList)
            counts_[list] = words.integer(fmt::format("the number of {}", listNames[list]), 0, file_.size());
    counts_[tagsList] = counts_[1] + counts_[2];
    for (std::size_t list = 0; list < lists; list++) {
        index at = 0;
        // Words have any length: rank 0 has to pass over all of them to find where ranks begin.
        const auto skipTo = [&](index word) {
            for (; at < word; at++)
                words.next(listNames[list]);
        };
        for (int rank = 0; rank < comm_.size(); rank++) {
            skipTo(part(static_cast<UgridList>(list), rank).begin * widths[list]);
            places_.push_back(words.place());
        }
        skipTo(counts_[list] * widths[list]);
    }
}

void UgridFile::openBinary(std::string_view begin) {
    const index header = headerBytes(form_);
    if (file_.size() < header)
        fail(file_.size(), "the file ends in its counts");
    if (form_.records)
        for (const index mark : {index{0}, header - 4})
            if (decodeInteger(begin.data() + mark, 4, form_.swapped) != 7 * form_.integerBytes)
                fail(mark, "expected the mark of a record of seven counts: the file has another byte order or none");
    counts_ = countsOf(form_, begin);
    for (std::size_t list = 0; list < lists; list++)
        if (counts_[list] < 0 || counts_[list] > file_.size())
            fail(0, fmt::format(
                        "the file announces {} {}, but has {} bytes: it is damaged, cut off or in another byte order",
                        counts_[list], listNames[list], file_.size()));
    const index need = bytesOf(form_, counts_);
    if (form_.records)
        return findRecords(need);
    pieces_ = {{0, header, file_.size() - header}};
    if (pieces_[0].size >= need)
        return;
    std::size_t list = 0;
    while (bytesBefore(static_cast<UgridList>(list)) + listBytes(form_, counts_, list) <= pieces_[0].size)
        list++;
    fail(file_.size(), fmt::format("the file ends in its {}: its counts need {} bytes more", listNames[list],
                                   need - pieces_[0].size));
}

/// Finds the subrecords of the second record. The mark before one is negative if another follows, the mark after it
/// if it follows another.
void UgridFile::findRecords(index need) {
    std::array<char, 4> bytes;
    const auto markAt = [&](index place) {
        if (file_.read(place, bytes.data(), bytes.size()) < bytes.size())
            fail(place, "the file ends where the mark of a record should be");
        return decodeInteger(bytes.data(), 4, form_.swapped);
    };
    index total = 0;
    bool more = true;
    for (index place = headerBytes(form_); more;) {
        const index mark = markAt(place);
        const index size = std::abs(mark);
        if (place + 4 + size > file_.size())
            fail(place, fmt::format("a record of {} bytes begins here, but the file has only {} more", size,
                                    file_.size() - place - 4));
        if (std::abs(markAt(place + 4 + size)) != size)
            fail(place + 4 + size, fmt::format("expected the mark that ends a record of {} bytes", size));
        if (size > 0)
            pieces_.push_back({total, place + 4, size});
        total += size;
        place += size + 8;
        more = mark < 0;
    }
    if (total < need)
        fail(headerBytes(form_), fmt::format("the record has {} bytes, but its counts need {}", total, need));
}

void UgridFile::fail(index place, const std::string &message) const {
    throw DataError(fmt::format("{}, byte {}: {}", file_.path(), place, message));
}

IndexRange UgridFile::part(UgridList list, int rank) const {
    const auto at = static_cast<std::size_t>(list);
    // Shares are of all cells and of all faces, so a rank's part of one type may be empty.
    const bool cells = list > UgridList::Tags;
    const bool faces = list == UgridList::Triangles || list == UgridList::Quadrilaterals;
    index before = 0;
    for (std::size_t other = cells ? tagsList + 1 : 1; (cells || faces) && other < at; other++)
        before += counts_[other];
    const index total = cells ? counts_[4] + counts_[5] + counts_[6] + counts_[7] : counts_[faces ? tagsList : at];
    const IndexRange all = EvenSplit(total, comm_.size()).part(rank);
    return {std::clamp<index>(all.begin - before, 0, counts_[at]), std::clamp<index>(all.end - before, 0, counts_[at])};
}

index UgridFile::bytesBefore(UgridList list) const {
    index bytes = 0;
    for (std::size_t other = 0; other < static_cast<std::size_t>(list); other++)
        bytes += listBytes(form_, counts_, other);
    return bytes;
}

const UgridFile::Piece &UgridFile::pieceOf(index byte) const {
    return *std::prev(std::ranges::upper_bound(pieces_, byte, {}, &Piece::first));
}

void UgridFile::read(index byte, std::span<char> into) const {
    for (const Piece *piece = into.empty() ? nullptr : &pieceOf(byte); !into.empty(); ++piece) {
        const index skipped = byte - piece->first;
        const std::span<char> now = into.first(std::min(into.size(), static_cast<std::size_t>(piece->size - skipped)));
        if (file_.read(piece->place + skipped, now.data(), now.size()) < now.size())
            fail(piece->place + skipped, "the file became shorter while it was read");
        into = into.subspan(now.size());
        byte += static_cast<index>(now.size());
    }
}

/// Calls `take` with the bytes and the place of each number of this rank's part, in order.
template <class Take>
void UgridFile::forEachNumber(UgridList list, int bytes, Take &&take) const {
    constexpr index longest = index{1} << 17; // numbers at a time
    const index width = widths[static_cast<std::size_t>(list)];
    const IndexRange own = part(list);
    std::vector<char> buffer;
    for (index at = own.begin * width; at < own.end * width;) {
        const index count = std::min(longest, own.end * width - at);
        const index first = bytesBefore(list) + at * bytes;
        buffer.resize(static_cast<std::size_t>(count * bytes));
        read(first, buffer);
        for (index k = 0; k < count; k++)
            take(buffer.data() + k * bytes, first + k * bytes);
        at += count;
    }
}

std::vector<real> UgridFile::coordinates() const {
    const auto count = static_cast<std::size_t>(3 * part(UgridList::Nodes).size());
    std::vector<real> numbers;
    numbers.reserve(count);
    if (form_.text) {
        Words words(file_, places_[static_cast<std::size_t>(comm_.rank())]);
        while (numbers.size() < count)
            numbers.push_back(words.number("a coordinate"));
        return numbers;
    }
    forEachNumber(UgridList::Nodes, form_.realBytes, [&](const char *bytes, index at) {
        numbers.push_back(decodeReal(bytes, form_.realBytes, form_.swapped));
        if (!std::isfinite(numbers.back()))
            fail(placeOf(at), fmt::format("coordinate {} of node {} is not a finite number",
                                          (numbers.size() - 1) % 3 + 1, at / (3 * form_.realBytes) + 1));
    });
    return numbers;
}

std::vector<index> UgridFile::integers(UgridList list, index lowest, index highest) const {
    const auto at = static_cast<std::size_t>(list);
    const auto count = static_cast<std::size_t>(widths[at] * part(list).size());
    const std::string_view what = list == UgridList::Tags ? "a tag" : "a node";
    std::vector<index> numbers;
    numbers.reserve(count);
    if (form_.text) {
        Words words(file_,
                    places_[at * static_cast<std::size_t>(comm_.size()) + static_cast<std::size_t>(comm_.rank())]);
        while (numbers.size() < count)
            numbers.push_back(words.integer(what, lowest, highest));
        return numbers;
    }
    forEachNumber(list, form_.integerBytes, [&](const char *bytes, index byte) {
        const index value = decodeInteger(bytes, form_.integerBytes, form_.swapped);
        if (value < lowest || value > highest)
            fail(placeOf(byte), fmt::format("{} of the {} is {}: it must lie in [{}, {}]", what, listNames[at], value,
                                            lowest, highest));
        numbers.push_back(value);
    });
    return numbers;
}

} // namespace DNDS::Geom
