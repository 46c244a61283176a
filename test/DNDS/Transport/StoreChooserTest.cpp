/// @file StoreChooserTest.cpp
/// @brief StoreChooser: finds the faster way, keeps it under noise, follows a machine that changes.
#include "DNDS/Transport/StoreChooser.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace {

using DNDS::StoreChooser;

/// Writes `count` times; `times[way]` is what each way takes, and `noise()` is added. Returns how often each was used.
template <class Noise>
std::array<int, 2> write(StoreChooser &stores, int count, std::array<double, 2> times, Noise &&noise) {
    std::array<int, 2> used{};
    for (int k = 0; k < count; ++k) {
        const StoreChooser::Way way = stores.next();
        ++used[way];
        stores.report(way, times[way] + noise());
    }
    return used;
}

double quiet() { return 0.0; }

TEST(StoreChooser, TakesTheFasterWayAfterOneTrial) {
    for (const StoreChooser::Way faster : {StoreChooser::Ordinary, StoreChooser::Streaming}) {
        std::array<double, 2> times{2.0, 2.0};
        times[faster] = 1.0;
        StoreChooser stores;
        const auto used = write(stores, StoreChooser::trialPulls, times, quiet);
        EXPECT_EQ(used[0], used[1]);
        EXPECT_EQ(stores.best(), faster);
    }
}

TEST(StoreChooser, KeepsOrdinaryStoresWhereBothTakeAsLong) {
    StoreChooser stores;
    write(stores, 1000, {1.0, 0.97}, quiet);
    EXPECT_EQ(stores.best(), StoreChooser::Ordinary);
}

TEST(StoreChooser, TriesTheOtherWaySeldomOnceItIsSure) {
    StoreChooser stores;
    write(stores, 2000, {1.0, 2.0}, quiet);
    const auto used = write(stores, 10000, {1.0, 2.0}, quiet);
    EXPECT_GT(used[StoreChooser::Streaming], 0);
    EXPECT_LT(used[StoreChooser::Streaming], 200);
}

TEST(StoreChooser, FollowsAMachineThatChanges) {
    StoreChooser stores;
    write(stores, 5000, {1.0, 2.0}, quiet);
    ASSERT_EQ(stores.best(), StoreChooser::Ordinary);
    write(stores, StoreChooser::longestPause + 3 * StoreChooser::trialPulls, {4.0, 2.0}, quiet);
    EXPECT_EQ(stores.best(), StoreChooser::Streaming);
}

// Other work on the machine: a third of the writes take up to ten times as long, and now and then it lasts for a trial.
TEST(StoreChooser, IsNotTurnedOverByOtherWork) {
    std::mt19937 random(20261122);
    std::uniform_real_distribution<double> share(0.0, 1.0);
    for (const StoreChooser::Way faster : {StoreChooser::Ordinary, StoreChooser::Streaming}) {
        std::array<double, 2> times{1.25, 1.25};
        times[faster] = 1.0;
        StoreChooser stores;
        write(stores, StoreChooser::trialPulls, times, quiet);
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
