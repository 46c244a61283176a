#include "DNDS/Mpi/Reductions.hpp"

#include "DNDS/Mpi/Survival.hpp"
#include "DNDS/Mpi/Wait.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace DNDS {
namespace {

using namespace DNDS::test;

constexpr auto plus = [](real a, real b) noexcept { return a + b; };

class MessageReductionTest : public ::testing::Test {
  protected:
    CommunicatorView comm() const { return owner_.view(); }
    CommunicatorContext &context() { return *context_; }
    const std::shared_ptr<CommunicatorContext> &shared() { return context_; }

    /// 1 + 2 + ... of the ranks' numbers.
    void expectSum(MessageReduction &reduction) {
        real value = comm().rank() + 1;
        reduction.reduce(std::span(&value, 1), combineEach<real, plus>);
        EXPECT_EQ(value, comm().size() * (comm().size() + 1) / 2);
    }

  private:
    Communicator owner_ = Communicator::duplicate(MPI_COMM_WORLD);
    std::shared_ptr<CommunicatorContext> context_ = CommunicatorContext::of(owner_.view());
};

TEST_F(MessageReductionTest, GivesAllRanksTheSameBits) {
    MessageReduction reduction(context(), "numbers");
    std::mt19937_64 random(rankSeed(1));
    for (std::size_t round = 0; round < 200; ++round) {
        if (random() % 16 == 0)
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
        std::vector<real> values(round == 100 ? 200000 : round % 5);
        for (std::size_t k = 0; k < values.size(); ++k)
            values[k] = std::sin(static_cast<real>(comm().rank() * 31 + static_cast<int>(k)));
        reduction.reduce(std::span(values), combineEach<real, plus>);
        std::vector<real> ofFirst = values;
        comm().broadcast(ofFirst.data(), ofFirst.size(), 0);
        EXPECT_EQ(values, ofFirst);
        for (std::size_t k = 0; k < values.size(); ++k) {
            real sum = 0;
            for (int rank = 0; rank < comm().size(); ++rank)
                sum += std::sin(static_cast<real>(rank * 31 + static_cast<int>(k)));
            EXPECT_NEAR(values[k], sum, 1e-12);
        }
    }
}

TEST_F(MessageReductionTest, IsStartedAndAskedForLater) {
    PendingReduction first(shared(), "first"), second(shared(), "second");
    for (int round = 0; round < 50; ++round) {
        std::vector<ReductionValue> mine{ReductionValue::none(ReduceOp::Sum), ReductionValue::none(ReduceOp::Min),
                                         ReductionValue::none(ReduceOp::Max)};
        for (ReductionValue &value : mine)
            value.add(std::ldexp(1.0, comm().rank()) + round);
        if (comm().rank() % 3 == 2)
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        first.start(mine);
        second.start(std::span(mine).first(1));
        while (comm().rank() % 2 == 0 && !second.ready())
            std::this_thread::yield();
        const real sum = std::ldexp(1.0, comm().size()) - 1 + comm().size() * round;
        EXPECT_EQ(second.wait()[0].value(), sum); // the ranks do not wait in one order
        EXPECT_EQ(first.wait()[0].value(), sum);
        EXPECT_EQ(first.wait()[1].value(), 1 + round);
        EXPECT_EQ(first.wait()[2].value(), std::ldexp(1.0, comm().size() - 1) + round);
    }
    // Zeros of both signs: the same bits on all ranks, whichever rank has which.
    for (const ReduceOp op : {ReduceOp::Min, ReduceOp::Max}) {
        ReductionValue zero = ReductionValue::none(op);
        zero.add(comm().rank() % 2 == 0 ? 0.0 : -0.0);
        first.start({&zero, 1});
        const real result = first.wait()[0].value();
        EXPECT_EQ(result, 0);
        EXPECT_EQ(std::signbit(result), op == ReduceOp::Min && comm().size() > 1);
    }
    for (const ReduceOp op : {ReduceOp::Min, ReduceOp::Max})
        for (const real start : {0.0, -0.0}) {
            ReductionValue both = ReductionValue::none(op);
            both.add(start);
            both.add(-start);
            EXPECT_EQ(std::signbit(both.value()), op == ReduceOp::Min) << "from " << start;
        }
    PendingReduction none(shared(), "none");
    EXPECT_THROW((void)none.wait(), StateError);
}

TEST_F(MessageReductionTest, ARankThatFailsInsteadStopsTheOthers) {
    MessageReduction reduction(context(), "numbers");
    for (int failing = 0; failing < comm().size() && comm().size() > 1; ++failing) {
        const auto call = [&] {
            const real value = 1;
            reduction.start(std::as_bytes(std::span(&value, 1)), combineEach<real, plus>);
            reduction.wait();
        };
        const auto fail = [&] {
            revoke(comm(), "no number");
            call();
        };
        survive(comm(), {.rank = failing, .told = "in the program: no number", .happens = fail, .call = call});
        expectSum(reduction);
    }
}

TEST_F(MessageReductionTest, IsDestroyedAtAnyTime) {
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{1} << 20U}) {
        const std::vector<std::byte> mine(bytes);
        for (int absent = -1; absent < comm().size(); ++absent) {
            MessageReduction reduction(context(), "what is given up");
            if (comm().rank() != absent)
                reduction.start(mine, combineEach<real, plus>);
        }
    }
    comm().barrier();
    recover(comm());
    EXPECT_EQ(context().hasParked() && comm().size() > 1, false);
    MessageReduction reduction(context(), "numbers");
    expectSum(reduction);
}

TEST_F(MessageReductionTest, DifferentLengthsAreTold) {
#if defined(MPICH_VERSION)
    GTEST_SKIP() << "MPICH ends the job where a message is too long";
#endif
    if (comm().size() == 1)
        GTEST_SKIP() << "needs two ranks";
    MessageReduction reduction(context(), "numbers");
    std::vector<real> values(comm().rank() == 0 ? 1 : 2);
    try {
        reduction.reduce(std::span(values), combineEach<real, plus>);
        ADD_FAILURE() << "threw nothing";
    } catch (const Error &error) { // MPI's own where the message is too long
        EXPECT_TRUE(error.kind() == ErrorKind::State || error.kind() == ErrorKind::Mpi ||
                    error.kind() == ErrorKind::Revoked)
            << error.what();
    }
    recover(comm());
    expectSum(reduction);
}

} // namespace
} // namespace DNDS
