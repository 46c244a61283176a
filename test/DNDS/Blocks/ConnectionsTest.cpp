#include "DNDS/Blocks/BlockGrid.hpp"

#include "DNDS/Blocks/BlockCase.hpp"
#include "DNDS/Blocks/CutBox.hpp"
#include "DNDS/Blocks/ZoneCase.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "support/World.hpp"

#include <random>

namespace DNDS::test {
namespace {

/// The zones cut into blocks of two cells a dimension, dealt to the ranks.
std::vector<Block> dealt(const std::vector<IndexSpace> &spaces, index width) {
    std::vector<Block> blocks;
    for (std::size_t s = 0; s < spaces.size(); ++s) {
        const Box &cells = spaces[s].cells;
        IndexVector parts{1, 1, 1, 1};
        for (int d = 0; d < cells.dims; ++d)
            parts[toSize(d)] = (cells.extent(d) + width - 1) / width;
        forEachCell(Box(cells.dims, {}, parts), [&](const IndexVector &part) {
            const int rank = static_cast<int>(blocks.size()) % world().size();
            blocks.push_back({partOf(cells, parts, part), rank, static_cast<int>(s)});
        });
    }
    return blocks;
}

std::vector<Connection> connectionsOf(const std::vector<Zone> &zones, bool zeroed) {
    std::vector<Connection> connections;
    for (int a = 0; a < static_cast<int>(zones.size()); ++a)
        for (int b = a + 1; b < static_cast<int>(zones.size()); ++b)
            if (const auto connection = connectionOf(zones, a, b, zeroed))
                connections.push_back(*connection);
    return connections;
}

/// One exchange a shape of ghosts by the transport that is chosen, compared with the box. Returns how many of all
/// ghosts mean a cell.
index exchangeAndCheck(const std::shared_ptr<const BlockGrid> &grid, const GhostWidths &ghosts,
                       const Meaning &meaning) {
    index meant = 0;
    for (const GhostWidths &widths : {ghosts.star(), ghosts}) {
        BlockField<real> u("u", world(), grid, {.ghosts = widths, .components = 2});
        fillField(u, 1);
        u.exchangeGhosts();
        meant = checkField(u, 1, meaning);
    }
    return world().allReduce(meant, MPI_SUM);
}

TEST(Connections, TwoZonesInAllOrientations) {
    int tried = 0;
    for (const int dims : {2, 3}) {
        const Box box = dims == 2 ? Box({0, 0}, {5, 4}) : Box({0, 0, 0}, {5, 4, 3});
        Box left = box;
        Box right = box;
        left.upper[0] = right.lower[0] = 3;
        std::vector<int> plain;
        for (int d = 1; d <= dims; ++d)
            plain.push_back(d);
        for (const auto &turn : orientations(dims))
            for (const bool zeroed : {false, true}) {
                SCOPED_TRACE(fmt::format("turn {}, zeroed {}", fmt::join(turn, " "), zeroed));
                const std::vector<Zone> zones{{left, plain, 1}, {right, turn, -2}};
                const auto grid =
                    BlockGrid::make(spacesOf(zones), dealt(spacesOf(zones), 3), connectionsOf(zones, zeroed));
                EXPECT_GT(exchangeAndCheck(grid, GhostWidths::uniform(dims, 2), inZones(zones)), 0);
                ++tried;
            }
    }
    EXPECT_EQ(tried, 2 * (8 + 48));
}

TEST(Connections, EightZonesTurnedAtRandomHaveRightEdgesAndCorners) {
    std::mt19937 random(static_cast<unsigned>(seed()));
    const auto all = orientations(3);
    for (int round = 0; round < 8; ++round) {
        SCOPED_TRACE(round);
        const Box box({0, 0, 0}, {5, 6, 4});
        const IndexVector cuts{2, 3, 2};
        std::vector<Zone> zones;
        forEachCell(Box({0, 0, 0}, {2, 2, 2}), [&](const IndexVector &side) {
            Zone zone{box, all[random() % all.size()], static_cast<index>(random() % 7) - 3};
            for (std::size_t d = 0; d < 3; ++d)
                (side[d] == 0 ? zone.part.upper[d] : zone.part.lower[d]) = cuts[d];
            zones.push_back(zone);
        });
        const auto connections = connectionsOf(zones, round % 2 == 1);
        EXPECT_EQ(connections.size(), 12U);
        const auto grid = BlockGrid::make(spacesOf(zones), dealt(spacesOf(zones), 2), connections);
        exchangeAndCheck(grid, GhostWidths{1, 1, 1}, inZones(zones));
        exchangeAndCheck(grid, GhostWidths::of({3, 0, 1}, {1, 4, 2}), inZones(zones)); // through whole zones
    }
}

TEST(Connections, ZonesAreCutIntoBlocksInShares) {
    const std::vector<Zone> zones{{Box({0, 0}, {9, 8}), {-2, 1}, 0}, {Box({9, 0}, {14, 8}), {1, -2}, 3}};
    const auto grid =
        BlockGrid::blocksOf(world(), spacesOf(zones), std::vector<index>{4, 3}, connectionsOf(zones, true));
    EXPECT_EQ(grid->totalCells(), 14 * 8);
    EXPECT_EQ(grid->ranks(), world().size());
    exchangeAndCheck(grid, GhostWidths{2, 3}, inZones(zones));
}

TEST(Connections, OneSideMayBeLongerThanTheOther) {
    const std::vector<Zone> zones{{Box({0, 0}, {4, 9}), {1, 2}, 0},
                                  {Box({4, 2}, {7, 5}), {-2, 1}, 0},
                                  {Box({4, 5}, {7, 7}), {2, -1}, 0}}; // the last two do not reach the corners
    const auto grid = BlockGrid::make(spacesOf(zones), dealt(spacesOf(zones), 4), connectionsOf(zones, false));
    exchangeAndCheck(grid, GhostWidths{2, 2}, inZones(zones));
}

/// Faces of squares of 4 x 4 cells around one vertex, square k's upper end of dimension 1 on square k + 1's of
/// dimension 0: four of them are a plane, three or five are not.
std::shared_ptr<const BlockGrid> around(int squares) {
    std::vector<IndexSpace> spaces;
    std::vector<Block> blocks;
    std::vector<Connection> connections;
    for (int k = 0; k < squares; ++k) {
        spaces.push_back({"square", Box({0, 0}, {4, 4}), {}});
        blocks.push_back({spaces.back().cells, k % world().size(), k});
        // Lower sides meet: (0, j) of the next is (j, 0) of this one.
        connections.push_back({k, {0, 0}, {4, 0}, (k + 1) % squares, {0, 0}, {2, 0}});
    }
    return BlockGrid::make(spaces, blocks, connections);
}

TEST(Connections, CornersWhereThreeOrFiveSpacesMeetAreReachedThroughTheLowestDimensionFirst) {
    for (const int squares : {3, 4, 5}) {
        SCOPED_TRACE(squares);
        const auto grid = around(squares);
        const Meaning meaning = [squares](const CellOf &at) -> std::optional<CellOf> {
            const auto [x, y] = std::pair(at.cell[0], at.cell[1]);
            const int before = (at.space + squares - 1) % squares;
            const int next = (at.space + 1) % squares;
            if (x >= 4 || y >= 4)
                return std::nullopt; // those are walls
            if (x < 0 && y >= 0)
                return CellOf{before, {y, -1 - x}};
            if (x >= 0 && y < 0)
                return CellOf{next, {-1 - y, x}};
            return CellOf{(before + squares - 1) % squares, {-1 - x, -1 - y}}; // the one before the one before
        };
        exchangeAndCheck(grid, GhostWidths{2, 2}, meaning);
    }
}

TEST(Connections, ASpaceMayBeFoldedOntoItself) {
    // An ocean's northern fold: the last row touches itself, mirrored; the other direction is periodic.
    const IndexSpace ocean{"tripolar", Box({0, 0}, {5, 8}), {false, true}};
    const Connection fold{0, {5, 0}, {5, 8}, 0, {5, 8}, {-1, -2}};
    const auto grid = BlockGrid::make({ocean}, dealt({ocean}, 3), {fold});
    exchangeAndCheck(grid, GhostWidths{2, 1}, [&](const CellOf &at) -> std::optional<CellOf> {
        IndexVector cell = at.cell;
        if (cell[0] >= 5)
            cell = {9 - cell[0], 7 - cell[1]};
        cell[1] = (cell[1] + 8) % 8;
        return cell[0] < 0 ? std::nullopt : std::optional(CellOf{0, cell});
    });
}

TEST(Connections, FilesMayNameEachConnectionTwice) {
    const std::vector<Zone> zones{{Box({0, 0}, {4, 4}), {1, 2}, 0}, {Box({4, 0}, {7, 4}), {-2, 1}, 0}};
    const auto once = *connectionOf(zones, 0, 1, false);
    const auto again = *connectionOf(zones, 1, 0, false);
    const auto grid = BlockGrid::make(spacesOf(zones), dealt(spacesOf(zones), 4), {once, again});
    exchangeAndCheck(grid, GhostWidths{1, 1}, inZones(zones));
}

TEST(Connections, RefusesWhatCannotBe) {
    const std::vector<Zone> zones{{Box({0, 0}, {4, 4}), {1, 2}, 0}, {Box({4, 0}, {7, 4}), {1, 2}, 0}};
    const Connection good = *connectionOf(zones, 0, 1, false);
    const auto refused = [&](const Connection &connection) {
        return messageOf<ArgumentError>(
            [&] { (void)BlockGrid::make(spacesOf(zones), dealt(spacesOf(zones), 4), {connection}); });
    };
    Connection bad = good;
    bad.other = 2;
    expectContains(refused(bad), "index space 2");
    bad = good;
    bad.begin[0] = bad.end[0] = 2;
    expectContains(refused(bad), "lies inside");
    bad = good;
    bad.end = bad.begin;
    expectContains(refused(bad), "no face");
    bad = good;
    bad.begin[0] = 0;
    expectContains(refused(bad), "several vertices in all dimensions");
    bad = good;
    bad.end[1] = 9;
    expectContains(refused(bad), "has [0, 4]");
    bad = good;
    bad.transform = {-1, 2, 0, 0};
    expectContains(refused(bad), "one index space lies on the other");
    bad = good;
    bad.transform = {1, 0, 0, 0};
    expectContains(refused(bad), "only that of the face's normal");
    bad = good;
    bad.transform = {1, 7, 0, 0};
    refused(bad);
    Connection shifted = good;
    shifted.end[1] = 3;
    shifted.otherBegin[1] += 1;
    expectContains(messageOf<ArgumentError>([&] {
                       (void)BlockGrid::make(spacesOf(zones), dealt(spacesOf(zones), 4), {good, shifted});
                   }),
                   "share cells");
    auto periodic = spacesOf(zones);
    periodic[0].periodic[0] = true;
    expectContains(messageOf<ArgumentError>([&] { (void)BlockGrid::make(periodic, dealt(periodic, 4), {good}); }),
                   "periodic");
}

} // namespace
} // namespace DNDS::test
