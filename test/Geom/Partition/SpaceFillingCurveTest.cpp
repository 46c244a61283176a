#include "DNDS/Geom/Partition/SpaceFillingCurve.hpp"

#include "DNDS/Geom/Source/IndexPermutation.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace DNDS::Geom {
namespace {

TEST(SpaceFillingCurve, VisitsNeighboursOneAfterTheOther) {
    // The corner of 8^3 cells at the origin is visited as a whole, each cell next to the one before.
    std::vector<std::pair<std::uint64_t, std::array<std::uint32_t, 3>>> cells;
    for (std::uint32_t i = 0; i < 8; i++)
        for (std::uint32_t j = 0; j < 8; j++)
            for (std::uint32_t k = 0; k < 8; k++)
                cells.push_back({hilbertNumber({i, j, k}), {i, j, k}});
    std::sort(cells.begin(), cells.end());
    for (std::size_t n = 0; n < cells.size(); n++) {
        EXPECT_EQ(cells[n].first, n);
        int distance = 0;
        for (std::size_t d = 0; n > 0 && d < 3; d++)
            distance += std::abs(static_cast<int>(cells[n].second[d]) - static_cast<int>(cells[n - 1].second[d]));
        EXPECT_EQ(distance, n > 0 ? 1 : 0);
    }
}

TEST(SpaceFillingCurve, KeysOfPointsStayInTheBox) {
    const std::array<real, 3> lower{-1.0, 2.0, 0.0};
    const std::array<real, 3> upper{3.0, 4.0, 0.0};
    const std::vector<std::array<real, 3>> points{lower, upper, {1.0, 3.0, 0.0}};
    const auto keys = curveKeys(points, lower, upper);
    EXPECT_EQ(keys[0], 0);
    EXPECT_NE(keys[1], keys[2]);
    for (const index key : keys)
        EXPECT_GE(key, 0);
    EXPECT_EQ(curveKeys(points, lower, lower), std::vector<index>(3, 0)); // no extent
}

TEST(SpaceFillingCurve, IsCutIntoEqualPiecesWhereverKeysAre) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    // Rank r has r shares of the keys, rank 0 none: those of a permutation of 0, ..., squeezed into few high bits.
    const index total = 4000;
    const IndexPermutation permutation(total, test::seed());
    const index shares = std::max(1, comm.size() * (comm.size() - 1) / 2);
    const auto cut = [&](int rank) {
        return comm.size() == 1 ? (rank == 0 ? 0 : total) : total * (rank * (rank - 1) / 2) / shares;
    };
    std::vector<index> keys;
    std::vector<index> weights;
    for (index i = cut(comm.rank()); i < cut(comm.rank() + 1); i++) {
        keys.push_back((permutation(i) << 40) + 17);
        weights.push_back(permutation(i) < total / 2 ? 3 : 1);
    }
    for (const bool weighted : {false, true})
        for (const int parts : {1, 2, 7}) {
            const auto part = partitionCurve(comm, keys, weighted ? weights : std::vector<index>(), parts);
            std::vector<index> sums(static_cast<std::size_t>(parts), 0);
            std::vector<index> least(sums.size(), index{1} << 62);
            std::vector<index> most(sums.size(), -1);
            for (std::size_t i = 0; i < keys.size(); i++) {
                const auto p = static_cast<std::size_t>(part[i]);
                sums.at(p) += weighted ? weights[i] : 1;
                least[p] = std::min(least[p], keys[i]);
                most[p] = std::max(most[p], keys[i]);
            }
            comm.allReduce(sums.data(), parts, MPI_SUM);
            comm.allReduce(least.data(), parts, MPI_MIN);
            comm.allReduce(most.data(), parts, MPI_MAX);
            const index whole = weighted ? 2 * total : total;
            for (std::size_t p = 0; p < sums.size(); p++) {
                EXPECT_NEAR(static_cast<double>(sums[p]), static_cast<double>(whole) / parts, 4.0);
                if (p > 0) {
                    EXPECT_GT(least[p], most[p - 1]);
                }
            }
        }
}

TEST(SpaceFillingCurve, KeepsEqualKeysTogetherAndRefusesNonsense) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const std::vector<index> keys(5, 42);
    const auto part = partitionCurve(comm, keys, {}, 3);
    EXPECT_EQ(std::count(part.begin(), part.end(), part[0]), 5);
    EXPECT_TRUE(partitionCurve(comm, {}, {}, 2).empty());
    EXPECT_THROW((void)partitionCurve(comm, keys, {}, 0), ArgumentError);
    const std::vector<index> wrong(comm.rank() == 0 ? 4 : 5, 1);
    EXPECT_THROW((void)partitionCurve(comm, keys, wrong, 2), ArgumentError);
}

} // namespace
} // namespace DNDS::Geom
