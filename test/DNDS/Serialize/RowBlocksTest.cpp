// Distribution of ids over the ranks that sort them.
#include "DNDS/Serialize/RowBlocks.hpp"

#include "CheckpointCase.hpp"

#include <array>
#include <functional>
#include <limits>
#include <numeric>

namespace DNDS {
namespace {

using namespace test;

/// Number of ids in each rank's share.
std::vector<index> countsOf(const std::vector<index> &ids) {
    const std::vector<index> shares = Detail::evenShares(world(), ids, world().size());
    EXPECT_EQ(static_cast<int>(shares.size()), world().size());
    EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
    std::vector<index> counts(shares.size(), 0);
    for (const index id : ids)
        counts.at(static_cast<std::size_t>(std::upper_bound(shares.begin(), shares.end(), id) - shares.begin() - 1))++;
    world().allReduce(counts.data(), world().size(), MPI_SUM);
    return counts;
}

TEST(IdShares, AreEvenWhereverTheIdsAre) {
    constexpr index ids = 1000;
    constexpr index largest = std::numeric_limits<index>::max();
    const auto expectEven = [](const char *what, const std::function<index(index)> &id) {
        const std::vector<index> counts = countsOf(spreadIds(world(), ids, 1, id));
        for (const index count : counts) {
            EXPECT_GE(count, ids / world().size()) << what;
            EXPECT_LE(count, (ids + world().size() - 1) / world().size()) << what;
        }
    };
    expectEven("from 0", [](index row) { return row; });
    expectEven("far from 0", [](index row) { return 1'000'000'000'000 + row; });
    expectEven("up to the largest", [](index row) { return largest - row; });
    expectEven("in two clusters", [](index row) { return row < 10 ? row : (index{1} << 50) + row; });
    expectEven("ever farther apart", [](index row) { return row * row * row * row * 1'000'003; });
    expectEven("one far away", [](index row) { return row == 17 ? largest : row; });
}

TEST(IdShares, TakeFewNoneAndRepeatedIds) {
    const auto sum = [](const std::vector<index> &counts) { return std::accumulate(counts.begin(), counts.end(), 0); };
    EXPECT_EQ(sum(countsOf({})), 0);
    EXPECT_EQ(sum(countsOf(world().rank() == 0 ? std::vector<index>{5} : std::vector<index>{})), 1);
    EXPECT_EQ(sum(countsOf({7, 7})), 2 * world().size()); // all in one share, where they are found
}

TEST(FileRanks, AreAllOfFewAndSomeOfMany) {
    for (const auto &[ranks, wanted, expected] : std::vector<std::array<int, 3>>{{1, 0, 1},
                                                                                 {256, 0, 256},
                                                                                 {257, 0, 256},
                                                                                 {2048, 0, 256},
                                                                                 {1'000'000, 0, 125'000},
                                                                                 {8, 3, 3},
                                                                                 {8, 100, 8},
                                                                                 {5, 1, 1}}) {
        const Detail::FileRanks files(ranks, wanted);
        EXPECT_EQ(files.count(), expected) << ranks;
        EXPECT_EQ(files.rank(0), 0); // which writes the description
        EXPECT_EQ(files.below(0), 0);
        EXPECT_EQ(files.below(ranks), expected);
        for (int k = 0; k < expected; k += 1 + expected / 50) {
            EXPECT_EQ(files.below(files.rank(k)), k) << ranks;
            EXPECT_EQ(files.below(files.rank(k) + 1), k + 1) << ranks;
        }
    }
}

TEST(FileRanks, TakeBlocksOfMoreRowsThan32BitsCount) {
    CheckpointArray array;
    array.rows = (index{1} << 40) + 3;
    array.blockRows = 1 << 17;
    constexpr int ranks = 1'000'000;
    const Detail::FileRanks files(ranks, 1000);
    const Detail::BlockSpread spread(array, files);
    EXPECT_EQ(spread.firstRow(0), 0);
    EXPECT_EQ(spread.firstRow(ranks), array.rows);
    for (int rank = 0; rank < ranks; rank += 997) {
        const index begin = spread.firstRow(rank), end = spread.firstRow(rank + 1);
        EXPECT_EQ(end > begin, rank % 1000 == 0) << rank;
        if (end > begin) {
            EXPECT_EQ(spread.owner(begin), rank);
            EXPECT_EQ(spread.owner(end - 1), rank);
        }
    }
}

} // namespace
} // namespace DNDS
