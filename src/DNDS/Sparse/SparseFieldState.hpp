/// @file SparseFieldState.hpp
/// @brief State of a sparse field, as exchanges see it: no element type.
#pragma once

#include "DNDS/Sparse/SparseDevice.hpp"
#include "DNDS/Sparse/SparseField.hpp"
#include "DNDS/Sparse/SparseMessage.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace DNDS {

/// State shared by a field and its exchanges, whichever is destroyed first. Invariants: `allocated` has a bit for
/// exactly the blocks with an owner of memory; that memory is current in `space` alone; while `inFlight` is not 0 only
/// exchanges allocate and free.
struct SparseFieldState {
    std::string name;
    std::shared_ptr<const SparsePattern> pattern;
    SparseFieldOptions options;
    std::unique_ptr<const SparseElements> elements;
    std::size_t cellBytes = 0;

    /// An allocated block: memory for all stages, one after another, from the pattern's pool; empty for absent blocks.
    struct Memory {
        BlockPool::Owner owner;
        std::byte *bytes = nullptr; ///< in the field's space
        std::size_t stageBytes = 0; ///< size of a stage
        std::size_t witness = 0;    ///< element of stage 0 last found above the threshold: looked at first
        int below = 0;              ///< consecutive exchanges in which no element was above it
    };
    std::vector<Memory> blocks;
    BlockBits allocated;
    std::uint64_t generation = nextGeneration();         ///< see `SparseFieldCore::generation`
    Array<std::uint8_t, 0> taskRows;                     ///< see `SparseFieldCore::rows`
    std::vector<int> places;                             ///< position of each stage; permuted by swaps
    MemorySpace space = MemorySpace::Host;               ///< current memory space of blocks
    int inFlight = 0;                                    ///< exchanges in progress
    std::function<void(int, const std::byte *)> freeing; ///< see `SparseFieldCore::onFree`

    std::size_t stageBytes(int block) const { return toSize(pattern->blocks()[toSize(block)].rows) * cellBytes; }
    std::size_t totalBytes(int block) const { return stageBytes(block) * places.size(); }
    /// Bytes that the block takes from the pool.
    std::size_t pooledBytes(int block) const { return roundedSize(totalBytes(block)); }
    /// Copies `bytes` bytes at `from`, in the field's space, to host memory, and waits.
    void copyToHost(std::byte *to, const std::byte *from, std::size_t bytes) const;
    std::byte *memory(int block, int stage = 0) const {
        const Memory &there = blocks[toSize(block)];
        return there.bytes + there.stageBytes * toSize(places[toSize(stage)]);
    }

    /// Memory for a block in the field's space, for `take`: the part of an allocation that can fail. Throws
    /// MemoryError.
    BlockPool::Owner reserve(int block) const;
    /// Makes the block allocated, with default values on the host; on the device the caller has filled it. O(block).
    void take(int block, BlockPool::Owner memory) noexcept;
    /// Moves all blocks. Throws MemoryError: then they stay in place.
    void moveTo(MemorySpace to);
    /// Frees a block; its memory returns to the pool when no `keep` holds it.
    void drop(int block) noexcept;
    /// The same for exchanges, which notify the program. Throws what its function throws: then the block stays.
    void dropEmpty(int block);
    /// Whether stage 0 of the block, with ghosts that stand for cells, is below the threshold for freeing. O(1) while
    /// the witness is above it, else O(block): a block in use costs one comparison an exchange. The answer does not
    /// depend on the witness, so that restarts, which have none, decide alike.
    bool isBelow(int block) noexcept;
    std::size_t firstWitness(int block) const; ///< the first element that stands for a cell
    static std::uint64_t nextGeneration() noexcept;
    /// Sets the ghosts that stand for cells to the default, in all blocks; `defaults` are cells of the largest shape.
    /// Or adds jobs that do so to those of `device`.
    void clearGhosts(int stage, const std::byte *defaults, SparseDevice *device) const;
    SparseKind kind() const {
        return {elements->bits(), elements->kind(), static_cast<std::uint32_t>(options.components)};
    }
    /// A copy between cells of two blocks on the device; without `from` of the default, without `to` none yet. With the
    /// threshold for allocation.
    SparseJob jobOf(const ChannelEnd *from, const ChannelEnd *to, int stage = 0) const;
    void requireNoFlight(std::string_view what) const;
    /// Everything that ranks must agree on.
    std::string describe() const;
};

} // namespace DNDS
