#include "fuzz/CheckpointBytes.hpp"

#include "DNDS/Serialize/Checkpoint.hpp"
#include "DNDS/Serialize/HdfDescription.hpp"
#include "DNDS/Serialize/RowBlocks.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <sstream>

#include <unistd.h>

namespace DNDS::Geom::fuzz {

namespace {

constexpr std::size_t headerBytes = 4096;
constexpr index largeFile = index{1} << 20;
constexpr std::array<index, 16> numbers{0,
                                        1,
                                        -1,
                                        2,
                                        3,
                                        7,
                                        8,
                                        12,
                                        1000,
                                        std::numeric_limits<std::int32_t>::max(),
                                        index{1} << 31,
                                        (index{1} << 32) + 5,
                                        index{1} << 40,
                                        index{1} << 60,
                                        std::numeric_limits<index>::max() / 2,
                                        std::numeric_limits<index>::min() / 2};

/// A file of this process.
std::string scratchPath() {
    return (std::filesystem::temp_directory_path() / fmt::format("dnds_checkpoint_{}", ::getpid())).string();
}

std::string contentOf(const std::string &path) {
    std::ostringstream content;
    content << std::ifstream(path, std::ios::binary).rdbuf();
    return content.str();
}

std::span<const std::byte> asBytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

/// A little-endian number in a string, 0 beyond its end.
template <class T>
T numberAt(const std::string &bytes, std::size_t at) {
    T value{};
    if (at <= bytes.size() && bytes.size() - at >= sizeof value)
        std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

template <class T>
void setNumber(std::string &bytes, std::size_t at, T value) {
    if (at <= bytes.size() && bytes.size() - at >= sizeof value)
        std::memcpy(bytes.data() + at, &value, sizeof value);
}

/// The checksum of HDF5's metadata: Jenkins' lookup3, hashlittle(), with 0 to begin with.
std::uint32_t lookup3(std::string_view text) {
    std::uint32_t a = 0xdeadbeef + static_cast<std::uint32_t>(text.size());
    std::uint32_t b = a, c = a;
    while (text.size() > 12) {
        std::array<std::uint32_t, 3> words{};
        std::memcpy(words.data(), text.data(), 12);
        a += words[0], b += words[1], c += words[2];
        a -= c, a ^= std::rotl(c, 4), c += b;
        b -= a, b ^= std::rotl(a, 6), a += c;
        c -= b, c ^= std::rotl(b, 8), b += a;
        a -= c, a ^= std::rotl(c, 16), c += b;
        b -= a, b ^= std::rotl(a, 19), a += c;
        c -= b, c ^= std::rotl(b, 4), b += a;
        text.remove_prefix(12);
    }
    if (text.empty())
        return c;
    std::array<std::uint32_t, 3> words{};
    std::memcpy(words.data(), text.data(), text.size());
    a += words[0], b += words[1], c += words[2];
    c ^= b, c -= std::rotl(b, 14);
    a ^= c, a -= std::rotl(c, 11);
    b ^= a, b -= std::rotl(a, 25);
    c ^= b, c -= std::rotl(b, 16);
    a ^= c, a -= std::rotl(c, 4);
    b ^= a, b -= std::rotl(a, 14);
    c ^= b, c -= std::rotl(b, 24);
    return c;
}

void setChecksum(std::string &bytes, std::size_t begin, std::size_t end) {
    if (begin < end && end <= bytes.size())
        setNumber(bytes, end, lookup3(std::string_view(bytes).substr(begin, end - begin)));
}

/// Repairs the chunks of an object header that continue the messages in [at, end).
void repairContinuations(std::string &bytes, std::size_t at, std::size_t end, std::size_t messageHeader, int depth) {
    constexpr std::uint8_t continuation = 0x10;
    while (at + messageHeader <= end && end <= bytes.size()) {
        const auto size = std::size_t{numberAt<std::uint16_t>(bytes, at + 1)};
        const std::size_t body = at + messageHeader;
        if (numberAt<std::uint8_t>(bytes, at) == continuation && depth < 4) {
            const std::uint64_t begin = numberAt<std::uint64_t>(bytes, body) + headerBytes;
            const std::uint64_t length = numberAt<std::uint64_t>(bytes, body + 8);
            if (begin < bytes.size() && length >= 8 && length <= bytes.size() - begin) {
                repairContinuations(bytes, begin + 4, begin + length - 4, messageHeader, depth + 1);
                setChecksum(bytes, begin, begin + length - 4);
            }
        }
        at = body + size;
    }
}

/// Version 2, as in the specification of the file format, IV.A.1.b.
void repairObjectHeader(std::string &bytes, std::size_t begin) {
    const auto flags = numberAt<std::uint8_t>(bytes, begin + 5);
    std::size_t at = begin + 6 + ((flags & 0x20) != 0 ? 16 : 0) + ((flags & 0x10) != 0 ? 4 : 0);
    const std::size_t width = std::size_t{1} << (flags & 3U);
    std::uint64_t size = 0;
    for (std::size_t k = width; k-- > 0;)
        size = size * 256 + numberAt<std::uint8_t>(bytes, at + k);
    at += width;
    if (size > bytes.size() || at + size > bytes.size())
        return;
    repairContinuations(bytes, at, at + size, (flags & 0x04) != 0 ? 6 : 4, 0);
    setChecksum(bytes, begin, at + size);
}

/// The checksums of a dataset's blocks; `edges` are the bytes at which each starts and ends.
std::string sumsOf(const std::string &data, const std::vector<std::pair<index, index>> &edges) {
    std::string sums;
    for (const auto &[begin, end] : edges) {
        const auto size = static_cast<index>(data.size());
        const index from = std::clamp<index>(begin, 0, size), to = std::clamp(end, from, size);
        const std::uint32_t sum =
            Detail::crc32Of(asBytes(data).subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from)));
        sums.append(reinterpret_cast<const char *>(&sum), sizeof sum);
    }
    return sums;
}

void place(std::string &bytes, index at, const std::string &data) {
    if (at <= 0 || at >= static_cast<index>(bytes.size()))
        return;
    const auto begin = static_cast<std::size_t>(at);
    data.copy(bytes.data() + begin, std::min(data.size(), bytes.size() - begin));
}

} // namespace

std::string soundCheckpoint() {
    constexpr index rows = 20;
    std::vector<index> ids(rows), listed(rows);
    std::iota(ids.begin(), ids.end(), index{0});
    for (const index id : ids)
        listed[static_cast<std::size_t>(id)] = 3 * id + 7;
    Array<real, 3> fixed;
    Array<std::int32_t, NonUniformSize> ragged;
    Array<real, NonUniformSize> matrices;
    Array<rowsize, 2> shapes;
    Array<real, DynamicSize> none;
    fixed.resize(rows);
    shapes.resize(rows);
    none.resize(rows, 0);
    ragged.resize(rows, [](index i) { return i % 4; });
    matrices.resize(rows, [](index i) { return 2 * (i % 3); });
    for (index i = 0; i < rows; i++) {
        fixed(i, 1) = static_cast<real>(i);
        shapes(i, 0) = 2;
        shapes(i, 1) = static_cast<rowsize>(i % 3);
        for (rowsize j = 0; j < ragged.rowSize(i); j++)
            ragged(i, j) = j;
    }
    const std::string path = scratchPath();
    CheckpointWriter writer(CommunicatorView(MPI_COMM_SELF), path, {.blockBytes = 64, .mesh = 7});
    writer.set("step", 3);
    writer.set("text", "what a file may say");
    writer.set("numbers", std::vector<real>{1, 2, 3});
    writer.add("fixed", fixed, listed);
    writer.add("ragged", ragged, ids);
    writer.add("matrices", matrices, ids);
    writer.add("matrices.shapes", shapes, ids);
    writer.add("none", none, ids);
    writer.write();
    std::string bytes = contentOf(path);
    std::remove(path.c_str());
    return bytes;
}

CheckpointParts partsOf(const std::string &bytes) {
    const std::string path = scratchPath();
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    CheckpointParts parts{CheckpointReader(CommunicatorView(MPI_COMM_SELF), path).content(), {}};
    std::remove(path.c_str());
    constexpr auto word = static_cast<index>(sizeof(index));
    for (const CheckpointArray &array : parts.content.arrays) {
        const auto part = [&](const CheckpointPlace &at, index count) {
            return count == 0 ? std::string()
                              : bytes.substr(static_cast<std::size_t>(at.values), static_cast<std::size_t>(count));
        };
        parts.data.push_back({part(array.values, array.elements * array.elementBytes),
                              part(array.offsets, array.ragged ? (array.rows + 1) * word : 0),
                              part(array.ids, array.listed ? array.rows * word : 0)});
    }
    return parts;
}

std::string bytesOf(CheckpointParts parts) {
    constexpr double most = 1e12; // HDF5 crashes where it makes datasets that are far larger
    for (const CheckpointArray &array : parts.content.arrays) {
        for (const index number : {array.width, array.rows, array.elements, array.blockRows, array.elementBytes})
            DNDS_CHECK(number >= 0 && static_cast<double>(number) <= most, DataError, "{} is too large", array.name);
        const double width = static_cast<double>(array.width) * static_cast<double>(array.elementBytes);
        DNDS_CHECK(array.blockRows > 0 && array.elementBytes > 0 && width * static_cast<double>(array.rows) < most &&
                       static_cast<double>(array.elements) * static_cast<double>(array.elementBytes) < most,
                   DataError, "{} is too large", array.name);
    }
    const Detail::FileImage image = Detail::makeImage(parts.content);
    std::string bytes(reinterpret_cast<const char *>(image.front.data()), image.front.size());
    if (image.bytes <= largeFile) {
        bytes.resize(static_cast<std::size_t>(std::max<index>(image.bytes, static_cast<index>(bytes.size()))), '\0');
        constexpr auto word = static_cast<index>(sizeof(index));
        for (std::size_t a = 0; a < parts.data.size(); a++) {
            const CheckpointArray &array = parts.content.arrays[a];
            const auto &[values, listed, ids] = parts.data[a];
            const auto &offsets = listed; // Clang before 16 captures no structured bindings
            std::vector<std::pair<index, index>> ofValues, ofOffsets, ofIds;
            for (index b = 0; b < array.blocks(); b++) {
                const index begin = b * array.blockRows, end = std::min(array.rows, begin + array.blockRows);
                const auto start = [&](index row) {
                    return array.ragged ? numberAt<index>(offsets, static_cast<std::size_t>(row * word)) : 0;
                };
                const auto scaled = [&](index row) { // as far as it means anything
                    // Offsets may be any numbers, so that their difference is taken modulo 2^64.
                    const auto from = static_cast<std::uint64_t>(start(0)), to = static_cast<std::uint64_t>(start(row));
                    const index count = array.ragged ? static_cast<index>(to - from) : row * array.width;
                    return std::clamp<index>(count, 0, largeFile) * std::clamp<index>(array.elementBytes, 0, largeFile);
                };
                ofValues.emplace_back(scaled(begin), scaled(end));
                ofOffsets.emplace_back(begin * word, (end + 1) * word);
                ofIds.emplace_back(begin * word, end * word);
            }
            place(bytes, array.values.values, values);
            place(bytes, array.values.checksums, sumsOf(values, ofValues));
            place(bytes, array.offsets.values, offsets);
            place(bytes, array.offsets.checksums, sumsOf(offsets, ofOffsets));
            place(bytes, array.ids.values, ids);
            place(bytes, array.ids.checksums, sumsOf(ids, ofIds));
        }
    }
    const std::string header = Detail::headerOf(image, 0);
    bytes.replace(0, header.size(), header);
    return bytes;
}

void mutate(CheckpointParts &parts, Random &random) {
    for (std::size_t changes = random.below(3) + 1; changes > 0; changes--) {
        const std::size_t a = random.below(parts.content.arrays.size());
        CheckpointArray &array = parts.content.arrays[a];
        const index number = random.oneOf(numbers);
        switch (random.below(10)) {
        case 0:
            array.width = number;
            break;
        case 1:
            array.rows = number;
            break;
        case 2:
            array.elements = number;
            break;
        case 3:
            array.blockRows = number;
            break;
        case 4:
            array.elementBytes = number;
            break;
        case 5:
            array.kind = static_cast<ElementKind>(random.below(static_cast<std::size_t>(ElementKind::Float64) + 1));
            break;
        case 6: // products that fit each other
            array.rows = number;
            array.width = random.oneOf(numbers);
            array.elements =
                static_cast<index>(static_cast<std::uint64_t>(array.rows) * static_cast<std::uint64_t>(array.width));
            break;
        case 7:
            (random.below(2) == 0 ? array.ragged : array.listed) ^= true;
            break;
        default: {
            std::string &data = parts.data[a][random.below(3)];
            if (data.size() < sizeof number)
                break;
            const std::size_t at = random.below(data.size() / 4) * 4;
            if (random.below(2) == 0)
                setNumber(data, at, number);
            else
                setNumber(data, at, static_cast<std::int32_t>(number));
        }
        }
    }
}

void mutateAttribute(std::string &bytes, Random &random) {
    constexpr std::array<std::string_view, 6> names{"elementBytes", "width",     "rows",
                                                    "elements",     "blockRows", "idsListed"};
    const std::string name = std::string(random.oneOf(names)) + '\0';
    std::size_t at = bytes.find(name);
    for (std::size_t skipped = random.below(5); skipped > 0 && at != bytes.npos; skipped--)
        at = bytes.find(name, at + 1);
    if (at != bytes.npos) // after the name come the type, of 12 bytes, and a scalar's dataspace, of 4
        setNumber(bytes, at + name.size() + 16, random.oneOf(numbers));
}

void repairChecksums(std::string &bytes) {
    long long version = 0, size = 0, end = 0;
    unsigned sum = 0;
    if (bytes.size() <= headerBytes + 48 ||
        std::sscanf(bytes.substr(0, headerBytes).c_str(), // NOLINT: what does not match stays
                    "DNDS checkpoint %lld\nfile of %lld bytes, description up to byte %lld with crc32 %x", &version,
                    &size, &end, &sum) != 4)
        return;
    if (end < static_cast<long long>(headerBytes) || end > static_cast<long long>(bytes.size()))
        return;
    setChecksum(bytes, headerBytes, headerBytes + 44); // superblock
    for (std::size_t at = bytes.find("OHDR"); at < static_cast<std::size_t>(end); at = bytes.find("OHDR", at + 4))
        repairObjectHeader(bytes, at);
    const std::size_t place = bytes.find("crc32 ");
    if (place < headerBytes)
        bytes.replace(place + 6, 8,
                      fmt::format("{:08x}", Detail::crc32Of(asBytes(std::string_view(bytes).substr(
                                                headerBytes, static_cast<std::size_t>(end) - headerBytes)))));
}

} // namespace DNDS::Geom::fuzz
