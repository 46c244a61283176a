// Structured zones that stay structured: ghosts beyond a connection have the centres of the neighbour's cells.

#include "DNDS/Geom/Cgns/CgnsZones.hpp"

#include "Geom/Cgns/BoxGrid.hpp"

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

namespace DNDS::Geom {
namespace {

using namespace test;

CommunicatorView comm() { return {MPI_COMM_WORLD}; }

/// Two boxes of unit cubes side by side. The indices of the right one run along y, backwards along x, and along z.
void writeTurned(CgnsFile &f, bool bothWays, bool zeroed = false) {
    const Grid left{2, 3, 4};
    const double base = f.base("Base", 3, 3);
    const double zone = f.structuredZone(base, "Left", {3, 4, 5});
    f.coordinates(zone, left.points());
    Points points; // of 3 x 3 x 4 cells with x from 2 to 5
    for (int k = 0; k <= 4; k++)
        for (int j = 0; j <= 3; j++)
            for (int i = 0; i <= 3; i++)
                points.push_back({5.0 - j, 1.0 * i, 1.0 * k});
    const double other = f.structuredZone(base, "Right", {4, 4, 5});
    f.coordinates(other, points);
    const double group = f.add(zone, "ZoneGridConnectivity", "ZoneGridConnectivity_t");
    const double join = f.add(group, "join", "GridConnectivity1to1_t", std::string("Right"));
    f.add(join, "PointRange", "IndexRange_t", Ints{3, 1, 1, 3, 4, 5}, {3, 2});
    f.add(join, "PointRangeDonor", "IndexRange_t", Ints{1, 4, 1, 4, 4, 5}, {3, 2});
    f.add(join, "Transform", "\"int[IndexDimension]\"", Ints{zeroed ? 0 : -2, 1, 3});
    if (!bothWays)
        return;
    const double back = f.add(other, "ZoneGridConnectivity", "ZoneGridConnectivity_t");
    const double again = f.add(back, "again", "GridConnectivity1to1_t", std::string("Left"));
    f.add(again, "PointRange", "IndexRange_t", Ints{1, 4, 1, 4, 4, 5}, {3, 2});
    f.add(again, "PointRangeDonor", "IndexRange_t", Ints{3, 1, 1, 3, 4, 5}, {3, 2});
    f.add(again, "Transform", "\"int[IndexDimension]\"", Ints{2, -1, 3});
}

TEST(CgnsZones, GhostsBeyondConnectionsContinueTheGrid) {
    for (const FileType type : bothTypes)
        for (const auto &[bothWays, zeroed] :
             {std::pair(false, false), std::pair(false, true), std::pair(true, true)}) {
            const WrittenFile file;
            file.write(type, 3.2F, [&, twice = bothWays, zero = zeroed](CgnsFile &f) { writeTurned(f, twice, zero); });
            EXPECT_EQ(readWhole(file).globalNodes, 6 * 4 * 5) << "as an unstructured mesh it is joined, too";
            const CgnsZones zones = readCgnsZones(comm(), file.path());
            ASSERT_EQ(zones.spaces.size(), 2U);
            EXPECT_EQ(zones.spaces[0].name, "Left");
            EXPECT_EQ(zones.spaces[0].cells, Box({0, 0, 0}, {4, 3, 2})) << "the last dimension is the file's first";
            EXPECT_EQ(zones.spaces[1].cells, Box({0, 0, 0}, {4, 3, 3}));
            EXPECT_EQ(zones.connections.size(), bothWays ? 2U : 1U);
            EXPECT_TRUE(zones.warnings.empty());
            const auto grid = BlockGrid::blocksOf(comm(), zones.spaces, std::vector<index>{2, 2, 3}, zones.connections);
            BlockField<real> centres("centres", comm(), grid, {.ghosts = {1, 1, 1}, .components = 3});
            readCgnsCentres(comm(), file.path(), centres);
            centres.exchangeGhosts();
            index checked = 0;
            for (int b = 0; b < centres.blocks(); ++b) {
                const auto v = centres.view(b).fortran();
                const bool right = grid->block(centres.block(b).block).space == 1;
                for (index k = -1; k <= v.extent(2); ++k)
                    for (index j = -1; j <= v.extent(1); ++j)
                        for (index i = -1; i <= v.extent(0); ++i) {
                            const auto at = [&](index n, int d) { return static_cast<real>(v.global(n, d)) + 0.5; };
                            const std::array<real, 3> place{right ? 5 - at(j, 1) : at(i, 0),
                                                            right ? at(i, 0) : at(j, 1), at(k, 2)};
                            const bool inside = place[0] > 0 && place[0] < 5 && place[1] > 0 && place[1] < 3 &&
                                                place[2] > 0 && place[2] < 4;
                            for (int c = 0; c < 3; ++c)
                                EXPECT_EQ(v(i, j, k, c), inside ? place[static_cast<std::size_t>(c)] : 0.0);
                            ++checked;
                        }
            }
            EXPECT_GT(comm().allReduce(checked, MPI_SUM), 60);
        }
}

TEST(CgnsZones, WhatCannotBeIsRefusedOnAllRanks) {
    const WrittenFile unstructured;
    unstructured.write(FileType::Hdf5, 3.2F, [&](CgnsFile &f) {
        const Grid grid{2, 2, 3};
        const double base = f.base("Base", 3, 3);
        const double zone = f.zone(base, "Zone", grid.nodes(), grid.cells());
        f.coordinates(zone, grid.points());
        f.section(zone, "Cells", 17, 1, grid.cells(), grid.hexahedra());
    });
    try {
        (void)readCgnsZones(comm(), unstructured.path());
        ADD_FAILURE() << "no exception";
    } catch (const DataError &error) {
        EXPECT_NE(error.message().find("is not structured"), std::string::npos) << error.message();
    }
    const WrittenFile file;
    file.write(FileType::Hdf5, 3.2F, [&](CgnsFile &f) { writeTurned(f, false); });
    const CgnsZones zones = readCgnsZones(comm(), file.path());
    const auto grid = BlockGrid::blocksOf(comm(), zones.spaces, std::vector<index>{2, 2, 3}, zones.connections);
    BlockField<real> flat("flat", comm(), grid, {.components = 2});
    EXPECT_THROW(readCgnsCentres(comm(), file.path(), flat), ArgumentError);
    const auto one = BlockGrid::cut(comm(), zones.spaces[0]);
    BlockField<real> elsewhere("elsewhere", comm(), one, {.components = 3});
    EXPECT_THROW(readCgnsCentres(comm(), file.path(), elsewhere), ArgumentError);
    EXPECT_THROW((void)readCgnsZones(comm(), file.path(), "NoBase"), ArgumentError);
}

} // namespace
} // namespace DNDS::Geom
