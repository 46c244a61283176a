/// @file StoreAutotunerTest.cpp
/// @brief StoreAutotuner: finds the faster way, keeps it under noise, follows a machine that changes.
#include "DNDS/Transport/StoreAutotuner.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace {

using DNDS::StoreAutotuner;

/// Writes `count` times; `times[way]` is what each way takes, and `noise()` is added. Returns how often each was used.
template <class Noise>
std::array<int, 2> write(StoreAutotuner &stores, int count, std::array<double, 2> times, Noise &&noise) {
    std::array<int, 2> used{};
    for (int k = 0; k < count; ++k) {
        const StoreAutotuner::StoreMode mode = stores.next();
        ++used[mode];
        stores.report(mode, times[mode] + noise());
    }
    return used;
}

double quiet() { return 0.0; }

TEST(StoreAutotuner, TakesTheFasterWayAfterOneTrial) {
    for (const StoreAutotuner::StoreMode faster : {StoreAutotuner::Ordinary, StoreAutotuner::Streaming}) {
        std::array<double, 2> times{2.0, 2.0};
        times[faster] = 1.0;
        StoreAutotuner stores;
        const auto used = write(stores, StoreAutotuner::trialPulls, times, quiet);
        EXPECT_EQ(used[0], used[1]);
        EXPECT_EQ(stores.best(), faster);
    }
}

TEST(StoreAutotuner, KeepsOrdinaryStoresWhereBothTakeAsLong) {
    StoreAutotuner stores;
    write(stores, 1000, {1.0, 0.97}, quiet);
    EXPECT_EQ(stores.best(), StoreAutotuner::Ordinary);
}

TEST(StoreAutotuner, TriesTheOtherWaySeldomOnceItIsSure) {
    StoreAutotuner stores;
    write(stores, 2000, {1.0, 2.0}, quiet);
    const auto used = write(stores, 10000, {1.0, 2.0}, quiet);
    EXPECT_GT(used[StoreAutotuner::Streaming], 0);
    EXPECT_LT(used[StoreAutotuner::Streaming], 200);
}

TEST(StoreAutotuner, FollowsAMachineThatChanges) {
    StoreAutotuner stores;
    write(stores, 5000, {1.0, 2.0}, quiet);
    ASSERT_EQ(stores.best(), StoreAutotuner::Ordinary);
    write(stores, StoreAutotuner::longestPause + 3 * StoreAutotuner::trialPulls, {4.0, 2.0}, quiet);
    EXPECT_EQ(stores.best(), StoreAutotuner::Streaming);
}

// Other work on the machine: a third of the writes take up to ten times as long, and now and then it lasts for a trial.
TEST(StoreAutotuner, IsNotTurnedOverByOtherWork) {
    std::mt19937 random(20261122);
    std::uniform_real_distribution<double> share(0.0, 1.0);
    for (const StoreAutotuner::StoreMode faster : {StoreAutotuner::Ordinary, StoreAutotuner::Streaming}) {
        std::array<double, 2> times{1.25, 1.25};
        times[faster] = 1.0;
        StoreAutotuner stores;
        write(stores, StoreAutotuner::trialPulls, times, quiet);
        ASSERT_EQ(stores.best(), faster);
        int burst = 0;
        int wrong = 0;
        for (int k = 0; k < 100000; ++k) {
            if (burst == 0 && share(random) < 0.002)
                burst = 12;
            burst -= burst > 0 ? 1 : 0;
            const bool slow = burst > 0 || share(random) < 0.33;
            write(stores, 1, times, [&] { return slow ? 10.0 * share(random) : 0.0; });
            wrong += stores.best() == faster ? 0 : 1;
        }
        EXPECT_LT(wrong, 2000) << "of 100000 writes";
    }
}

} // namespace
