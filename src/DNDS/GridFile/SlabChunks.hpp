/// @file SlabChunks.hpp
/// @brief Divides boxes into requests of limited size, and copies between them and strided memory; boxes of elements
/// stored contiguously from a place in a file. Part of NetcdfReader, NetcdfWriter, RawFile and VtkGridFile.
#pragma once

#include "DNDS/GridFile/Slab.hpp"
#include "DNDS/Serialize/DurableFile.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace DNDS::Detail {

/// A part of a slab.
struct SlabChunk {
    std::vector<index> offset; ///< from the slab's start
    std::vector<index> count;
    index elements = 0;
};

/// Parts of a box with at most `limit` elements (at least one each), cut along slow dimensions only. Local; O(1) each.
class SlabChunks {
  public:
    SlabChunks(const std::vector<index> &count, index limit);
    index size() const noexcept { return size_; }
    SlabChunk at(index k) const;

  private:
    std::vector<index> count_;
    std::size_t cut_ = 0; ///< the dimension that is cut; slower ones advance by one, faster ones are whole
    index rows_ = 1;      ///< rows of a chunk along `cut_`
    index size_ = 0;
};

/// Bytes of memory beside the slabs in which elements are gathered and converted.
constexpr index requestBytes = index{64} << 20;

/// The parts of slabs of elements of `width` bytes that fit it.
inline std::vector<std::pair<const WrittenSlab *, SlabChunk>> chunksOf(std::span<const WrittenSlab> slabs,
                                                                       std::size_t width) {
    std::vector<std::pair<const WrittenSlab *, SlabChunk>> chunks;
    for (const WrittenSlab &slab : slabs) {
        const SlabChunks parts(slab.count, requestBytes / static_cast<index>(width));
        for (index k = 0; k < parts.size(); k++)
            chunks.emplace_back(&slab, parts.at(k));
    }
    return chunks;
}

/// The memory strides of a slab, in elements.
template <class Byte>
std::vector<index> stridesOf(const BasicSlab<Byte> &slab) {
    if (!slab.strides.empty())
        return slab.strides;
    std::vector<index> strides(slab.count.size(), 1);
    for (std::size_t d = strides.size(); d-- > 1;)
        strides[d - 1] = strides[d] * std::max<index>(slab.count[d], 1);
    return strides;
}

/// Calls `run(packed, memory, length, stride)` for each row of a chunk along the fastest dimension: element `packed` of
/// the chunk is element `memory` of the slab's data, and so on for `length` of them, `stride` apart.
template <class Run>
void forEachRun(const SlabChunk &chunk, const std::vector<index> &strides, Run &&run) {
    if (chunk.elements == 0)
        return;
    const std::size_t dims = chunk.count.size();
    index memory = 0;
    for (std::size_t d = 0; d < dims; d++)
        memory += chunk.offset[d] * strides[d];
    if (dims == 0)
        return run(index{0}, memory, index{1}, index{1});
    const index length = chunk.count[dims - 1];
    std::vector<index> at(dims, 0);
    for (index packed = 0; packed < chunk.elements; packed += length) {
        run(packed, memory, length, strides[dims - 1]);
        for (std::size_t d = dims - 1; d-- > 0;) {
            memory += strides[d];
            if (++at[d] < chunk.count[d])
                break;
            memory -= chunk.count[d] * strides[d];
            at[d] = 0;
        }
    }
}

/// Copies the elements of a chunk from memory, one after another, to `packed`, or back. Local.
void gatherChunk(const WrittenSlab &slab, const SlabChunk &chunk, std::size_t elementBytes, std::byte *packed);
void scatterChunk(const Slab &slab, const SlabChunk &chunk, std::size_t elementBytes, const std::byte *packed);

/// The first element of a chunk in the file.
template <class Byte>
std::vector<index> fileStart(const BasicSlab<Byte> &slab, const SlabChunk &chunk) {
    std::vector<index> start = slab.start;
    for (std::size_t d = 0; d < start.size(); d++)
        start[d] += chunk.offset[d];
    return start;
}

/// Reads a box of the elements of `shape`, the first of which is at byte `place`; `swap` reverses the byte order.
/// Requests are as long as elements are contiguous in the file. Local. Throws DataError.
void readRawSlab(const DurableFile &file, index place, const std::vector<index> &shape, bool swap, const Slab &slab);
void writeRawSlab(const DurableFile &file, index place, const std::vector<index> &shape, bool swap,
                  const WrittenSlab &slab);

} // namespace DNDS::Detail
