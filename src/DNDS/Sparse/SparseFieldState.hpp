/// @file SparseFieldState.hpp
/// @brief State of a sparse field, as exchanges see it: no element type.
#pragma once

#include "DNDS/Sparse/SparseDevice.hpp"
#include "DNDS/Sparse/SparseElements.hpp"
#include "DNDS/Sparse/SparseFieldCore.hpp"
#include "DNDS/Sparse/SparseMessage.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace DNDS {

/// State shared by a field and its exchanges.
struct SparseFieldState {
    std::string name;
    std::shared_ptr<const SparsePattern> pattern;
    SparseFieldOptions options;
    std::unique_ptr<const SparseElements> elements;
    std::size_t cellBytes = 0;

    /// An allocated block: memory for all stages, one after another.
    struct Memory {
        BlockPool::Owner owner;
        std::byte *bytes = nullptr; ///< in the field's space
        std::size_t stageBytes = 0; ///< size of a stage
        std::size_t witness = 0;    ///< the element of stage 0 that was last found above the threshold
        int below = 0;              ///< consecutive exchanges in which the block was below it
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
    /// Copies `bytes` bytes of allocated blocks to the host, from wherever these are, and waits; `from` is there.
    void copyToHost(std::byte *to, const std::byte *from, std::size_t bytes) const;
    std::byte *memory(int block, int stage = 0) const {
        const Memory &there = blocks[toSize(block)];
        return there.bytes + there.stageBytes * toSize(places[toSize(stage)]);
    }

    /// Allocates memory for a block in the field's space, not yet its own. Throws MemoryError.
    BlockPool::Owner reserve(int block) const;
    /// Makes the block allocated. On the host it has default values then. Does not throw.
    void take(int block, BlockPool::Owner memory) noexcept;
    /// Moves all blocks. Throws MemoryError: then they stay in place.
    void moveTo(MemorySpace to);
    void drop(int block) noexcept;
    /// The same for exchanges, which notify the program.
    void dropEmpty(int block) noexcept;
    /// Whether stage 0 of the block, with ghosts that stand for cells, is below the threshold for freeing: the same in
    /// a restart, after its first exchange. Looks first at the last place that was not.
    bool isBelow(int block) noexcept;
    std::size_t firstWitness(int block) const;
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
