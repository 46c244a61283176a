#include "DNDS/Mpi/EvenSplit.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace DNDS {
namespace {

TEST(EvenSplit, PartsFollowEachOtherAndDifferByOneAtMost) {
    for (const int ranks : {1, 2, 3, 7, 8})
        for (const index total : {0, 1, 2, 6, 7, 8, 9, 100}) {
            const EvenSplit split(total, ranks);
            EXPECT_EQ(split.begin(0), 0);
            EXPECT_EQ(split.begin(ranks), total);
            for (int rank = 0; rank < ranks; ++rank) {
                EXPECT_EQ(split.end(rank), split.begin(rank + 1));
                EXPECT_EQ(split.size(rank), split.part(rank).size());
                EXPECT_EQ(split.begin(rank), total * rank / ranks);
                for (index i = split.begin(rank); i < split.end(rank); ++i)
                    EXPECT_EQ(split.owner(i), rank);
            }
        }
}

TEST(EvenSplit, DoesNotOverflow) {
    constexpr index most = std::numeric_limits<index>::max();
    const EvenSplit split(most, 1000);
    EXPECT_EQ(split.begin(1000), most);
    EXPECT_EQ(split.owner(most - 1), 999);
    EXPECT_EQ(split.owner(0), 0);
    for (const int rank : {1, 2, 499, 500, 998}) {
        EXPECT_EQ(split.owner(split.begin(rank)), rank);
        EXPECT_EQ(split.owner(split.end(rank) - 1), rank);
    }
}

} // namespace
} // namespace DNDS
