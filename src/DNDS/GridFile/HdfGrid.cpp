#include "DNDS/GridFile/HdfGrid.hpp"

#include "DNDS/GridFile/ElementConversion.hpp"
#include "DNDS/GridFile/SlabChunks.hpp"

#include <utility>

namespace DNDS::Detail {

namespace {

// Writes are collective: ranks with fewer chunks than the busiest take part with empty boxes.
// At most 64 MiB of memory beside the slabs. The number of rounds is agreed on first, so no rank waits in a write that
// another one does not make.
void writeSlabs(HdfSharedFile &file, hid_t data, const std::string &name, ElementKind kind, std::size_t width,
                std::span<const WrittenSlab> slabs) {
    const auto chunks = chunksOf(slabs, width);
    const index rounds = file.comm().allReduce(static_cast<index>(chunks.size()), MPI_MAX);
    std::vector<std::byte> buffer(sizeof(real));
    for (index k = 0; k < rounds; k++) {
        std::vector<hsize_t> start;
        // An empty box, unless this rank has a chunk left.
        std::vector<hsize_t> count{0};
        if (k < static_cast<index>(chunks.size())) {
            const auto &[slab, chunk] = chunks[static_cast<std::size_t>(k)];
            // Gathered, as slabs have strides in memory; the file gets rows in its order.
            buffer.resize(static_cast<std::size_t>(chunk.elements) * width);
            gatherChunk(*slab, chunk, width, buffer.data());
            const std::vector<index> first = fileStart(*slab, chunk);
            start.assign(first.begin(), first.end());
            count.assign(chunk.count.begin(), chunk.count.end());
        }
        file.writeBox(data, name, hdfNumberType(kind), start, count, buffer.data());
    }
}

} // namespace

// Collective. Space is allocated by HDF5 when the dataset is created: contiguous, without chunks or filters.
void writeHdfGrid(HdfSharedFile &file, hid_t parent, const std::string &name, const std::vector<index> &shape,
                  ElementKind kind, std::span<const WrittenSlab> slabs) {
    const HdfQuiet quiet;
    const std::size_t width = bytesOf(kind); // throws for what is no number
    file.comm().beforeCollective();
    const std::vector<hsize_t> size(shape.begin(), shape.end());
    HdfObject links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
    // Names may have slashes: groups on the way are made.
    file.require(H5Pset_create_intermediate_group(links.get(), 1), name);
    HdfObject data = file.makeDataset(parent, name, hdfNumberType(kind), size, 0, links.get());
    writeSlabs(file, data.get(), name, kind, width, slabs);
}

} // namespace DNDS::Detail
