#include "DNDS/GridFile/NetcdfSpace.hpp"

#include "DNDS/GridFile/ElementConversion.hpp"
#include "DNDS/Serialize/DurableFile.hpp"

#include <algorithm>
#include <array>

namespace DNDS::Detail {

namespace {

// Upper bounds of the space that HDF5 1.10 to 1.14 needs besides the numbers.
constexpr double bytesOfFile = 1 << 16;
constexpr double bytesOfVariable = 1 << 13; ///< its header, and the first node of the tree of its chunks
constexpr double bytesOfAttribute = 1 << 9; ///< without its value
constexpr double bytesOfChunk = 1 << 7;     ///< its entry in the tree
constexpr double compressedFill = 0.01;     ///< ratio for chunks that hold one value; zlib gets to 0.001

/// Clamps sizes beyond any disk, which the disk then refuses.
index wholeBytes(double bytes) {
    constexpr double most = 9e18;
    return static_cast<index>(std::min(bytes, most));
}

// Headers and values of attributes.
double attributeBytes(const std::vector<NetcdfAttribute> &attributes) {
    double bytes = 0;
    for (const NetcdfAttribute &attribute : attributes)
        bytes += bytesOfAttribute +
                 std::visit([](const auto &value) { return static_cast<double>(value.size() * sizeof(value[0])); },
                            attribute.value);
    return bytes;
}

} // namespace

// Variables without unlimited dimensions are filled when they are declared; others begin empty.
index netcdf4BytesAtStart(const NetcdfContent &content, int deflate) {
    double bytes = bytesOfFile + attributeBytes(content.attributes);
    for (const NetcdfVariable &variable : content.variables) {
        double numbers = static_cast<double>(bytesOf(variable.kind));
        for (const NetcdfDimension &dimension : variable.dimensions)
            numbers *= dimension.unlimited ? 0.0 : static_cast<double>(dimension.length);
        bytes += numbers * (deflate > 0 ? compressedFill : 1) + bytesOfVariable + attributeBytes(variable.attributes);
    }
    return wholeBytes(bytes);
}

// Counts the chunks that the new extents add, and the chunks that the box touches.
// Too large an estimate costs disk space until the file is closed; too small a one lets a full disk end a collective
// write in the middle. Hence upper bounds throughout. O(dims).
index netcdf4BytesOf(const NetcdfPlace &place, ElementKind kind, const std::vector<index> &extent,
                     const WrittenBox &box, const std::string &path) {
    int storage = NC_CONTIGUOUS;
    std::array<std::size_t, NC_MAX_VAR_DIMS> chunk{};
    requireNetcdf(nc_inq_var_chunking(place.group, place.variable, &storage, chunk.data()), path, "tell its chunks");
    if (storage != NC_CHUNKED) // HDF5 has filled it
        return wholeBytes(bytesOfFile);
    int shuffle = 0;
    int deflate = 0;
    int level = 0;
    requireNetcdf(nc_inq_var_deflate(place.group, place.variable, &shuffle, &deflate, &level), path,
                  "tell its filters");
    double before = 1;
    double after = 1;
    double touched = 1;
    double chunkBytes = static_cast<double>(bytesOf(kind));
    for (std::size_t d = 0; d < extent.size(); d++) {
        // Products over dimensions: of chunks before and after, of those the box touches, of elements in each. In
        // double precision, which does not overflow.
        const auto size = static_cast<index>(chunk[d]);
        const auto chunks = [size](index elements) { return elements / size + (elements % size > 0 ? 1 : 0); };
        before *= static_cast<double>(chunks(extent[d]));
        after *= static_cast<double>(chunks(std::max(extent[d], box.last[d])));
        touched *= static_cast<double>(std::max<index>(chunks(box.last[d]) - box.first[d] / size, 0));
        chunkBytes *= static_cast<double>(size);
    }
    // A compressed chunk that changes is relocated; others stay in place or are new.
    const double fresh = after - before;
    const double numbers = deflate != 0
                               ? touched * chunkBytes * (1 + compressedFill) + fresh * chunkBytes * compressedFill
                               : fresh * chunkBytes;
    return wholeBytes(numbers + std::max(fresh, touched) * bytesOfChunk + bytesOfFile);
}

} // namespace DNDS::Detail
