#include "DNDS/Geom/Vtk/VtuFile.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Geom/File/Gzip.hpp"
#include "DNDS/Geom/File/MeshFile.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

namespace DNDS::Geom {

namespace {

/// The best ratio of zlib: a larger array cannot be in the file.
constexpr index maxInflation = 1100;

/// Calls `body` with a value of the C++ type of a type of VTK; false if it has no numbers.
template <class Body>
bool withType(std::string_view type, Body &&body) {
    const auto is = [&]<class T>(std::string_view name, T value) {
        if (type == name)
            body(value);
        return type == name;
    };
    return is("Float64", double{}) || is("Float32", float{}) || is("Int64", std::int64_t{}) ||
           is("Int32", std::int32_t{}) || is("UInt8", std::uint8_t{}) || is("UInt64", std::uint64_t{}) ||
           is("UInt32", std::uint32_t{}) || is("Int8", std::int8_t{}) || is("Int16", std::int16_t{}) ||
           is("UInt16", std::uint16_t{});
}

/// Bytes of a text in order: as they are, or in base64 with blanks anywhere. Parts may be encoded each by itself.
/// O(bytes taken). Base64 yields whole groups of three bytes: those beyond `count` wait in `ahead_` for the next
/// call.
class ByteText {
  public:
    using Fail = std::function<void(const std::string &)>; ///< throws

    ByteText(std::string_view text, bool base64, Fail fail) : text_(text), base64_(base64), fail_(std::move(fail)) {}

    /// The next `count` bytes. What the text cannot have is refused before memory is taken for it.
    std::string take(std::size_t count) {
        if (count > text_.size() + ahead_.size())
            fail_(fmt::format("ends early: {} bytes are needed where the file has {}", count, text_.size()));
        if (!base64_) {
            std::string bytes(text_.substr(0, count));
            text_.remove_prefix(count);
            return bytes;
        }
        std::string bytes = std::move(ahead_);
        bytes.reserve(count + 2);
        while (bytes.size() < count)
            takeFour(bytes);
        ahead_ = bytes.substr(count);
        bytes.resize(count);
        return bytes;
    }

  private:
    /// The six bits of a letter; -1 for others.
    static int valueOf(char letter) {
        static const auto values = [] {
            constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
            std::array<signed char, 256> table{};
            table.fill(-1);
            for (std::size_t k = 0; k < letters.size(); k++)
                table[static_cast<unsigned char>(letters[k])] = static_cast<signed char>(k);
            return table;
        }();
        return values[static_cast<unsigned char>(letter)];
    }

    /// Appends the one to three bytes of four letters (base64: RFC 4648, section 4). '=' ends a part; another may
    /// follow.
    void takeFour(std::string &bytes) {
        unsigned word = 0;
        int letters = 0, padding = 0;
        while (letters + padding < 4) {
            while (!text_.empty() && xmlBlanks.find(text_[0]) != std::string_view::npos)
                text_.remove_prefix(1);
            if (text_.empty())
                fail_("ends early, inside its base64");
            const int value = valueOf(text_[0]);
            const bool pads = text_[0] == '=' && letters >= 2;
            if (!pads && (value < 0 || padding > 0))
                fail_(fmt::format("has '{}' in its base64", shown(text_.substr(0, 1))));
            word = word << 6U | (pads ? 0U : static_cast<unsigned>(value));
            (pads ? padding : letters)++;
            text_.remove_prefix(1);
        }
        for (int k = 0; k < letters - 1; k++)
            bytes += static_cast<char>(word >> (16U - 8U * static_cast<unsigned>(k)) & 0xffU);
    }

    std::string_view text_;
    bool base64_;
    Fail fail_;
    std::string ahead_; ///< decoded, not yet taken
};

/// A number at any byte of a text, aligned or not.
template <class T>
T storedAt(std::string_view bytes, std::size_t at, bool swapped) {
    std::array<char, sizeof(T)> raw{};
    std::memcpy(raw.data(), bytes.data() + at, sizeof(T));
    if (swapped)
        std::reverse(raw.begin(), raw.end());
    return std::bit_cast<T>(raw);
}

} // namespace

VtuFile::VtuFile(std::string path) : path_(std::move(path)) {
    // The whole file is in memory: arrays may be anywhere in it.
    const MeshFile file(path_);
    content_.resize(static_cast<std::size_t>(file.size()));
    content_.resize(file.read(0, content_.data(), content_.size()));
    requireEnd();
    scan();
    if (pieces_ != 1)
        throw DataError(fmt::format(
            "{} has {} pieces, and only files of one are read: merge them first (in ParaView: the filter Clean to "
            "Grid, then save)",
            path_, pieces_));
}

/// Notices files that were cut off, also in what is not read.
void VtuFile::requireEnd() const {
    const std::string_view text = content_;
    const std::size_t behind = std::min<std::size_t>(text.size(), 4096);
    if (text.substr(text.size() - behind).find("</VTKFile") == std::string_view::npos)
        failAtByte(path_, text.size(), "the file ends without </VTKFile>: it is not complete");
}

/// One pass over the tags up to AppendedData; arrays keep views of the content.
/// O(bytes before AppendedData). Values are not parsed here: an array that no caller asks for costs no conversion.
void VtuFile::scan() {
    XmlTag tag;
    std::vector<std::string_view> parents;
    while (nextTag(path_, content_, tag)) {
        if (!parents.empty() && parents.back() == "DataArray" && !arrays_.empty() && !tag.before.empty())
            arrays_.back().text = tag.before;
        if (tag.opens) {
            open(tag, parents);
            parents.push_back(tag.name);
        }
        if (tag.opens && tag.name == "AppendedData") {
            const std::string_view text = std::string_view(content_).substr(tag.end);
            // An underscore marks where the data begins.
            const std::size_t mark = text.find_first_not_of(xmlBlanks);
            if (mark == std::string_view::npos || text[mark] != '_')
                failAtByte(path_, tag.end, "appended data does not begin with '_'");
            appended_ = text.substr(mark + 1);
            appendedBase64_ = tag["encoding"] == "base64";
            return; // raw bytes follow
        }
        if (tag.closes) {
            if (parents.empty() || parents.back() != tag.name)
                failAtByte(path_, tag.begin, fmt::format("</{}> does not close what is open", shown(tag.name)));
            parents.pop_back();
        }
    }
    if (!parents.empty())
        failAtByte(path_, content_.size(), fmt::format("the file ends inside <{}>", shown(parents.back())));
}

// Only the first piece counts; others are noticed by their number.
void VtuFile::open(const XmlTag &tag, const std::vector<std::string_view> &parents) {
    if (parents.empty())
        return takeRoot(tag);
    if (tag.name == "Piece" && ++pieces_ == 1) {
        points_ = countOf(tag, "NumberOfPoints");
        cells_ = countOf(tag, "NumberOfCells");
    }
    if (tag.name != "DataArray" && tag.name != "Array")
        return;
    VtuArray &array = arrays_.emplace_back();
    // VTKFile, UnstructuredGrid, Piece, then PointData and the like.
    array.group = parents.size() == 4 && parents[2] == "Piece" ? parents[3] : "";
    array.name = tag["Name"];
    array.type = tag["type"];
    array.format = tag["format"];
    array.begin = tag.begin;
    if (!tag["NumberOfComponents"].empty())
        array.components = std::max<index>(countOf(tag, "NumberOfComponents"), 1);
    if (array.format == "appended")
        array.offset = countOf(tag, "offset");
    if (!tag["TimeStep"].empty())
        fail(array, "has several time steps: save one step");
}

// All arrays of a file share byte order, width of headers and compressor.
void VtuFile::takeRoot(const XmlTag &tag) {
    if (tag.name != "VTKFile" || tag["type"] != "UnstructuredGrid")
        failAtByte(path_, tag.begin, "expected <VTKFile type=\"UnstructuredGrid\">");
    compressor_ = tag["compressor"];
    wideHeaders_ = tag["header_type"] == "UInt64";
    swapped_ = (tag["byte_order"] == "BigEndian") != (std::endian::native == std::endian::big);
}

index VtuFile::countOf(const XmlTag &tag, std::string_view attribute) const {
    // A count beyond what the best compression could hold is refused before memory is taken.
    const std::string text = tag[attribute];
    index value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0 ||
        value / maxInflation > std::ssize(content_))
        failAtByte(path_, tag.begin,
                   fmt::format("attribute {} of {} is '{}', which is no number or more than a file of {} bytes holds",
                               attribute, shown(tag.name), shown(text), content_.size()));
    return value;
}

const VtuArray &VtuFile::array(std::string_view group, std::string_view name) const {
    const auto found = std::ranges::find_if(
        arrays_, [&](const VtuArray &array) { return array.group == group && (name.empty() || array.name == name); });
    if (found == arrays_.end())
        throw DataError(fmt::format("{}: its piece has no array '{}' in {}", path_, name, group));
    return *found;
}

bool VtuFile::hasNumbers(const VtuArray &array) {
    return withType(array.type, [](auto) {});
}

/// Sizes stated by the file are compared with it before memory is allocated for them.
/// O(bytes of the array) time. Base64 is decoded piece by piece: header and data of compressed arrays are separate
/// runs, each padded to a multiple of four letters.
std::string VtuFile::bytesOf(const VtuArray &array) const {
    const bool inFile = array.format == "appended";
    if (!inFile && array.format != "binary")
        fail(array, fmt::format("is of format '{}'; only ascii, binary and appended are read", shown(array.format)));
    if (inFile && array.offset >= std::ssize(appended_))
        fail(array, fmt::format("has offset {} in {} bytes of appended data", array.offset, appended_.size()));
    ByteText text(inFile ? appended_.substr(static_cast<std::size_t>(array.offset)) : array.text,
                  !inFile || appendedBase64_, [&](const std::string &message) { fail(array, message); });
    const auto takeSize = [&]() -> std::uint64_t {
        return wideHeaders_ ? storedAt<std::uint64_t>(text.take(8), 0, swapped_)
                            : storedAt<std::uint32_t>(text.take(4), 0, swapped_);
    };
    const std::uint64_t first = takeSize(); // of the data, or the number of blocks
    if (compressor_.empty())
        return text.take(first);
    if (compressor_ != "vtkZLibDataCompressor")
        fail(array, fmt::format("is compressed by {}, which is not supported: save the file without compression, or "
                                "by ZLib",
                                shown(compressor_)));
    if (first > content_.size())
        fail(array, fmt::format("has {} compressed blocks, which are not all in the file", first));
    // Header of compressed data: number of blocks, size of each when inflated, size of the last if it differs, sizes
    // in the file.
    const std::uint64_t blockSize = takeSize();
    const std::uint64_t lastSize = takeSize();
    std::vector<std::uint64_t> sizes(first);
    for (std::uint64_t &size : sizes)
        size = takeSize();
    std::string bytes;
    // Memory grows block by block: a file that announces more than it has fails at the first block that is not sound.
    for (std::size_t b = 0; b < sizes.size(); b++) {
        const std::uint64_t size = b + 1 == sizes.size() && lastSize > 0 ? lastSize : blockSize;
        const std::string block = text.take(sizes[b]);
        if (size / maxInflation > block.size())
            fail(array, fmt::format("has {} bytes for {} in compressed block {}", block.size(), size, b));
        bytes.resize(bytes.size() + size);
        if (!inflateBlock(path_, block, std::span(bytes).last(size)))
            fail(array, fmt::format("is damaged: its compressed block {} of {} bytes is not {} bytes long", b,
                                    block.size(), size));
    }
    return bytes;
}

// Text word by word; everything else from the bytes.
template <class Stored, class T>
std::vector<T> VtuFile::decode(const VtuArray &array) const {
    std::vector<T> values;
    if (array.format == "ascii") {
        std::string_view text = array.text;
        for (text.remove_prefix(std::min(text.find_first_not_of(xmlBlanks), text.size())); !text.empty();
             text.remove_prefix(std::min(text.find_first_not_of(xmlBlanks), text.size()))) {
            const std::string_view word = text.substr(0, text.find_first_of(xmlBlanks));
            Stored value{};
            const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
            if (error != std::errc() || end != word.data() + word.size())
                fail(array, fmt::format("has '{}' where a number of type {} should be", shown(word), array.type));
            values.push_back(static_cast<T>(value));
            text.remove_prefix(word.size());
        }
        return values;
    }
    // The last number must be complete.
    const std::string bytes = bytesOf(array);
    if (bytes.size() % sizeof(Stored) != 0)
        fail(array,
             fmt::format("has {} bytes, and a number of type {} has {}", bytes.size(), array.type, sizeof(Stored)));
    values.reserve(bytes.size() / sizeof(Stored));
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(Stored))
        values.push_back(static_cast<T>(storedAt<Stored>(bytes, at, swapped_)));
    return values;
}

template <class T>
std::vector<T> VtuFile::values(const VtuArray &array) const {
    std::vector<T> result;
    const bool known = withType(array.type, [&]<class Stored>(Stored) {
        // Integers are never made from floating-point numbers.
        if constexpr (std::is_integral_v<Stored> || std::is_same_v<T, real>)
            result = decode<Stored, T>(array);
        else
            fail(array, fmt::format("is of type {}, and whole numbers are needed", array.type));
    });
    if (!known)
        fail(array, fmt::format("is of type '{}', which has no numbers", shown(array.type)));
    return result;
}

template <class T>
std::vector<T> VtuFile::values(const VtuArray &array, index count) const {
    std::vector<T> result = values<T>(array);
    if (std::ssize(result) != count)
        fail(array, fmt::format("has {} numbers, and {} are needed", result.size(), count));
    return result;
}

void VtuFile::fail(const VtuArray &array, const std::string &message) const {
    throw DataError(
        fmt::format("{}: array '{}' in {} (byte {}) {}", path_, shown(array.name), array.group, array.begin, message));
}

template std::vector<real> VtuFile::values<real>(const VtuArray &) const;
template std::vector<real> VtuFile::values<real>(const VtuArray &, index) const;
template std::vector<index> VtuFile::values<index>(const VtuArray &) const;
template std::vector<index> VtuFile::values<index>(const VtuArray &, index) const;

} // namespace DNDS::Geom
