#include "DNDS/GridFile/HdfGrid.hpp"

#include "DNDS/GridFile/ElementConversion.hpp"
#include "DNDS/GridFile/SlabChunks.hpp"

#include <algorithm>
#include <utility>

namespace DNDS::Detail {

namespace {

constexpr index hdfBufferBytes = index{64} << 20;

/// Writes a chunk from a buffer, or takes part with nothing if the chunk is empty. Collective. Negative on failure.
herr_t writeChunk(hid_t data, hid_t type, const std::vector<hsize_t> &start, const std::vector<hsize_t> &count,
                  const void *buffer) {
    HdfObject fileSpace(H5Dget_space(data), H5Sclose);
    hsize_t elements = 1;
    for (const hsize_t n : count)
        elements *= n;
    const hsize_t room = std::max<hsize_t>(elements, 1);
    HdfObject memorySpace(H5Screate_simple(1, &room, nullptr), H5Sclose);
    if (elements == 0) {
        H5Sselect_none(fileSpace.get());
        H5Sselect_none(memorySpace.get());
    } else if (!start.empty()) {
        H5Sselect_hyperslab(fileSpace.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
    }
    HdfObject transfer(H5Pcreate(H5P_DATASET_XFER), H5Pclose);
    H5Pset_dxpl_mpio(transfer.get(), H5FD_MPIO_COLLECTIVE);
    return H5Dwrite(data, type, memorySpace.get(), fileSpace.get(), transfer.get(), buffer);
}

} // namespace

hid_t hdfNumberType(ElementKind kind) {
    return withNumber(kind, [](auto number) -> hid_t {
        using Number = decltype(number);
        if constexpr (std::is_same_v<Number, float>)
            return H5T_NATIVE_FLOAT;
        else if constexpr (std::is_same_v<Number, double>)
            return H5T_NATIVE_DOUBLE;
        else if constexpr (std::is_signed_v<Number>)
            return sizeof(Number) == 1   ? H5T_NATIVE_INT8
                   : sizeof(Number) == 2 ? H5T_NATIVE_INT16
                   : sizeof(Number) == 4 ? H5T_NATIVE_INT32
                                         : H5T_NATIVE_INT64;
        else
            return sizeof(Number) == 1   ? H5T_NATIVE_UINT8
                   : sizeof(Number) == 2 ? H5T_NATIVE_UINT16
                   : sizeof(Number) == 4 ? H5T_NATIVE_UINT32
                                         : H5T_NATIVE_UINT64;
    });
}

void HdfGridFile::writeDataset(hid_t parent, const std::string &name, const std::vector<index> &shape, ElementKind kind,
                               std::span<const WrittenSlab> slabs) {
    const HdfQuiet quiet;
    comm().beforeCollective();
    const std::vector<hsize_t> size(shape.begin(), shape.end());
    HdfObject links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
    need(H5Pset_create_intermediate_group(links.get(), 1), name);
    HdfObject properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_obj_track_times(properties.get(), false); // equal contents make equal files
    HdfObject space(size.empty() ? H5Screate(H5S_SCALAR)
                                 : H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr),
                    H5Sclose);
    HdfObject data(
        H5Dcreate2(parent, name.c_str(), hdfNumberType(kind), space.get(), links.get(), properties.get(), H5P_DEFAULT),
        H5Dclose);
    need(data.get(), name);
    writeSlabs(data.get(), name, kind, slabs);
}

void HdfGridFile::writeSlabs(hid_t data, const std::string &name, ElementKind kind,
                             std::span<const WrittenSlab> slabs) {
    const std::size_t width = bytesOf(kind);
    std::vector<std::pair<const WrittenSlab *, SlabChunk>> chunks;
    for (const WrittenSlab &slab : slabs) {
        const SlabChunks parts(slab.count, hdfBufferBytes / static_cast<index>(width));
        for (index k = 0; k < parts.size(); k++)
            chunks.emplace_back(&slab, parts.at(k));
    }
    const index rounds = comm().allReduce(static_cast<index>(chunks.size()), MPI_MAX);
    std::vector<std::byte> buffer(sizeof(real));
    for (index k = 0; k < rounds; k++) {
        std::vector<hsize_t> start;
        std::vector<hsize_t> count{0};
        if (k < static_cast<index>(chunks.size())) {
            const auto &[slab, chunk] = chunks[static_cast<std::size_t>(k)];
            buffer.resize(static_cast<std::size_t>(chunk.elements) * width);
            gatherChunk(*slab, chunk, width, buffer.data());
            const std::vector<index> first = fileStart(*slab, chunk);
            start.assign(first.begin(), first.end());
            count.assign(chunk.count.begin(), chunk.count.end());
        }
        comm().beforeCollective();
        need(writeChunk(data, hdfNumberType(kind), start, count, buffer.data()), name);
    }
}

} // namespace DNDS::Detail
