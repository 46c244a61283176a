/// @file BlockField.hpp
/// @brief A field on the blocks of a grid, with ghost layers inside each block's memory.
#pragma once

#include "DNDS/Array/ParArray.hpp"
#include "DNDS/Blocks/BlockFieldCore.hpp"
#include "DNDS/Blocks/BlockView.hpp"

#include <memory>
#include <string>
#include <utility>

namespace DNDS {

/// Placement of a cell's components.
enum class ComponentOrder : unsigned char {
    Inside, ///< adjacent, cell by cell (AoS)
    Outside ///< one box of cells for each component (SoA)
};

/// Options of a BlockField.
struct BlockFieldOptions {
    GhostWidths ghosts{}; ///< layers, and whether exchanges fill corners: GhostWidths{1, 1}.star() fills none
    rowsize components = 1;
    ComponentOrder order = ComponentOrder::Inside;
    Centring centring{}; ///< the points of cells that have values
};

/// Values of type `T` on all cells of a grid: one allocation per rank, one view per block. AMReX calls this a MultiFab,
/// and `exchangeGhosts` FillBoundary; PETSc's DMDA has one block per rank. Move-only. Memory is initially zero.
///
///     const auto grid = BlockGrid::blocksOf(comm, {"box", Box::ofShape(shape), {true, true, true}}, {32, 32, 32});
///     BlockField<real> u("u", comm, grid, {.ghosts = {1, 1, 1}, .components = 5});
///     u.exchangeGhosts();
///     for (int b = 0; b < u.blocks(); ++b)
///         advance(u.view(b));                               // v(i, j, k, component)
///
/// With `BlockFieldOptions::centring` values are at nodes, faces or edges instead: `v(i, j)` is then the lower end of
/// cell (i, j) in the nodal dimensions, where a view of n cells has the extent n + 1. See BlockPattern for shared
/// points.
///
/// `T` is trivially copyable and not bool. Fields made from one BlockPattern share it, and can be exchanged together
/// with one message per peer (ExchangeGroup).
template <class T>
class BlockField : public BlockFieldCore {
  public:
    using Element = T;

    /// An empty field; every call except assignment throws StateError.
    BlockField() = default;
    /// Collective. Throws as BlockPattern::make, ArgumentError for fewer than 1 component, MemoryError.
    BlockField(std::string name, const CommunicatorView &comm, std::shared_ptr<const BlockGrid> grid,
               const BlockFieldOptions &options)
        : BlockField(std::move(name), comm,
                     BlockPattern::make(comm, std::move(grid), options.ghosts,
                                        options.order == ComponentOrder::Outside ? options.components : 0,
                                        options.centring),
                     options.components) {}
    /// Uses a pattern that other fields may share; `comm` is its communicator. `components` are inside the cells; if
    /// the pattern has components outside, it is their number. Collective. Throws as above.
    BlockField(std::string name, const CommunicatorView &comm, const std::shared_ptr<const BlockPattern> &pattern,
               rowsize components = 1) {
        comm.guarded([&] {
            DNDS_CHECK(pattern != nullptr, ArgumentError, "'{}' is given no pattern", name);
            const rowsize outside = pattern->componentsOutside();
            DNDS_CHECK(components >= 1 && (outside == 0 || outside == components), ArgumentError,
                       "'{}' is to have {} components, its pattern has {} outside (0: any number inside)", name,
                       components, outside);
            array_ = std::make_shared<ParArray<T, DynamicSize>>(std::move(name), comm);
            array_->rehost(memoryFor(*pattern));
            array_->resize(pattern->rows(), outside > 0 ? 1 : components);
            bind(pattern, array_, components);
        });
    }

    /// The number of blocks on this rank.
    int blocks() const {
        requireMade();
        return static_cast<int>(blockPattern()->blocks().size());
    }
    /// The block's number in the grid, its cells and its place in memory; `local` counts this rank's blocks from 0.
    const BlockMemory &block(int local) const { return memoryOf(local); }

    /// A view of the rank's block `local` on the host; the device side becomes stale. O(1). Throws StaleError if the
    /// host is not current, IndexError if the block does not exist.
    BlockView<T> view(int local = 0) { return deviceView<DeviceBackend::Host>(local); }
    BlockView<const T> view(int local = 0) const { return deviceView<DeviceBackend::Host>(local); }
    /// The same in the memory of `backend`.
    template <DeviceBackend backend>
    BlockView<T> deviceView(int local = 0) {
        const BlockMemory &memory = memoryOf(local);
        return viewOf(array_->template deviceView<backend>().data(), memory);
    }
    template <DeviceBackend backend>
    BlockView<const T> deviceView(int local = 0) const {
        const BlockMemory &memory = memoryOf(local);
        return viewOf(std::as_const(*array_).template deviceView<backend>().data(), memory);
    }

    /// All rows of this rank's blocks, cells and ghosts (see BlockPattern). For writers and similar code.
    ParArray<T, DynamicSize> &array() {
        requireMade();
        return *array_;
    }
    const ParArray<T, DynamicSize> &array() const {
        requireMade();
        return *array_;
    }

    /// Exchanges the values of two fields on one pattern, ghosts included: old and new state. Names, set-up exchanges
    /// and the fields' places in task graphs stay. All ranks swap the same fields. Local, O(1). Throws ArgumentError
    /// for other patterns or numbers of components, StateError if one is on the device.
    void swapData(BlockField &other) {
        DNDS_CHECK(blockPattern() == other.blockPattern() && components() == other.components(), ArgumentError,
                   "'{}' and '{}' cannot be swapped: they are not on one pattern, or have {} and {} components", name(),
                   other.name(), components(), other.components());
        DNDS_CHECK(side() == other.side(), StateError,
                   "'{}' and '{}' cannot be swapped: one is on the device, one on the host", name(), other.name());
        array().swapData(other.array());
    }

    /// The same field on the blocks of `to`, which have other ranks: see `BlockGrid::rebalanced`. Cells and ghosts of
    /// all components, those at walls included, name, ghost widths, order and side are the same; this field is
    /// unchanged:
    ///
    ///     u = u.moved(grid);
    ///
    /// Exchanges are set up again at first use; the program remakes its task graphs, groups and views. Collective.
    /// Needs the memory of both fields at once. Throws on all ranks ArgumentError for a grid of other blocks,
    /// StateError for a field in an exchange, and as the constructor; StaleError as exchangeGhosts.
    BlockField moved(const std::shared_ptr<const BlockGrid> &to) const {
        requireMade();
        const CommunicatorView &comm = pattern()->context().comm();
        const BlockPattern &here = *blockPattern();
        BlockField result(array_->name(), comm,
                          BlockPattern::make(comm, to, here.ghosts(), here.componentsOutside(), here.centring()),
                          components());
        copyTo(result);
        return result;
    }

    /// A view of the block `memory` in `all`, the field's memory or a copy with the same layout; null for null. Local,
    /// O(1).
    template <class U>
    BlockView<U> viewOf(U *all, const BlockMemory &memory) const {
        const index width = array_->width();
        const bool outside = blockPattern()->componentsOutside() > 0;
        return {all == nullptr ? nullptr : all + memory.firstRow * width,
                memory.cells,
                memory.extent,
                width,
                components(),
                outside ? memory.extent.size() : 1};
    }

  private:
    std::shared_ptr<ParArray<T, DynamicSize>> array_; ///< the array of the base class, with its type
};

} // namespace DNDS
