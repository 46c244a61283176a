#include "DNDS/GridFile/ClassicHeader.hpp"

#include "DNDS/Base/Error.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace DNDS::Detail {

namespace {

constexpr index mostName = 256;        // NC_MAX_NAME
constexpr index mostDimensions = 1024; // NC_MAX_VAR_DIMS

/// Reads the numbers of a header in sequence, through a window of the file.
class HeaderBytes {
  public:
    HeaderBytes(const std::string &path, index bytes, const ReadBytesAt &read)
        : path_(path), end_(bytes), read_(read) {}

    index place() const noexcept { return place_; }
    index left() const noexcept { return end_ - place_; }

    /// An unsigned number of 1, 4 or 8 bytes, most significant first.
    std::uint64_t number(int bytes, const char *what) {
        need(bytes, what);
        std::uint64_t value = 0;
        for (int i = 0; i < bytes; i++)
            value = value << 8U | std::to_integer<std::uint64_t>(byte());
        return value;
    }

    std::string text(index length, const char *what) {
        need(length, what);
        std::string characters;
        for (index i = 0; i < length; i++)
            characters.push_back(static_cast<char>(byte()));
        return characters;
    }

    void skip(index bytes, const char *what) {
        need(bytes, what);
        place_ += bytes;
    }

    template <class... Arguments>
    [[noreturn]] void fail(fmt::format_string<Arguments...> text, Arguments &&...arguments) const {
        throw DataError(fmt::format("{} has a damaged NetCDF header: {} (before byte {})", path_,
                                    fmt::format(text, std::forward<Arguments>(arguments)...), place_));
    }

  private:
    void need(index bytes, const char *what) const {
        if (bytes > left())
            throw DataError(
                fmt::format("{} is truncated: its NetCDF header ends at byte {} within {}", path_, end_, what));
    }

    std::byte byte() {
        if (place_ < windowStart_ || place_ >= windowStart_ + static_cast<index>(window_.size())) {
            windowStart_ = place_;
            window_.resize(static_cast<std::size_t>(std::min<index>(1 << 16, left())));
            read_(place_, window_);
        }
        return window_[static_cast<std::size_t>(place_++ - windowStart_)];
    }

    const std::string &path_;
    index end_;
    const ReadBytesAt &read_;
    index place_ = 0;
    index windowStart_ = 0;
    std::vector<std::byte> window_;
};

struct HeaderVariable {
    std::string name;
    bool records = false;
    index bytes = 0; ///< size of all its elements, or of those of one record
    index begin = 0;
};

class ClassicHeader {
  public:
    ClassicHeader(const std::string &path, index fileBytes, const ReadBytesAt &read)
        : bytes_(path, fileBytes, read), path_(path), fileBytes_(fileBytes) {}

    void check() {
        parse();
        checkEnds();
    }

    index neededBytes(index records) {
        parse();
        records_ = std::max(records_, records);
        const index stride = recordStride();
        index needed = bytes_.place();
        for (const HeaderVariable &variable : variables_)
            needed = std::max(needed, endOf(variable, stride));
        return needed;
    }

  private:
    void parse() {
        bytes_.skip(3, "the first bytes");
        version_ = static_cast<int>(bytes_.number(1, "the version"));
        const std::uint64_t records = bytes_.number(wide(), "the number of records");
        if (records == (version_ == 5 ? std::numeric_limits<std::uint64_t>::max() : 0xFFFFFFFFU))
            throw DataError(fmt::format("{} is a stream whose number of records is not known: write it again, for "
                                        "example by nccopy",
                                        path_));
        records_ = asIndex(records, "number of records");
        readDimensions();
        readAttributes();
        readVariables();
    }

    int wide() const { return version_ == 5 ? 8 : 4; }

    index asIndex(std::uint64_t value, const char *what) const {
        if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
            bytes_.fail("{} {}", what, value);
        return static_cast<index>(value);
    }

    /// The number of entries of a list; each takes at least `least` bytes.
    index listSize(std::uint64_t tag, index least, const char *what) {
        const std::uint64_t found = bytes_.number(4, what);
        const index size = asIndex(bytes_.number(wide(), what), what);
        if (found == 0 && size == 0)
            return 0;
        if (found != tag)
            bytes_.fail("{} instead of the list of {}", found, what);
        if (size > bytes_.left() / least)
            bytes_.fail("{} {} in {} bytes", size, what, bytes_.left());
        return size;
    }

    std::string readName(const char *what) {
        const index length = asIndex(bytes_.number(wide(), what), what);
        if (length == 0 || length > mostName)
            bytes_.fail("the name of {} has {} characters", what, length);
        std::string name = bytes_.text(length, what);
        bytes_.skip((4 - length % 4) % 4, what);
        name.erase(name.find_last_not_of('\0') + 1); // old writers count the padding; npos + 1 is 0
        if (name.empty() || name.find('\0') != std::string::npos || name.find('/') != std::string::npos)
            bytes_.fail("the name of {} has characters that no name has", what);
        return name;
    }

    index bytesOfType(std::uint64_t type) const {
        constexpr std::array<index, 12> bytes{0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8};
        if (type == 0 || type > (version_ == 5 ? 11U : 6U))
            bytes_.fail("type {}", type);
        return bytes[type];
    }

    void readDimensions() {
        const index count = listSize(10, 2 * wide(), "dimensions");
        for (index d = 0; d < count; d++) {
            const std::string name = readName("a dimension");
            const index length = asIndex(bytes_.number(wide(), "a dimension"), "a dimension's length");
            for (const index other : lengths_)
                if (length == 0 && other == 0)
                    bytes_.fail("dimension {} is a second unlimited one", name);
            lengths_.push_back(length);
        }
    }

    void readAttributes() {
        const index count = listSize(12, 4 + 2 * wide(), "attributes");
        for (index a = 0; a < count; a++) {
            readName("an attribute");
            const index width = bytesOfType(bytes_.number(4, "an attribute"));
            const index elements = asIndex(bytes_.number(wide(), "an attribute"), "an attribute's length");
            if (elements > bytes_.left() / width)
                bytes_.fail("an attribute of {} elements", elements);
            bytes_.skip((elements * width + 3) / 4 * 4, "an attribute");
        }
    }

    void readVariables() {
        const index count = listSize(11, 12 + 3 * wide(), "variables");
        for (index v = 0; v < count; v++) {
            HeaderVariable variable;
            variable.name = readName("a variable");
            const index dims = asIndex(bytes_.number(wide(), "a variable"), "number of dimensions");
            if (dims > mostDimensions)
                bytes_.fail("variable {} has {} dimensions", variable.name, dims);
            index elements = 1;
            for (index d = 0; d < dims; d++)
                addDimension(variable, d, elements);
            readAttributes();
            const index width = bytesOfType(bytes_.number(4, "a variable"));
            if (elements > std::numeric_limits<std::int64_t>::max() / 16)
                bytes_.fail("variable {} has {} elements", variable.name, elements);
            variable.bytes = elements * width;
            bytes_.skip(wide(), "a variable"); // its size, which is unreliable beyond 4 GiB by the standard
            variable.begin = asIndex(bytes_.number(version_ == 1 ? 4 : 8, "a variable"), "a variable's place");
            variables_.push_back(variable);
        }
    }

    void addDimension(HeaderVariable &variable, index d, index &elements) {
        const std::uint64_t id = bytes_.number(wide(), "a variable");
        if (id >= lengths_.size())
            bytes_.fail("variable {} has dimension {} of {}", variable.name, id, lengths_.size());
        const index length = lengths_[id];
        if (length == 0 && d > 0)
            bytes_.fail("variable {} has its unlimited dimension behind others", variable.name);
        if (length == 0)
            variable.records = true;
        else if (elements > std::numeric_limits<std::int64_t>::max() / 16 / length)
            bytes_.fail("variable {} has more elements than there can be", variable.name);
        else
            elements *= length;
    }

    /// Bytes from a record to the next one.
    index recordStride() const {
        index bytes = 0;
        index count = 0;
        for (const HeaderVariable &variable : variables_)
            if (variable.records) {
                count++;
                if (variable.bytes > std::numeric_limits<std::int64_t>::max() / 16 - bytes)
                    bytes_.fail("records of more bytes than there can be");
                bytes += count == 1 ? variable.bytes : (variable.bytes + 3) / 4 * 4;
                if (count == 2) // a single record variable is not padded
                    bytes += (4 - bytes % 4) % 4;
            }
        return bytes;
    }

    /// The end of a variable's last element; the largest number on overflow.
    index endOf(const HeaderVariable &variable, index stride) const {
        if (variable.records && records_ == 0)
            return 0;
        index steps = 0;
        index end = 0;
        if (__builtin_mul_overflow(variable.records ? records_ - 1 : 0, stride, &steps) ||
            __builtin_add_overflow(variable.begin, variable.bytes, &end) || __builtin_add_overflow(end, steps, &end))
            return std::numeric_limits<index>::max();
        return end;
    }

    void checkEnds() const {
        const index stride = recordStride();
        for (const HeaderVariable &variable : variables_) {
            if (variable.begin < bytes_.place())
                bytes_.fail("variable {} begins at byte {}, within the header", variable.name, variable.begin);
            if (endOf(variable, stride) > fileBytes_)
                throw DataError(fmt::format(
                    "{} is truncated: it has {} bytes, but variable '{}' begins at byte {} and has {} bytes{}", path_,
                    fileBytes_, variable.name, variable.begin, variable.bytes,
                    variable.records ? fmt::format(" in each of {} records, {} bytes apart", records_, stride) : ""));
        }
    }

    HeaderBytes bytes_;
    const std::string &path_;
    index fileBytes_;
    int version_ = 0;
    index records_ = 0;
    std::vector<index> lengths_;
    std::vector<HeaderVariable> variables_;
};

} // namespace

NetcdfKind netcdfKindOf(const ReadBytesAt &read, index fileBytes) {
    std::array<std::byte, 8> first{};
    if (fileBytes >= 4) {
        read(0, std::span(first).first(4));
        const int version = std::to_integer<int>(first[3]);
        if (first[0] == std::byte{'C'} && first[1] == std::byte{'D'} && first[2] == std::byte{'F'} &&
            (version == 1 || version == 2 || version == 5))
            return NetcdfKind::Classic;
    }
    constexpr std::array<unsigned char, 8> hdf{0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    for (index place = 0; place <= fileBytes - 8; place = place == 0 ? 512 : 2 * place) { // after a user block
        read(place, first);
        if (std::equal(first.begin(), first.end(), hdf.begin(),
                       [](std::byte a, unsigned char b) { return a == std::byte{b}; }))
            return NetcdfKind::Hdf5;
    }
    return NetcdfKind::Unknown;
}

void checkClassicFile(const std::string &path, index fileBytes, const ReadBytesAt &read) {
    ClassicHeader(path, fileBytes, read).check();
}

index classicFileBytes(const std::string &path, index fileBytes, const ReadBytesAt &read, index records) {
    return ClassicHeader(path, fileBytes, read).neededBytes(records);
}

} // namespace DNDS::Detail
