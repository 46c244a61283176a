/// @file Grid.hpp
/// @brief A grid of points whose rows lie on ranks in uneven pieces, and matrices on it.
#pragma once

#include "DNDS/Linear/SparseMatrix.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

namespace DNDS::test {

inline constexpr index width = 12;
inline constexpr index points = width * 11;

/// The points next to one: west, east, south, north.
inline std::vector<index> neighboursOf(index point) {
    std::vector<index> result;
    if (point % width > 0)
        result.push_back(point - 1);
    if (point % width < width - 1)
        result.push_back(point + 1);
    if (point >= width)
        result.push_back(point - width);
    if (point + width < points)
        result.push_back(point + width);
    return result;
}

/// Rank 1 has none, the others have more and more.
inline index rowsOf(int rank, int size) {
    if (size == 1)
        return points;
    const index weights = index{size} * (size + 1) / 2 - 2;
    const index share = rank == 1 ? 0 : (rank + 1) * points / weights;
    if (rank < size - 1 || size == 2)
        return size == 2 ? (rank == 0 ? points : 0) : share;
    index before = 0;
    for (int other = 0; other < rank; ++other)
        before += rowsOf(other, size);
    return points - before;
}

/// The grid on a communicator, with vectors of b numbers a point.
template <int b>
struct Grid {
    explicit Grid(CommunicatorView on, MatrixPattern::GhostRows ghostRows = MatrixPattern::GhostRows::None)
        : comm(on), x("x", on, rowsOf(on.rank(), on.size())), first(x.father->globalMapping()->localBegin()) {
        const index own = x.father->size();
        std::vector<index> reads;
        for (index row = first; row < first + own; ++row)
            for (const index other : neighboursOf(row))
                reads.push_back(other);
        const std::vector<LocalIndex> columns = x.ghostsFor(reads);
        MatrixPattern::Neighbours lists("neighbours", comm);
        lists.resize(own, [&](index row) { return static_cast<rowsize>(neighboursOf(first + row).size()); });
        std::ranges::copy(columns, lists.data());
        pattern = MatrixPattern::create("grid", x.trans.pattern(), lists, ghostRows);
    }
    ArrayDof<b, 1> vector() const {
        ArrayDof<b, 1> made;
        made.clone(x);
        made.setConstant(0);
        made.trans.initPersistentPull();
        return made;
    }
    index global(index local) const { return pattern->unknowns()->mapping()->toGlobal(local); }

    CommunicatorView comm;
    ArrayDof<b, 1> x;
    index first;
    std::shared_ptr<const MatrixPattern> pattern;
};

/// An entry by global numbers: of the Laplacian with blocks that mix components, and with wind from the west.
template <int b>
typename SparseMatrix<b>::Block entryOf(index row, index column, real wind) {
    using Block = typename SparseMatrix<b>::Block;
    Block mixing = Block::Identity();
    for (int k = 0; k + 1 < b; ++k)
        mixing(k, k + 1) = mixing(k + 1, k) = 0.25 + 0.01 * real(row % 3 + column % 3);
    if (row == column)
        return 6.5 * mixing + 0.3 * Block::Identity();
    const real upwind = column == row - 1 ? wind : column == row + 1 ? -wind : 0;
    return (-1 - upwind) * Block::Identity();
}

template <int b>
SparseMatrix<b> assembled(const Grid<b> &grid, real wind = 0) {
    SparseMatrix<b> a("laplacian", grid.pattern);
    for (index row = 0; row < grid.pattern->rows(); ++row)
        for (const LocalIndex column : grid.pattern->columns(row))
            a.add(row, column, entryOf<b>(grid.global(row), grid.global(column), wind));
    return a;
}

template <int b>
void fill(const Grid<b> &grid, ArrayDof<b, 1> &u) {
    for (index row = 0; row < u.father->size(); ++row)
        for (int k = 0; k < b; ++k)
            (*u.father)(row, k) = std::sin(real(grid.first + row) * 0.7 + k) + 0.1 * k;
}

/// This rank's rows of a vector of the whole grid.
template <int b>
std::vector<real> partOf(const Grid<b> &grid, const ArrayDof<b, 1> &whole) {
    const real *const begin = std::as_const(*whole.father).data() + grid.first * b;
    return {begin, begin + grid.pattern->rows() * b};
}
template <int b>
std::vector<real> ownOf(const ArrayDof<b, 1> &u) {
    const real *const begin = std::as_const(*u.father).data();
    return {begin, begin + std::as_const(*u.father).dataSize()};
}

} // namespace DNDS::test
