/// @file BlockCase.hpp
/// @brief Fields on blocks whose every cell and ghost is compared with what its global index says.
#pragma once

#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/Exchange/FieldCase.hpp"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace DNDS::test {

/// A cell of an index space.
struct CellOf {
    int space = 0;
    IndexVector cell{};
};

/// Maps a cell outside an index space to the cell it stands for, if any. Brute force, written for the test.
using Meaning = std::function<std::optional<CellOf>(const CellOf &)>;

/// For one index space: the index modulo the period.
inline Meaning modulo(const IndexSpace &space) {
    return [space](const CellOf &cell) -> std::optional<CellOf> {
        CellOf same = cell;
        for (int d = 0; d < space.cells.dims; ++d) {
            const std::size_t k = toSize(d);
            const index period = space.cells.extent(d);
            index &i = same.cell[k];
            while (space.periodic[k] && i < space.cells.lower[k])
                i += period;
            while (space.periodic[k] && i >= space.cells.upper[k])
                i -= period;
            if (i < space.cells.lower[k] || i >= space.cells.upper[k])
                return std::nullopt;
        }
        return same;
    };
}

/// Value of component `c` of a cell in version `version`; distinct for all arguments used by tests.
template <class T>
T contents(const CellOf &cell, rowsize c, int version) {
    std::uint64_t number = mix({static_cast<std::uint64_t>(cell.space), static_cast<std::uint64_t>(cell.cell[0]),
                                static_cast<std::uint64_t>(cell.cell[1]), static_cast<std::uint64_t>(cell.cell[2]),
                                static_cast<std::uint64_t>(cell.cell[3]), static_cast<std::uint64_t>(c),
                                static_cast<std::uint64_t>(version)});
    if constexpr (sizeof(T) < sizeof(std::uint64_t))
        number %= 251;                                         // 255 is the poison
    return static_cast<T>(number >> (sizeof(T) < 8 ? 0 : 12)); // doubles hold it exactly
}

template <class T>
constexpr T poison() {
    return static_cast<T>(255);
}

/// The element at local indices of `v`, whatever the number of dimensions.
template <class T>
T &at(const BlockView<T> &v, const IndexVector &i, rowsize c) {
    switch (v.dims()) {
    case 1:
        return v(i[0], c);
    case 2:
        return v(i[0], i[1], c);
    case 3:
        return v(i[0], i[1], i[2], c);
    default:
        return v(i[0], i[1], i[2], i[3], c);
    }
}

/// Calls `function(local indices, cell)` for all cells and ghosts of a block.
template <class Function>
void forEachIn(const BlockMemory &block, const Box &box, Function &&function) {
    forEachCell(box, [&](const IndexVector &cell) {
        IndexVector local{};
        for (int d = 0; d < box.dims; ++d)
            local[toSize(d)] = cell[toSize(d)] - block.cells.lower[toSize(d)];
        function(local, cell);
    });
}

/// Gives all cells of this rank their contents, and all ghosts poison.
template <class T>
void fillField(BlockField<T> &field, int version) {
    for (int b = 0; b < field.blocks(); ++b) {
        const BlockMemory &block = field.block(b);
        const int space = field.grid()->block(block.block).space;
        const auto v = field.view(b);
        for (rowsize c = 0; c < field.components(); ++c)
            forEachIn(block, block.extent, [&](const IndexVector &local, const IndexVector &cell) {
                at(v, local, c) = block.cells.contains(cell) ? contents<T>({space, cell}, c, version) : poison<T>();
            });
    }
}

/// Whether exchanges fill a ghost: in a star only if it lies beyond the block in one dimension. True for cells.
inline bool inShape(const Box &cells, const GhostWidths &ghosts, const IndexVector &cell) {
    int beyond = 0;
    for (std::size_t d = 0; d < toSize(cells.dims); ++d)
        beyond += cell[d] < cells.lower[d] || cell[d] >= cells.upper[d] ? 1 : 0;
    return ghosts.shape == GhostShape::Box || beyond < 2;
}

/// Fails the test unless all cells, and all ghosts that mean one, have the contents, and all others are poison still.
/// Returns how many ghosts meant a cell.
template <class T>
index checkField(const BlockField<T> &field, int version, const Meaning &meaning) {
    index meant = 0;
    index wrong = 0;
    std::string first;
    for (int b = 0; b < field.blocks(); ++b) {
        const BlockMemory &block = field.block(b);
        const int space = field.grid()->block(block.block).space;
        const auto v = field.view(b);
        for (rowsize c = 0; c < field.components(); ++c)
            forEachIn(block, block.extent, [&](const IndexVector &local, const IndexVector &cell) {
                const bool ghost = !block.cells.contains(cell);
                std::optional<CellOf> means = ghost ? meaning({space, cell}) : CellOf{space, cell};
                if (!inShape(block.cells, field.blockPattern()->ghosts(), cell))
                    means.reset();
                meant += ghost && means ? 1 : 0;
                const T expected = means ? contents<T>(*means, c, version) : poison<T>();
                if (at(v, local, c) == expected)
                    return;
                if (wrong++ == 0)
                    first = fmt::format("component {} of ({}) of space {}, of block {} with cells {}, is {}, not {}", c,
                                        fmt::join(std::span(cell).first(toSize(block.cells.dims)), ", "), space,
                                        block.block, toString(block.cells), at(v, local, c), expected);
            });
    }
    EXPECT_EQ(wrong, 0) << first;
    return meant;
}

/// Fills, exchanges and checks, with every available transport. Collective.
template <class T>
void expectExchanges(BlockField<T> &field, const Meaning &meaning) {
    int version = 0;
    forEachTransport([&](const ExchangeOptions &options) {
        field.initExchangeGhosts(options);
        for (int repeat = 0; repeat < 2; ++repeat) {
            fillField(field, ++version);
            field.exchangeGhosts();
            checkField(field, version, meaning);
        }
    });
}

} // namespace DNDS::test
