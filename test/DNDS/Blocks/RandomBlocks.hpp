/// @file RandomBlocks.hpp
/// @brief Random grids of one index space, or of zones that touch turned, and what identifies their points.
#pragma once

#include "DNDS/Blocks/PointCase.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

namespace DNDS::test {

/// A random grid, and what identifies its points.
struct RandomBlocks {
    std::shared_ptr<const BlockGrid> grid;
    KeyOf keyOf;
    bool turned = false; ///< several index spaces
};

/// The place in the box that zones are parts of, in half cells: nodes are even.
inline KeyOf inBoxOf(std::vector<Zone> zones, const Centring &centring) {
    return [zones = std::move(zones), centring](const CellOf &at) {
        const Zone &zone = zones[toSize(at.space)];
        PointKey key(zone.dims());
        for (std::size_t d = 0; d < zone.dims(); ++d) {
            const index halves = 2 * (at.cell[d] - zone.origin) + (centring.nodal[d] ? 0 : 1);
            const std::size_t a = zone.axis(d);
            key[a] = zone.turn[d] > 0 ? 2 * zone.part.lower[a] + halves : 2 * zone.part.upper[a] - halves;
        }
        return key;
    };
}

/// All pairs of zones that share a face are connected, and the zones are cut at random.
inline std::shared_ptr<const BlockGrid> gridOfZones(const std::vector<Zone> &zones, Random &random) {
    std::vector<Connection> connections;
    for (int a = 0; a < static_cast<int>(zones.size()); ++a)
        for (int b = a + 1; b < static_cast<int>(zones.size()); ++b)
            if (const auto connection = connectionOf(zones, a, b, random() % 2 == 0))
                connections.push_back(*connection);
    std::vector<Block> blocks;
    for (std::size_t z = 0; z < zones.size(); ++z)
        cutAtRandom(zones[z].cells(), static_cast<int>(z), false, random, blocks);
    std::ranges::shuffle(blocks, random);
    return BlockGrid::make(spacesOf(zones), blocks, connections);
}

/// Whether turning the dimensions so maps points of the centring to such points.
inline bool turnFits(const std::vector<int> &turn, const Centring &centring) {
    for (std::size_t d = 0; d < turn.size(); ++d)
        if (centring.nodal[d] != centring.nodal[toSize(std::abs(turn[d]) - 1)])
            return false;
    return true;
}

/// The quarters of a rectangle or the eighths of a box, turned so that points of the centring meet such points.
inline RandomBlocks turnedZones(int dims, const Centring &centring, Random &random) {
    std::vector<std::vector<int>> turns;
    for (const std::vector<int> &turn : orientations(dims))
        if (turnFits(turn, centring))
            turns.push_back(turn);
    const Box box = dims == 2 ? Box({0, 0}, {6, 7}) : Box({0, 0, 0}, {4, 5, 3});
    const IndexVector cuts{2, 3, 1};
    std::vector<Zone> zones;
    forEachCell(dims == 2 ? Box({0, 0}, {2, 2}) : Box({0, 0, 0}, {2, 2, 2}), [&](const IndexVector &side) {
        Zone zone{box, turns[random() % turns.size()], static_cast<index>(random() % 7) - 3};
        for (std::size_t d = 0; d < toSize(dims); ++d)
            (side[d] == 0 ? zone.part.upper[d] : zone.part.lower[d]) = cuts[d];
        zones.push_back(zone);
    });
    std::ranges::shuffle(zones, random);
    return {gridOfZones(zones, random), inBoxOf(zones, centring), true};
}

/// The same index spaces in other blocks.
inline std::shared_ptr<const BlockGrid> recut(const BlockGrid &grid, bool holes, Random &random) {
    std::vector<Block> blocks;
    while (blocks.empty())
        for (std::size_t z = 0; z < grid.spaces().size(); ++z)
            cutAtRandom(grid.spaces()[z].cells, static_cast<int>(z), holes, random, blocks);
    std::ranges::shuffle(blocks, random);
    return BlockGrid::make(grid.spaces(), blocks, grid.connections());
}

/// The same blocks on other ranks.
inline std::shared_ptr<const BlockGrid> redealt(const BlockGrid &grid, Random &random) {
    std::vector<Block> blocks = grid.blocks();
    for (Block &block : blocks)
        block.rank = static_cast<int>(random() % toSize(here().size()));
    return BlockGrid::make(grid.spaces(), blocks, grid.connections());
}

/// One index space, or zones that touch turned.
inline RandomBlocks randomBlocks(int dims, bool turned, const Centring &centring, Random &random) {
    if (turned)
        return turnedZones(dims, centring, random);
    std::shared_ptr<const BlockGrid> grid;
    const bool holes = random() % 3 == 0;
    while (grid == nullptr || grid->blocks().empty())
        grid = randomGrid(dims, holes, random);
    return {grid, moduloPeriods(grid->spaces()[0])};
}

} // namespace DNDS::test
