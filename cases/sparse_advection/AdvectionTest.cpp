#include "Advection.hpp"

#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace SparseAdvection {
namespace {

DNDS::CommunicatorView world() { return {MPI_COMM_WORLD}; }

Setup small() {
    Setup setup;
    setup.blocks = 6;
    setup.cells = 4;
    return setup;
}

TEST(SparseAdvection, IsTheDenseRunAtThreshold0) {
    SparseRun sparse(world(), small(), {.deallocationCount = 2});
    DenseRun dense(world(), small());
    for (int step = 0; step < 8; ++step) {
        sparse.step();
        dense.step();
        if (step % 3 == 1)
            sparse.rebalance();
        ASSERT_EQ(largestDifference(sparse, dense), 0) << step;
    }
    EXPECT_LT(world().allReduce(sparse.allocatedBlocks(), MPI_SUM), 3 * 6 * 6 * 6);
}

TEST(SparseAdvection, ReactsAsTheDenseRun) {
    auto setup = small();
    setup.reaction = 20;
    setup.species = burningSpecies();
    SparseRun sparse(world(), setup, {.deallocationCount = 2});
    DenseRun dense(world(), setup);
    const auto before = sparse.masses();
    for (int step = 0; step < 20; ++step) {
        sparse.step();
        dense.step();
        if (step % 7 == 3)
            sparse.rebalance();
        ASSERT_EQ(largestDifference(sparse, dense), 0) << step;
    }
    const auto after = sparse.masses();
    EXPECT_GT(after[2], 0.1 * before[0]);
    EXPECT_NEAR(after[0] + after[1] + after[2], before[0] + before[1], 1e-12);
}

TEST(SparseAdvection, LosesNoMoreThanTheThresholdsCut) {
    const DNDS::SparseFieldOptions thresholds{.allocationThreshold = 1e-6, .deallocationThreshold = 1e-7};
    SparseRun sparse(world(), small(), thresholds);
    DenseRun dense(world(), small());
    const auto before = sparse.masses();
    for (int step = 0; step < 60; ++step) {
        sparse.step();
        dense.step();
        if (step % 10 == 0)
            sparse.rebalance();
    }
    EXPECT_LT(largestDifference(sparse, dense), 1e-4);
    const auto after = sparse.masses();
    const auto dropped = sparse.dropped();
    for (std::size_t s = 0; s < before.size(); ++s) {
        EXPECT_NEAR(after[s] / before[s], 1, 1e-4);
        EXPECT_LE(dropped[s], before[s] - after[s] + 1e-14) << "nothing comes in through faces";
    }
    EXPECT_GT(*std::ranges::max_element(dropped), 0);
    EXPECT_GT(world().allReduce(static_cast<double>(sparse.traffic().frees), MPI_SUM), 0);
}

TEST(SparseAdvection, BlocksMoveWithoutChangingBits) {
    const DNDS::SparseFieldOptions thresholds{.allocationThreshold = 1e-4, .deallocationThreshold = 1e-5};
    SparseRun still(world(), small(), thresholds);
    SparseRun moving(world(), small(), thresholds);
    for (int step = 0; step < 40; ++step) {
        still.step();
        moving.step();
        if (step % 7 == 0)
            moving.rebalance();
        ASSERT_EQ(moving.masses(), still.masses()) << step;
    }
    EXPECT_EQ(moving.dropped(), still.dropped());
    for (const auto count : {&DNDS::SparseTraffic::allocations, &DNDS::SparseTraffic::frees})
        EXPECT_EQ(world().allReduce(static_cast<real>(moving.traffic().*count), MPI_SUM),
                  world().allReduce(static_cast<real>(still.traffic().*count), MPI_SUM));
    moving.rebalance();
    const real mean = world().allReduce(moving.allocatedBlocks(), MPI_SUM) / world().size();
    EXPECT_LE(moving.allocatedBlocks(), std::max(1.1 * mean, mean + 3)) << "blocks of 3 species are the grains";
}

TEST(SparseAdvection, QuietRimsKeepMass) {
    const auto lost = [](bool sendBelowThreshold) {
        SparseRun run(
            world(), small(),
            {.allocationThreshold = 1e-4, .deallocationThreshold = 1e-5, .sendBelowThreshold = sendBelowThreshold});
        const auto before = run.masses();
        for (int step = 0; step < 60; ++step)
            run.step();
        const auto after = run.masses();
        real sum = 0;
        for (std::size_t s = 0; s < before.size(); ++s)
            sum += std::abs(after[s] - before[s]);
        return sum;
    };
    EXPECT_LT(lost(true), lost(false));
}

} // namespace
} // namespace SparseAdvection
