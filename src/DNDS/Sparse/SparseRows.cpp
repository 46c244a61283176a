#include "DNDS/Sparse/SparseRows.hpp"

#include "DNDS/Base/ContentHash.hpp"

namespace DNDS {

// All that decides which cells are neighbours, and no names: equal fingerprints mean that rows of one field are rows of
// the other. The grid has blocks of all ranks, so that this is Local.
std::uint64_t blocksFingerprint(const BlockGrid &grid) {
    ContentHash hash;
    for (const Block &block : grid.blocks()) {
        hash.addBytes(block.cells.lower.data(), sizeof block.cells.lower);
        hash.addBytes(block.cells.upper.data(), sizeof block.cells.upper);
        hash.add(static_cast<std::uint64_t>(block.space));
    }
    for (const IndexSpace &space : grid.spaces())
        for (const bool periodic : space.periodic)
            hash.add(periodic ? 1U : 0U);
    for (const Connection &touching : grid.connections()) {
        hash.add(static_cast<std::uint64_t>(touching.space));
        hash.add(static_cast<std::uint64_t>(touching.other));
        hash.addBytes(touching.begin.data(), sizeof touching.begin);
        hash.addBytes(touching.end.data(), sizeof touching.end);
        hash.addBytes(touching.otherBegin.data(), sizeof touching.otherBegin);
        hash.addBytes(touching.transform.data(), sizeof touching.transform);
    }
    return hash.value();
}

} // namespace DNDS
