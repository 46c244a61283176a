#include "DNDS/GridFile/ClassicHeader.hpp"

#include "DNDS/Base/Error.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace DNDS::Detail {

namespace {

constexpr index maxIndex = std::numeric_limits<index>::max();
constexpr index maxName = 256;        // NC_MAX_NAME
constexpr index maxDimensions = 1024; // NC_MAX_VAR_DIMS

// The largest number on overflow.
// Saturating sums and products: one comparison with the length of the file at the end finds any size that is too large.
index plus(index a, index b) { return __builtin_add_overflow(a, b, &a) ? maxIndex : a; }
index times(index a, index b) { return __builtin_mul_overflow(a, b, &a) ? maxIndex : a; }
index padded(index bytes) { return bytes > maxIndex - 3 ? maxIndex : (bytes + 3) / 4 * 4; }

// The properties of a variable on which the checks depend.
struct HeaderVariable {
    std::string name;
    bool records = false;
    index bytes = 0; ///< size of all its elements, or of those of one record
    index begin = 0;
};

/// Reads a header in sequence, through a window of the file. Grammar: NetCDF Users' Guide, "File Format Specifications"
/// (CDF-1, CDF-2, CDF-5). Each number is checked against the bytes that are left before memory is allocated by it, as
/// damaged headers crash the library.
/// O(header) time, and at most 64 KiB of the file in memory. Sizes of variables are computed from dimensions, never
/// taken from the file.
class ClassicHeader {
  public:
    // Magic, records, dimensions, attributes, variables: in the file's order. Sizes saturate instead of overflowing.
    ClassicHeader(const std::string &path, index fileBytes, const ReadBytesAt &read)
        : path_(path), end_(fileBytes), read_(read) {
        // "CDF", then the version: 1, 2 or 5.
        skip(3);
        version_ = static_cast<int>(number(1));
        const std::uint64_t records = number(wide());
        DNDS_CHECK(records != (version_ == 5 ? std::numeric_limits<std::uint64_t>::max() : 0xFFFFFFFFU), DataError,
                   "{} is a stream whose number of records is not known: write it again, for example by nccopy", path_);
        records_ = asIndex(records);
        // Dimensions; a length of 0 marks the unlimited one.
        for (index count = listSize(10, 2 * wide()); count > 0; count--) {
            readName();
            lengths_.push_back(asIndex(number(wide())));
        }
        require(std::ranges::count(lengths_, 0) <= 1, "there are several unlimited dimensions");
        skipAttributes();
        for (index count = listSize(11, 12 + 3 * wide()); count > 0; count--)
            readVariable();
        // Records of all record variables alternate in the file: the stride is the sum of their sizes.
        const auto ofRecords = std::ranges::count(variables_, true, &HeaderVariable::records);
        for (const HeaderVariable &variable : variables_)
            if (variable.records) // a single record variable is not padded
                stride_ = plus(stride_, ofRecords == 1 ? variable.bytes : padded(variable.bytes));
    }

    // Needs the whole header: only then is its end known, before which no variable begins.
    void check() const {
        for (const HeaderVariable &variable : variables_) {
            require(variable.begin >= place_, "a variable begins within the header");
            DNDS_CHECK(endOf(variable) <= end_, DataError,
                       "{} is truncated: it has {} bytes, but variable '{}' begins at byte {} and has {} bytes{}",
                       path_, end_, variable.name, variable.begin, variable.bytes,
                       variable.records ? fmt::format(" in each of {} records, {} bytes apart", records_, stride_)
                                        : "");
        }
    }

    // The bytes of the whole file with `records` records, or with those in the header if these are more.
    index neededBytes(index records) {
        records_ = std::max(records_, records);
        index needed = place_;
        for (const HeaderVariable &variable : variables_)
            needed = std::max(needed, endOf(variable));
        return needed;
    }

  private:
    // Bytes of counts and lengths: CDF-5 widened them.
    int wide() const { return version_ == 5 ? 8 : 4; }
    index left() const { return end_ - place_; }

    // Errors tell the place, as only a tool for bytes can show more.
    void require(bool right, const char *otherwise) const {
        DNDS_CHECK(right, DataError, "{} has a damaged NetCDF header: {} (before byte {})", path_, otherwise, place_);
    }
    index asIndex(std::uint64_t value) const {
        require(value <= static_cast<std::uint64_t>(maxIndex), "a number is beyond 2^63");
        return static_cast<index>(value);
    }

    // Every read calls it first, so nothing beyond the file's end is read.
    void skip(index bytes) {
        DNDS_CHECK(bytes <= left(), DataError, "{} is truncated: its NetCDF header ends at byte {}", path_, end_);
        place_ += bytes;
    }
    // Windows of 64 KiB, refilled when reading leaves them: headers are read in ascending order, so each byte is read
    // at most once.
    std::byte byte() {
        skip(1);
        const index at = place_ - 1;
        if (at < windowStart_ || at >= windowStart_ + static_cast<index>(window_.size())) {
            windowStart_ = at;
            window_.resize(static_cast<std::size_t>(std::min<index>(1 << 16, end_ - at)));
            read_(at, window_);
        }
        return window_[static_cast<std::size_t>(at - windowStart_)];
    }
    /// An unsigned number of 1, 4 or 8 bytes, most significant first.
    std::uint64_t number(int bytes) {
        std::uint64_t value = 0;
        for (int i = 0; i < bytes; i++)
            value = value << 8U | std::to_integer<std::uint64_t>(byte());
        return value;
    }

    /// The number of entries of a list; each takes at least `least` bytes.
    index listSize(std::uint64_t tag, index least) {
        const std::uint64_t found = number(4);
        const index size = asIndex(number(wide()));
        // A missing list has tag and size 0.
        require(found == tag || (found == 0 && size == 0), "another list is expected");
        require(size <= left() / least, "a list has more entries than bytes follow");
        return size;
    }

    // Length, characters, and padding to 4 bytes.
    std::string readName() {
        const index length = asIndex(number(wide()));
        require(length > 0 && length <= maxName, "a name has no or too many characters");
        std::string name;
        for (index i = 0; i < length; i++)
            name.push_back(static_cast<char>(byte()));
        skip((4 - length % 4) % 4);
        name.erase(name.find_last_not_of('\0') + 1); // old writers count the padding; npos + 1 is 0
        require(!name.empty() && name.find('\0') == std::string::npos && name.find('/') == std::string::npos,
                "a name has characters that no name has");
        return name;
    }

    // The size of an element, by the number of its type; CDF-5 has five types more.
    index readBytesOfType() {
        constexpr std::array<index, 12> bytes{0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8};
        const std::uint64_t type = number(4);
        require(type > 0 && type <= (version_ == 5 ? 11U : 6U), "a type is unknown");
        return bytes[type];
    }

    // Only their sizes matter here.
    void skipAttributes() {
        for (index count = listSize(12, 4 + 2 * wide()); count > 0; count--) {
            readName();
            const index width = readBytesOfType();
            const index elements = asIndex(number(wide()));
            skip(padded(times(elements, width)));
        }
    }

    // The size in the file is ignored: it is computed from dimensions and type.
    void readVariable() {
        HeaderVariable variable;
        variable.name = readName();
        const index dims = asIndex(number(wide()));
        require(dims <= maxDimensions, "a variable has too many dimensions");
        index elements = 1;
        for (index d = 0; d < dims; d++) {
            const std::uint64_t id = number(wide());
            require(id < lengths_.size(), "a variable has a dimension that the file has not");
            const index length = lengths_[id];
            require(length > 0 || d == 0, "a variable has its unlimited dimension after others");
            variable.records = variable.records || length == 0;
            elements = times(elements, std::max<index>(length, 1));
        }
        skipAttributes();
        variable.bytes = times(elements, readBytesOfType());
        skip(wide()); // its size, which is unreliable beyond 4 GiB by the standard
        variable.begin = asIndex(number(version_ == 1 ? 4 : 8));
        variables_.push_back(variable);
    }

    /// The end of a variable's last element.
    index endOf(const HeaderVariable &variable) const {
        if (variable.records && records_ == 0)
            return 0;
        return plus(plus(variable.begin, variable.bytes), variable.records ? times(records_ - 1, stride_) : 0);
    }

    const std::string &path_;
    index end_;
    const ReadBytesAt &read_;
    /// Position of the next byte to read; the end of the header once all is read.
    index place_ = 0;
    /// The cached part of the file.
    index windowStart_ = 0;
    std::vector<std::byte> window_;
    /// 1, 2 or 5: widths of numbers depend on it.
    int version_ = 0;
    index records_ = 0;
    index stride_ = 0; ///< bytes from a record to the next one
    /// [dimensions] 0 for the unlimited one.
    std::vector<index> lengths_;
    /// In the order of the header, which need not be that of the data.
    std::vector<HeaderVariable> variables_;
};

} // namespace

// HDF5 may start after a user block, at 512 bytes or a multiple by a power of two.
NetcdfKind netcdfKindOf(const ReadBytesAt &read, index fileBytes) {
    const auto hasAt = [&](index place, std::string_view magic) {
        std::array<char, 8> found{};
        if (place > fileBytes - static_cast<index>(magic.size()))
            return false;
        read(place, std::as_writable_bytes(std::span(found)).first(magic.size()));
        return std::string_view(found.data(), magic.size()) == magic;
    };
    for (const char *magic : {"CDF\1", "CDF\2", "CDF\5"})
        if (hasAt(0, magic))
            return NetcdfKind::Classic;
    for (index place = 0; place <= fileBytes - 8; place = place == 0 ? 512 : 2 * place) // after a user block
        if (hasAt(place, "\x89HDF\r\n\x1a\n"))
            return NetcdfKind::Hdf5;
    return NetcdfKind::Unknown;
}

void checkClassicFile(const std::string &path, index fileBytes, const ReadBytesAt &read) {
    ClassicHeader(path, fileBytes, read).check();
}

index classicFileBytes(const std::string &path, index fileBytes, const ReadBytesAt &read, index records) {
    return ClassicHeader(path, fileBytes, read).neededBytes(records);
}

} // namespace DNDS::Detail
