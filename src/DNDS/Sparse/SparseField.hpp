/// @file SparseField.hpp
/// @brief Fields that have the default value in most blocks: only the other blocks have memory.
#pragma once

#include "DNDS/Blocks/BlockView.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Sparse/SparseElements.hpp"
#include "DNDS/Sparse/SparseFieldCore.hpp"
#include "DNDS/Sparse/SparseFields.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS {

/// A field on the blocks of a grid, each of which is allocated or absent as a whole; absent blocks have the default
/// value everywhere. Exchanges send the rims of allocated blocks only, allocate a block when a value above the
/// threshold arrives at its rim, and free blocks that have stayed empty: the sparse variables of Parthenon. Which
/// blocks are allocated depends on values alone, not on ranks.
///
///     const auto pattern = SparsePattern::make(comm, grid, {2, 2, 2});
///     SparseField<real> dust("dust", pattern, {.stages = 2, .allocationThreshold = 1e-8,
///                                              .deallocationThreshold = 1e-9});
///     dust.allocate(b);                                     // and fill in the start
///     dust.exchangeGhosts();
///     for (const int b : dust.allocatedBlocks())
///         advance(std::as_const(dust).view(b), dust.view(b, 1));
///     dust.swapStages(0, 1);
///
/// An exchange may allocate and free blocks: take new views after it. Fields on one pattern (species) share one message
/// a peer: `SparseFields`. Making a field is Local; all ranks give the same arguments, which is checked when the
/// exchange is made. Memory is on the host, or on the device after `toDevice`.
template <class T>
class SparseField : public SparseFieldCore {
  public:
    using Element = T;

    /// Local. Throws ArgumentError for impossible options.
    SparseField(std::string name, std::shared_ptr<const SparsePattern> pattern, const SparseFieldOptions &options = {},
                T defaultValue = T{})
        : SparseFieldCore(std::move(name), std::move(pattern), options,
                          std::make_unique<SparseElementsOf<T>>(defaultValue)) {}

    /// The value of all cells of absent blocks.
    T defaultValue() const { return static_cast<const SparseElementsOf<T> &>(elements()).value(); }

    /// A view of the rank's block `local`, which is allocated. O(1). Throws IndexError; StateError for one that is not;
    /// StaleError where blocks are on the device.
    BlockView<T> view(int local, int stage = 0) { return viewAs<T>(local, stage, MemorySpace::Host); }
    BlockView<const T> view(int local, int stage = 0) const { return viewAs<const T>(local, stage, MemorySpace::Host); }
    /// The same for kernels of `backend`. Throws StaleError where blocks are in the other space.
    template <DeviceBackend backend>
    BlockView<T> deviceView(int local, int stage = 0) {
        return viewAs<T>(local, stage, memorySpaceOf(backend));
    }
    template <DeviceBackend backend>
    BlockView<const T> deviceView(int local, int stage = 0) const {
        return viewAs<const T>(local, stage, memorySpaceOf(backend));
    }

    /// Stage 0 of a block on the host, wherever blocks are: on the device a copy in `memory`, which grows as needed;
    /// waits for it, not for streams of the program. O(block) there. Throws IndexError; StateError for absent blocks.
    BlockView<const T> hostView(int local, std::vector<std::byte> &memory) const {
        const BlockMemory &here = block(local);
        return {reinterpret_cast<const T *>(stageOnHost(local, memory)),
                here.cells,
                here.extent,
                components(),
                components(),
                1};
    }

    /// Copies stage 0 of a block, ghosts included, to that of `to`, a field on the same pattern; allocated in both.
    /// On the host. Local. Throws StateError where it is not, StaleError where blocks are on the device.
    void copyBlock(int local, SparseField &to) const {
        const std::size_t bytes = toSize(block(local).rows) * toSize(components()) * sizeof(T);
        std::memcpy(to.memoryOf(local, 0, MemorySpace::Host), memoryOf(local, 0, MemorySpace::Host), bytes);
    }

    /// The same field on the blocks of `to`, which have other ranks: see `BlockGrid::rebalanced`, and for clusters
    /// `Geom::repartitionTargets`. What is allocated, all components of all stages, ghosts included, counters of empty
    /// exchanges, name, options, default and side are the same, so that a run continues with the same bits; this field
    /// is unchanged:
    ///
    ///     dust = dust.moved(pattern);
    ///
    /// Exchanges (`SparseFields`), task graphs, `onFree` and limits of the pool are the program's to set again;
    /// `DroppedSums::follow` keeps the sums. Collective. Needs the memory of both fields, and of the messages. Throws
    /// on all ranks ArgumentError for a pattern of other blocks or ghosts; StateError during an exchange; MemoryError.
    SparseField moved(const std::shared_ptr<const SparsePattern> &to) const {
        return failTogether(pattern()->context()->comm(), [&] {
            SparseField result(name(), to, options(), defaultValue());
            copyTo(result);
            return result;
        });
    }

  private:
    template <class U>
    BlockView<U> viewAs(int local, int stage, MemorySpace space) const {
        const BlockMemory &memory = block(local);
        return {reinterpret_cast<U *>(memoryOf(local, stage, space)),
                memory.cells,
                memory.extent,
                components(),
                components(),
                1};
    }
};

namespace Detail {

/// Frees all blocks of a field, and calls `fill`, which allocates on the host; then moves the field to its memory
/// space.
template <class T, class Fill>
void refill(SparseField<T> &field, Fill &&fill) {
    const MemorySpace space = field.space();
    for (int b = 0; b < field.blocks(); ++b)
        field.free(b);
    field.toHost();
    fill();
    if (space == MemorySpace::Device)
        field.toDevice();
}

} // namespace Detail

} // namespace DNDS
