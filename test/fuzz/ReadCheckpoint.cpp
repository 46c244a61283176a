#include "DNDS/Array/ArrayMatrices.hpp"
#include "DNDS/Serialize/Checkpoint.hpp"
#include "fuzz/ReadBytes.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace DNDS::Geom::fuzz {

namespace {

constexpr long long longestFile = 1LL << 30;     ///< addresses are limited
constexpr std::uintmax_t longestRead = 1U << 24; ///< and so is memory

/// Reads rows into one kind of array, which may be another than the file's.
template <class TArray>
void readInto(const CheckpointReader &reader, const std::string &name, const std::vector<index> &ids) {
    TArray array;
    try {
        reader.read(name, array, ids);
    } catch (const LayoutError &) {
    }
}

} // namespace

void readCheckpoint(const std::string &path) {
    long long version = 0, size = 0;
    std::string header(200, '\0');
    std::ifstream(path, std::ios::binary).read(header.data(), static_cast<std::streamsize>(header.size()));
    if (std::sscanf(header.c_str(), "DNDS checkpoint %lld\nfile of %lld", &version, &size) == 2 && // NOLINT
        size > static_cast<long long>(std::filesystem::file_size(path)) && size <= longestFile)
        std::filesystem::resize_file(path, static_cast<std::uintmax_t>(size)); // takes no room
    const CheckpointReader reader(CommunicatorView(MPI_COMM_SELF), path, {.anyMesh = true});
    if (std::filesystem::file_size(path) > longestRead)
        return;
    for (const CheckpointArray &array : reader.content().arrays) {
        // Of rows without a byte there may be any number: nothing in the file has their size.
        const bool counted = array.ragged || array.listed || array.elements > 0;
        const std::vector<index> ids = counted          ? reader.ownBlock(array.name)
                                       : array.rows > 0 ? std::vector<index>{0, array.rows - 1}
                                                        : std::vector<index>();
        readInto<Array<real, DynamicSize>>(reader, array.name, ids);
        readInto<Array<std::int32_t, 2>>(reader, array.name, ids);
        readInto<Array<std::uint8_t, DynamicSize>>(reader, array.name, ids);
        readInto<Array<std::int32_t, NonUniformSize>>(reader, array.name, ids);
        readInto<Array<real, NonUniformSize, 4>>(reader, array.name, ids);
        if (!reader.has(array.name + ".shapes"))
            continue;
        ArrayEigenMatrix<NonUniformSize, NonUniformSize> matrices("matrices", MPI_COMM_SELF);
        try {
            reader.read(array.name, matrices, ids);
        } catch (const LayoutError &) {
        }
    }
    reader.verify();
}

} // namespace DNDS::Geom::fuzz
