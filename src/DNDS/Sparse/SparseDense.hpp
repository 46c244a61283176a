/// @file SparseDense.hpp
/// @brief From sparse to dense fields and back: for functions that take dense ones, such as files for ParaView.
#pragma once

#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/Sparse/SparseField.hpp"

#include <cstddef>
#include <vector>

namespace DNDS {

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
