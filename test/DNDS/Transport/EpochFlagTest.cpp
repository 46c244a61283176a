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
    flag.takePart(e);
    EXPECT_EQ(flag.poll(e, open), EdgeState::Open);
    EXPECT_EQ(flag.poll(e + 1, open), EdgeState::Waiting);
}

TEST(EpochFlag, ARefusalKeepsTheEpochBefore) {
    EpochFlag flag;
    const ClosedFlag open{0};
    const std::uint32_t e = EpochFlag::initialEpoch + 1;
    flag.takePart(e);
    flag.refuse(e + 1);
    flag.refuse(e + 2);
    EXPECT_EQ(flag.poll(e, open), EdgeState::Open);
    EXPECT_EQ(flag.poll(e + 1, open), EdgeState::Refused);
    EXPECT_EQ(flag.poll(e + 2, open), EdgeState::Refused);
    EXPECT_EQ(flag.poll(e + 3, open), EdgeState::Waiting);
}

TEST(EpochFlag, ClosingShowsOnlyWhereNothingCame) {
    EpochFlag flag;
    const ClosedFlag closed{1};
    const std::uint32_t e = EpochFlag::initialEpoch + 1;
    flag.takePart(e);
    EXPECT_EQ(flag.poll(e, closed), EdgeState::Open);
    EXPECT_EQ(flag.poll(e + 1, closed), EdgeState::Closed);
}

TEST(EpochFlag, CatchingUpLeavesARefusalOfThatEpoch) {
    EpochFlag flag;
    const ClosedFlag open{0};
    const std::uint32_t e = EpochFlag::initialEpoch + 1;
    flag.refuse(e);
    flag.catchUp(e);
    EXPECT_EQ(flag.poll(e, open), EdgeState::Refused);
    flag.catchUp(e + 1);
    EXPECT_EQ(flag.poll(e + 1, open), EdgeState::Open);
}

TEST(EpochFlag, CountsAcrossTheWrap) {
    EpochFlag flag(static_cast<std::uint32_t>(-1));
    const ClosedFlag open{0};
    EXPECT_EQ(flag.poll(0, open), EdgeState::Waiting);
    flag.takePart(0);
    EXPECT_EQ(flag.poll(0, open), EdgeState::Open);
    EXPECT_EQ(EpochFlag::since(1, static_cast<std::uint32_t>(-1)), 2);
}

} // namespace
} // namespace DNDS
