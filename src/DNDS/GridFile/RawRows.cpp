#include "DNDS/GridFile/RawRows.hpp"

#include "DNDS/GridFile/ElementConversion.hpp"
#include "DNDS/GridFile/SlabChunks.hpp"

namespace DNDS::Detail {

namespace {

constexpr index rawBufferBytes = index{16} << 20;

/// Calls `move(place, chunk, bytes)` for contiguous runs of a box in the file, at most a buffer each.
template <class Byte, class Move>
void forEachFileRun(index place, const std::vector<index> &shape, const BasicSlab<Byte> &slab, Move &&move) {
    if (slab.elements() == 0)
        return;
    const auto elementBytes = static_cast<index>(bytesOf(slab.kind));
    index run = 1; // elements of the box that are contiguous in the file
    for (std::size_t d = shape.size(); d-- > 0;) {
        run *= slab.count[d];
        if (slab.count[d] != shape[d])
            break;
    }
    const SlabChunks chunks(slab.count, std::min(run, rawBufferBytes / elementBytes));
    for (index k = 0; k < chunks.size(); k++) {
        const SlabChunk chunk = chunks.at(k);
        const std::vector<index> start = fileStart(slab, chunk);
        index element = 0;
        for (std::size_t d = 0; d < shape.size(); d++)
            element = element * shape[d] + start[d];
        move(place + element * elementBytes, chunk, static_cast<std::size_t>(chunk.elements * elementBytes));
    }
}

} // namespace

void readRawSlab(const DurableFile &file, index place, const std::vector<index> &shape, bool swap, const Slab &slab) {
    std::vector<std::byte> buffer;
    const std::size_t width = bytesOf(slab.kind);
    forEachFileRun(place, shape, slab, [&](index at, const SlabChunk &chunk, std::size_t bytes) {
        buffer.resize(bytes);
        file.readAt(at, buffer);
        if (swap)
            swapBytes(buffer, width);
        scatterChunk(slab, chunk, width, buffer.data());
    });
}

void writeRawSlab(const DurableFile &file, index place, const std::vector<index> &shape, bool swap,
                  const WrittenSlab &slab) {
    std::vector<std::byte> buffer;
    const std::size_t width = bytesOf(slab.kind);
    forEachFileRun(place, shape, slab, [&](index at, const SlabChunk &chunk, std::size_t bytes) {
        buffer.resize(bytes);
        gatherChunk(slab, chunk, width, buffer.data());
        if (swap)
            swapBytes(buffer, width);
        file.writeAt(at, buffer);
    });
}

} // namespace DNDS::Detail
