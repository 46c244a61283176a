/// @file SparseCase.hpp
/// @brief Sparse fields that are compared with dense ones, cell by cell and ghost by ghost.
#pragma once

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Blocks/BlockCase.hpp"
#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/Sparse/SparseField.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace DNDS::test {

/// Blocks of a grid: the same on any number of ranks, except for their owners.
struct SparseGrid {
    const char *name;
    std::vector<IndexSpace> spaces;
    std::vector<index> blockShape;
    GhostWidths ghosts;
    std::vector<Connection> connections{};

    std::shared_ptr<const BlockGrid> on(const CommunicatorView &comm) const {
        return BlockGrid::blocksOf(comm, spaces, blockShape, connections);
    }
};

inline std::vector<SparseGrid> sparseGrids() {
    const std::array<bool, 4> all{true, true, true, true};
    // Two zones that touch turned: see docs/guides/blocks.md.
    const Connection turned{
        .space = 0, .begin = {8, 0}, .end = {8, 8}, .other = 1, .otherBegin = {8, 0}, .transform = {2, -1}};
    return {
        {"ring", {{"ring", Box({0}, {40}), all}}, {3}, {2}},
        {"plane with walls", {{"plane", Box({-2, 5}, {17, 18}), {true, false}}}, {4, 3}, {2, 1}},
        {"one side only", {{"torus", Box({0, 0}, {12, 15}), all}}, {4, 5}, GhostWidths::of({0, 2}, {1, 0})},
        {"ghosts wider than blocks", {{"torus", Box({0, 0}, {9, 10}), all}}, {2, 5}, {3, 2}},
        {"box", {{"box", Box({0, 0, 0}, {12, 9, 10}), all}}, {4, 3, 5}, {1, 1, 1}},
        {"turned zones",
         {{"left", Box({0, 0}, {8, 8}), {}}, {"right", Box({0, 0}, {8, 8}), {}}},
         {4, 2},
         {1, 1},
         {turned}},
        {"one block", {{"cell", Box({0, 0}, {3, 2}), all}}, {3, 2}, {2, 2}},
        {"star", {{"box", Box({0, 0, 0}, {12, 9, 10}), {true, false, true}}}, {4, 3, 5}, GhostWidths{1, 2, 1}.star()},
    };
}

/// The value of element `i` of a cell's neighbourhood: what a step of diffusion makes of it. Equal neighbours stay as
/// they are, to the bit.
template <class T>
T diffused(const BlockView<const T> &u, const IndexVector &cell, rowsize c, T background, const GhostWidths &reach) {
    T change = at(u, cell, c) - background;
    const T middle = change;
    for (int d = 0; d < u.dims(); ++d)
        for (const index by : {-std::min<index>(1, reach.low[toSize(d)]), std::min<index>(1, reach.high[toSize(d)])}) {
            IndexVector other = cell;
            other[toSize(d)] += by;
            change += static_cast<T>(0.125) * (at(u, other, c) - background - middle);
        }
    return background + change;
}

template <class T>
void diffuse(const BlockView<const T> &u, const BlockView<T> &next, T background, const GhostWidths &reach) {
    Box cells(u.dims(), {}, {});
    for (int d = 0; d < u.dims(); ++d)
        cells.upper[toSize(d)] = u.extent(d);
    forEachCell(cells, [&](const IndexVector &cell) {
        for (rowsize c = 0; c < u.components(); ++c)
            at(next, cell, c) = diffused(u, cell, c, background, reach);
    });
}

/// All elements of a block, ghosts included.
template <class T>
std::vector<T> elementsOf(const BlockView<const T> &view) {
    std::vector<T> all;
    Box extent(view.dims(), {}, {});
    for (int d = 0; d < view.dims(); ++d) {
        extent.lower[toSize(d)] = -view.ghostsLow(d);
        extent.upper[toSize(d)] = view.extent(d) + view.ghostsHigh(d);
    }
    forEachCell(extent, [&](const IndexVector &cell) {
        for (rowsize c = 0; c < view.components(); ++c)
            all.push_back(at(view, cell, c));
    });
    return all;
}

template <class T>
bool sameBits(const std::vector<T> &a, const std::vector<T> &b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// A number in [0, limit) that is the same on all ranks.
inline std::uint64_t drawn(std::uint64_t limit, std::initializer_list<std::uint64_t> what) {
    ContentHash hash;
    hash.add(seed());
    for (const std::uint64_t word : what)
        hash.add(word);
    return hash.value() % limit;
}

} // namespace DNDS::test
