#include "DNDS/GridFile/SlabChunks.hpp"

#include "DNDS/GridFile/ElementConversion.hpp"

#include <cstring>

namespace DNDS::Detail {

// Faster dimensions are taken whole as long as they fit the limit; the next one is cut into parts.
// Invariant: chunks are boxes that divide the slab, in row-major order of their first elements. All but the last along
// the cut dimension have the same size, so a chunk is computed from its number in O(dims).
SlabChunks::SlabChunks(const std::vector<index> &count, index limit) : count_(count) {
    if (std::ranges::find(count, 0) != count.end()) // the product of the others may exceed an index
        return;
    // A chunk has at least one element.
    limit = std::max<index>(limit, 1);
    index inner = 1; // elements in the dimensions faster than `cut_`
    std::size_t d = count.size();
    while (d > 0 && inner <= limit / count[d - 1])
        inner *= count[--d];
    if (d == 0) { // the whole slab at once
        size_ = 1;
        rows_ = count.empty() ? 1 : count[0];
        return;
    }
    cut_ = d - 1;
    // Rows of the cut dimension in a chunk.
    rows_ = std::max<index>(limit / inner, 1);
    size_ = (count[cut_] + rows_ - 1) / rows_;
    for (std::size_t slow = 0; slow < cut_; slow++)
        size_ *= count[slow];
}

// Decodes k: the part of the cut dimension varies fastest.
SlabChunk SlabChunks::at(index k) const {
    SlabChunk chunk{std::vector<index>(count_.size(), 0), count_, 1};
    if (!count_.empty()) {
        const index parts = (count_[cut_] + rows_ - 1) / rows_;
        chunk.offset[cut_] = (k % parts) * rows_;
        chunk.count[cut_] = std::min(rows_, count_[cut_] - chunk.offset[cut_]);
        k /= parts;
        for (std::size_t d = cut_; d-- > 0;) {
            chunk.offset[d] = k % count_[d];
            chunk.count[d] = 1;
            k /= count_[d];
        }
    }
    for (const index n : chunk.count)
        chunk.elements *= n;
    return chunk;
}

namespace {

/// Calls `copy(memory, packed, bytes)` for each contiguous piece of a chunk: its places, in bytes, and its size.
template <class Byte, class Copy>
void forEachPiece(const BasicSlab<Byte> &slab, const SlabChunk &chunk, std::size_t elementBytes, Copy &&copy) {
    const auto bytes = static_cast<index>(elementBytes);
    forEachRun(chunk, stridesOf(slab), [&](index packed, index memory, index length, index stride) {
        // Elements with gaps are copied one by one.
        const index together = stride == 1 ? length : 1;
        for (index i = 0; i < length; i += together)
            copy((memory + i * stride) * bytes, (packed + i) * bytes, static_cast<std::size_t>(together * bytes));
    });
}

constexpr index rawBufferBytes = index{16} << 20;

/// Calls `move(place, chunk, bytes)` for contiguous runs of a box in the file, at most a buffer each.
/// Chunks of at most `run` elements never cross a gap, so each is one request; the number of requests is the least
/// possible for runs that fit the buffer.
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
        // The position of the chunk's first element in row-major order.
        index element = 0;
        for (std::size_t d = 0; d < shape.size(); d++)
            element = element * shape[d] + start[d];
        move(place + element * elementBytes, chunk, static_cast<std::size_t>(chunk.elements * elementBytes));
    }
}

} // namespace

// Between a slab's memory, which may have strides, and a buffer in the file's order.
void gatherChunk(const WrittenSlab &slab, const SlabChunk &chunk, std::size_t elementBytes, std::byte *packed) {
    forEachPiece(slab, chunk, elementBytes, [&](index from, index to, std::size_t bytes) {
        std::memcpy(packed + to, static_cast<const std::byte *>(slab.data) + from, bytes);
    });
}

void scatterChunk(const Slab &slab, const SlabChunk &chunk, std::size_t elementBytes, const std::byte *packed) {
    forEachPiece(slab, chunk, elementBytes, [&](index to, index from, std::size_t bytes) {
        std::memcpy(static_cast<std::byte *>(slab.data) + to, packed + from, bytes);
    });
}

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

// The slab's memory is const: bytes are swapped in the buffer.
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
