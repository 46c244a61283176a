/// @file SparseFieldCore.hpp
/// @brief The part of `SparseField` that needs no element type.
#pragma once

#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/Sparse/SparsePattern.hpp"
#include "DNDS/Storage/Array.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace DNDS {

class SparseElements;
class SparseFields;
struct SparseFieldState;

/// Options of a sparse field besides its name and default value. The same on all ranks.
struct SparseFieldOptions {
    rowsize components = 1; ///< components of a cell, contiguous
    /// Copies of the field that are allocated together: old and new state, or the stages of a Runge-Kutta step.
    /// Exchanges fill the ghosts of stage 0; see `swapStages`.
    int stages = 1;
    /// A neighbour's block is allocated when a value at the rim differs from the default by more than this.
    real allocationThreshold = 0;
    /// A block counts as empty while no value of its stage 0, including ghosts that stand for cells, differs from the
    /// default by more than this. At most the allocation threshold.
    real deallocationThreshold = 0;
    /// A block is freed when it was empty in this number of consecutive exchanges. 0: never.
    int deallocationCount = 5;
    /// Rims below the threshold are sent, too: they fill ghosts of allocated blocks, and allocate none.
    /// Otherwise, ghosts get the default there, and a stencil loses their contribution.
    bool sendBelowThreshold = true;
};

/// The blocks of one sparse field and their allocation: the base of `SparseField`, compiled once for all types;
/// move-only. A rank knows the allocation of its own blocks only; neighbours learn of it from the bits in messages. All
/// functions throw StateError for a field that was moved from.
class SparseFieldCore {
  public:
    /// As given to the constructor: name, pattern, its grid, options, and numbers per cell. Local.
    const std::string &name() const;
    const std::shared_ptr<const SparsePattern> &pattern() const;
    const std::shared_ptr<const BlockGrid> &grid() const { return pattern()->grid(); }
    const SparseFieldOptions &options() const;
    rowsize components() const { return options().components; }

    /// The number of blocks on this rank, allocated or not.
    int blocks() const { return static_cast<int>(pattern()->blocks().size()); }
    /// The number in the grid of the rank's block `local`, and its cells. Throws IndexError if it does not exist.
    const BlockMemory &block(int local) const;

    /// Whether the rank's block `local` has memory. O(1). Throws IndexError if the block does not exist.
    bool isAllocated(int local) const;
    /// The rank's blocks that have memory, ascending. Local.
    std::vector<int> allocatedBlocks() const;
    /// Allocates the block's memory: cells and ghosts of all stages at the default value. True if it had none before.
    /// Local. Throws MemoryError at the pool's limit; StateError during an exchange; IndexError.
    bool allocate(int local);
    /// Frees its memory with its contents. True if it had any. Local. Throws as above.
    bool free(int local);
    /// A number that no two states of allocation in the process share: it changes when blocks are allocated, freed or
    /// moved, and the field is moved to other ranks. Equal numbers: views of the same `place` are still valid. O(1).
    std::uint64_t generation() const;
    /// The place of a stage in the blocks' memory; swaps exchange places. O(1). Throws IndexError.
    int place(int stage) const;
    /// The number of consecutive exchanges in which the block was empty; 0 for absent ones. Local.
    int emptyExchanges(int local) const;
    /// For restarts: sets that number. Local. Throws StateError for an absent block.
    void setEmptyExchanges(int local, int count);

    /// Moves all blocks to the device, or back, and waits. Exchanges then pack, compare and unpack there, in one kernel
    /// for all channels, with the same decisions. Views of the other side throw StaleError. Local,
    /// O(blocks). Throws StateError during an exchange; NotBuiltError, MemoryError.
    void toDevice();
    void toHost();
    MemorySpace space() const;

    /// Keeps the memory of an allocated block for as long as the result lives, even if the block is freed: for views in
    /// languages that count owners. Local. Throws StateError for an absent block.
    std::shared_ptr<const void> keep(int local) const;

    /// Exchanges two stages of all blocks: old and new. Local, O(1); all ranks call it alike: the next exchange throws
    /// StateError between ranks whose stages 0 differ. Throws IndexError; StateError during an exchange.
    void swapStages(int a, int b);

    /// Refreshes the ghosts of stage 0, allocates blocks and frees them, as `SparseFields` for this field alone.
    /// Collective the first time, then between peers. Throws as there.
    void exchangeGhosts();
    /// The other way: what blocks have added to the ghosts of stage 0 goes to the cells that these stand for, as
    /// `SparseFields::pushGhosts` for this field alone. Collective the first time, then between peers. Throws as there.
    void pushGhosts(PushOp op = PushOp::Sum);
    /// Sets the ghosts that stand for cells to the default, in all blocks: before deposits for a push, if an exchange,
    /// or `swapStages`, has filled them. A push clears those of stage 0 itself. Local, O(ghosts); waits for the device.
    /// Throws IndexError; MemoryError; StateError during an exchange.
    void clearGhosts(int stage = 0);
    /// The exchange of this field alone, for its steps. Collective the first time.
    SparseFields &exchange();

    /// Calls `visit(local, first byte of stage 0)` for each block that an exchange frees, just before: to
    /// count losses, see `DroppedSums`. And for each deposit that a push drops: `local` is the absent block that it was
    /// for, and its memory would be this with the deposit alone. `visit` must not throw, and replaces the previous one;
    /// empty: none. Local. Throws StateError during an exchange.
    void onFree(std::function<void(int local, const std::byte *stage0)> visit);

    /// For task graphs: stands for the field there, a row without elements for each block, allocated or not.
    Array<std::uint8_t, 0> &rows() const;
    /// The same for `Task::changed`.
    void markWritten();

    /// Bytes of the pool used by blocks of this field on this rank: see `roundedSize`. Local, O(blocks).
    std::size_t memoryBytes() const;

  protected:
    SparseFieldCore(std::string name, std::shared_ptr<const SparsePattern> pattern, const SparseFieldOptions &options,
                    std::unique_ptr<const SparseElements> elements);
    SparseFieldCore(SparseFieldCore &&) noexcept;
    SparseFieldCore &operator=(SparseFieldCore &&) noexcept;
    ~SparseFieldCore();

    /// The first byte of an allocated block in `space`. Throws IndexError, StateError for an absent one,
    /// StaleError if blocks are in the other space.
    std::byte *memoryOf(int local, int stage, MemorySpace space) const;
    /// Stage 0 of an allocated block on the host: a copy in `memory`, made larger, where blocks are on the device.
    const std::byte *stageOnHost(int local, std::vector<std::byte> &memory) const;
    const SparseElements &elements() const;
    /// Copies all blocks to `into`, which is on the same blocks on other ranks and has none yet: all stages, counters,
    /// and the side. Collective, within `failTogether`.
    void copyTo(SparseFieldCore &into) const;

  private:
    friend class SparseFields;

    /// Throws StateError if this was moved from.
    SparseFieldState &state() const;

    std::shared_ptr<SparseFieldState> state_; ///< shared with exchanges
    std::unique_ptr<SparseFields> alone_;     ///< the exchange of this field alone; null until it is used
};

} // namespace DNDS
