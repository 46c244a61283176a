/// @file SparseField.hpp
/// @brief Fields on blocks that are nothing in most of them: only blocks that are something have memory.
#pragma once

#include "DNDS/Blocks/BlockView.hpp"
#include "DNDS/Sparse/SparseElements.hpp"
#include "DNDS/Sparse/SparseFieldCore.hpp"
#include "DNDS/Sparse/SparseFields.hpp"

#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace DNDS {

/// Numbers on the blocks of a grid, of which each is allocated or not, as a whole; those that are not have the default
/// value everywhere. Exchanges send only what is there, allocate a block when something arrives at its rim, and free
/// blocks that have become empty. Which blocks are there depends on the values alone: not on ranks.
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
/// An exchange may move memory of blocks: take views anew after it. Fields on one pattern (species) go together in one
/// message a peer: `SparseFields`. Making a field is Local; give all ranks the same, which is checked when the exchange
/// is made. Memory is on the host.
template <class T>
class SparseField : public SparseFieldCore {
  public:
    using Element = T;

    /// Local. Throws ArgumentError for options that cannot be.
    SparseField(std::string name, std::shared_ptr<const SparsePattern> pattern, const SparseFieldOptions &options = {},
                T defaultValue = T{})
        : SparseFieldCore(std::move(name), std::move(pattern), options,
                          std::make_unique<SparseElementsOf<T>>(defaultValue)) {}

    T defaultValue() const noexcept { return static_cast<const SparseElementsOf<T> &>(elements()).value(); }

    /// A view of the rank's block `local`, which is allocated. O(1). Throws IndexError; StateError for one that is not.
    BlockView<T> view(int local, int stage = 0) { return viewAs<T>(local, stage); }
    BlockView<const T> view(int local, int stage = 0) const { return viewAs<const T>(local, stage); }

    /// Copies stage 0 of a block, ghosts included, to that of `to`, a field on the same pattern; allocated in both.
    /// Local. Throws StateError where it is not.
    void copyBlock(int local, SparseField &to) const {
        const std::size_t bytes = toSize(block(local).rows) * toSize(components()) * sizeof(T);
        std::memcpy(to.memoryOf(local, 0), memoryOf(local, 0), bytes);
    }

  private:
    template <class U>
    BlockView<U> viewAs(int local, int stage) const {
        const BlockMemory &memory = block(local);
        return {
            reinterpret_cast<U *>(memoryOf(local, stage)), memory.cells, memory.extent, components(), components(), 1};
    }
};

} // namespace DNDS
