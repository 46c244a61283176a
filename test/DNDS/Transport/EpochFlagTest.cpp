// What one side of an edge sees of the other by one flag.

#include "DNDS/Transport/EpochFlag.hpp"

#include <gtest/gtest.h>

namespace DNDS {
namespace {

TEST(EpochFlag, ShowsHowFarTheOtherSideHasCome) {
    EpochFlag flag;
    const ClosedFlag open{0};
    const std::uint32_t e = EpochFlag::initialEpoch + 1;
    EXPECT_EQ(flag.poll(e - 1, open), EdgeState::Open);
    EXPECT_EQ(flag.poll(e, open), EdgeState::Waiting);
    flag.reach(e);
    EXPECT_EQ(flag.poll(e, open), EdgeState::Open);
    EXPECT_EQ(flag.poll(e + 1, open), EdgeState::Waiting);
}

TEST(EpochFlag, ClosingShowsOnlyWhereNothingCame) {
    EpochFlag flag;
    const ClosedFlag closed{1};
    const std::uint32_t e = EpochFlag::initialEpoch + 1;
    flag.reach(e);
    EXPECT_EQ(flag.poll(e, closed), EdgeState::Open);
    EXPECT_EQ(flag.poll(e + 1, closed), EdgeState::Closed);
}

TEST(EpochFlag, CatchesUp) {
    EpochFlag flag;
    const ClosedFlag open{0};
    const std::uint32_t e = EpochFlag::initialEpoch + 3;
    flag.catchUp(e);
    EXPECT_EQ(flag.poll(e, open), EdgeState::Open);
    EXPECT_EQ(flag.poll(e + 1, open), EdgeState::Waiting);
}

TEST(EpochFlag, CountsAcrossTheWrap) {
    EpochFlag flag(static_cast<std::uint32_t>(-1));
    const ClosedFlag open{0};
    EXPECT_EQ(flag.poll(0, open), EdgeState::Waiting);
    flag.reach(0);
    EXPECT_EQ(flag.poll(0, open), EdgeState::Open);
    EXPECT_EQ(EpochFlag::since(1, static_cast<std::uint32_t>(-1)), 2);
}

} // namespace
} // namespace DNDS
