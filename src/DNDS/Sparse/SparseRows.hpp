/// @file SparseRows.hpp
/// @brief Sparse fields in other forms: as rows with ids, for checkpoints (allocated blocks, and their counters); as
/// dense fields and back, for functions that take dense ones, such as files for ParaView.
#pragma once

#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/Sparse/SparseField.hpp"
#include "DNDS/Sparse/SparseReductions.hpp"
#include "DNDS/Storage/Array.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace DNDS {

/// The blocks of a field on this rank, one row each, for checkpoints that any number of ranks can read:
///
///     CheckpointWriter file(comm, path, {.mesh = blocksFingerprint(*grid)});
///     const SparseRows rows = sparseRows(dust);
///     file.add("dust", rows.cells, rows.ids);
///     file.add("dust.blocks", rows.blocks, rows.ids);      // and write() while `rows` lives
///
///     const CheckpointReader file(comm, path, {.mesh = blocksFingerprint(*grid)});
///     SparseRows rows = sparseRows(dust);                  // for the ids
///     file.read("dust", rows.cells, rows.ids);
///     file.read("dust.blocks", rows.blocks, rows.ids);
///     setBlocks(dust, rows);
///
/// Absent blocks are empty rows: 20 bytes. A run restarted from there that exchanges ghosts has the same bits, and the
/// same allocated blocks, as one without interruption, on any number of ranks. Other stages and ghosts at walls
/// begin with the default; they keep no block.
template <class T>
struct SparseRows {
    Array<T, NonUniformSize, NonUniformSize> cells; ///< [blocks]: cells x components of stage 0, in C order
    Array<std::int32_t, 2> blocks; ///< [blocks x 2]: whether it is allocated, exchanges in which it was empty
    std::vector<index> ids;        ///< the blocks' numbers in the grid
};

/// A copy of this rank's blocks, on the host wherever they are. Local; waits for the device, not for streams of the
/// program.
template <class T>
SparseRows<T> sparseRows(const SparseField<T> &field) {
    SparseRows<T> rows;
    rows.blocks.resize(field.blocks());
    rows.cells.resize(field.blocks(), [&](index b) {
        const int block = static_cast<int>(b);
        const index elements = field.block(block).cells.size() * field.components();
        return field.isAllocated(block) ? static_cast<rowsize>(elements) : 0;
    });
    for (int b = 0; b < field.blocks(); ++b) {
        rows.ids.push_back(field.block(b).block);
        rows.blocks(b, 0) = field.isAllocated(b) ? 1 : 0;
        rows.blocks(b, 1) = field.emptyExchanges(b);
    }
    std::vector<std::byte> copy;
    for (const int b : field.allocatedBlocks()) {
        T *to = rows.cells[b];
        Detail::forEachRun(field.hostView(b, copy),
                           [&](const T *first, index count) { to = std::copy_n(first, count, to); });
    }
    return rows;
}

/// The inverse: sets the field's blocks from the rows, in the memory where they were; ghosts and other stages have the
/// default value. Local.
/// Throws LayoutError for rows of other blocks or components, before anything changes; MemoryError at the pool's limit.
template <class T>
void setBlocks(SparseField<T> &field, const SparseRows<T> &rows) {
    // Everything is checked before the first block is freed.
    const auto elementsOf = [&](int b) { return field.block(b).cells.size() * field.components(); };
    DNDS_CHECK(rows.blocks.size() == field.blocks() && rows.cells.size() == field.blocks(), LayoutError,
               "'{}' has {} blocks here, but {} rows are given", field.name(), field.blocks(), rows.blocks.size());
    DNDS_CHECK(rows.ids.size() == toSize(field.blocks()), LayoutError, "'{}' has {} blocks here, but {} ids are given",
               field.name(), field.blocks(), rows.ids.size());
    for (int b = 0; b < field.blocks(); ++b) {
        DNDS_CHECK(rows.ids[toSize(b)] == field.block(b).block, LayoutError, "block {} of '{}' is given the row of {}",
                   field.block(b).block, field.name(), rows.ids[toSize(b)]);
        DNDS_CHECK((rows.blocks(b, 0) == 0 || rows.blocks(b, 0) == 1) && rows.blocks(b, 1) >= 0, LayoutError,
                   "block {} of '{}': {} is neither there (1) nor absent (0), or its {} empty exchanges are no number",
                   field.block(b).block, field.name(), rows.blocks(b, 0), rows.blocks(b, 1));
        DNDS_CHECK(rows.cells.rowSize(b) == (rows.blocks(b, 0) != 0 ? elementsOf(b) : 0), LayoutError,
                   "block {} of '{}' has {} elements, but {} are given: the rows are of other blocks or components",
                   field.block(b).block, field.name(), elementsOf(b), rows.cells.rowSize(b));
    }
    Detail::refill(field, [&] {
        for (int b = 0; b < field.blocks(); ++b) {
            if (rows.blocks(b, 0) == 0)
                continue;
            field.allocate(b);
            field.setEmptyExchanges(b, rows.blocks(b, 1));
            const T *from = rows.cells[b];
            Detail::forEachRun(field.view(b), [&](T *first, index count) {
                std::copy_n(from, count, first);
                from += count;
            });
        }
    });
}

/// A number that differs for grids of other blocks, periods or connections, and does not depend on the distribution
/// over ranks: identifies the grid in checkpoints of sparse fields. Local.
std::uint64_t blocksFingerprint(const BlockGrid &grid);

namespace Detail {

/// Calls `visit(value in a, value in b)` for all values of all cells of two views of one block.
template <class A, class B, class Visit>
void forEachPair(const BlockView<A> &a, const BlockView<B> &b, Visit &&visit) {
    const int dims = a.dims();
    forEachLine(a.cells(), [&](const IndexVector &cell, index count) {
        A *const first = a.addressOf(cell);
        B *const second = b.addressOf(cell);
        for (index i = 0; i < count; ++i)
            for (rowsize c = 0; c < a.components(); ++c)
                visit(first[i * a.stride(dims - 1) + c * a.stride(dims)],
                      second[i * b.stride(dims - 1) + c * b.stride(dims)]);
    });
}

/// Throws LayoutError unless both fields have the same cells and components.
template <class T>
void requireSameCells(const SparseField<T> &sparse, const BlockField<T> &dense) {
    DNDS_CHECK(sparse.grid() != nullptr && sparse.grid()->signature() == dense.grid()->signature() &&
                   sparse.components() == dense.components() && dense.blockPattern()->centring().ofCells(),
               LayoutError, "'{}' and '{}' are on different grids, have {} and {} components, or not both have cells",
               sparse.name(), dense.name(), sparse.components(), dense.components());
}

} // namespace Detail

/// Copies the cells of a sparse field to a dense one on the same grid; cells of absent blocks get the default.
/// Ghosts stay as they are. The sparse field may be on the device, the dense one is on the host. The way to files of
/// all formats:
///
///     BlockField<real> dense("dust", comm, grid, {});
///     toDense(dust, dense);
///     writeNetcdf(file, "dust", dense);
///
/// Local. Throws LayoutError for other grids or numbers of components; StaleError.
template <class T>
void toDense(const SparseField<T> &sparse, BlockField<T> &dense) {
    Detail::requireSameCells(sparse, dense);
    const T background = sparse.defaultValue();
    std::vector<std::byte> copy;
    for (int b = 0; b < sparse.blocks(); ++b) {
        const auto to = dense.view(b);
        if (sparse.isAllocated(b))
            Detail::forEachPair(sparse.hostView(b, copy), to, [](const T &from, T &into) { into = from; });
        else
            Detail::forEachPair(to, to, [&](T & /*same*/, T &into) { into = background; });
    }
}

/// The inverse: afterwards exactly the blocks with a value above the allocation threshold are allocated.
/// Ghosts and other stages have the default; blocks stay in their memory. For initial states of other programs. Local.
/// Throws as above; MemoryError at the pool's limit.
template <class T>
void fromDense(const BlockField<T> &dense, SparseField<T> &sparse) {
    Detail::requireSameCells(sparse, dense);
    const SparseElementsOf<T> background(sparse.defaultValue());
    if (sparse.blocks() > 0)
        static_cast<void>(dense.view(0)); // throws before anything changes
    Detail::refill(sparse, [&] {
        for (int b = 0; b < sparse.blocks(); ++b) {
            const auto from = dense.view(b);
            bool something = false;
            Detail::forEachPair(from, from, [&](const T &value, const T & /*same*/) {
                something = something || background.firstAbove(reinterpret_cast<const std::byte *>(&value), 1,
                                                               sparse.options().allocationThreshold) == 0;
            });
            if (!something)
                continue;
            sparse.allocate(b);
            Detail::forEachPair(from, sparse.view(b), [](const T &value, T &into) { into = value; });
        }
    });
}

} // namespace DNDS
