#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/Wait.hpp"

#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

using namespace DNDS;
using namespace DNDS::test;

namespace {

using Clock = std::chrono::steady_clock;

/// A duplicate, so that tests leave MPI_COMM_WORLD as it is.
class RevocationTest : public ::testing::Test {
  protected:
    RevocationTest()
        : owner_(Communicator::duplicate(MPI_COMM_WORLD)), context_(CommunicatorContext::of(owner_.view())) {}

    CommunicatorView comm() const { return owner_.view(); }
    int rank() const { return comm().rank(); }
    int ranks() const { return comm().size(); }
    CommunicatorContext &context() { return *context_; }

    /// Waits for what never comes.
    void waitForEver() {
        context().running("wait for", "Godot", [&] {
            waitUntil(
                context(), [] { return false; }, "Godot");
        });
    }

  private:
    Communicator owner_;
    std::shared_ptr<CommunicatorContext> context_;
};

TEST_F(RevocationTest, AFailureOnAnyRankEndsTheWaitsOfAllAndRecoverGoesOn) {
    if (ranks() == 1)
        GTEST_SKIP() << "needs two ranks";
    for (int failing = 0; failing < ranks(); ++failing) {
        const auto begin = Clock::now();
        if (rank() == failing) {
            const std::string text = messageOf<DataError>(
                [&] { context().running("step", "flow", [] { throw DataError("negative pressure"); }); });
            expectContains(text, "negative pressure");
            expectContains(messageOf<RevokedError>([&] { context().running("step", "flow", [] {}); }), "this rank");
        } else {
            try {
                waitForEver();
                ADD_FAILURE() << "the wait ended";
            } catch (const RevokedError &error) {
                EXPECT_EQ(error.failedRank(), failing);
                expectContains(error.what(),
                               fmt::format("rank {} failed in step 'flow': negative pressure (DataError)", failing));
                expectContains(error.what(), "recover");
            }
        }
        EXPECT_LT(std::chrono::duration<double>(Clock::now() - begin).count(), 5.0);
        EXPECT_TRUE(isRevoked(comm()));
        recover(comm());
        EXPECT_FALSE(isRevoked(comm()));
        context().running("step", "flow", [] {});
        EXPECT_EQ(comm().allReduce(1, MPI_SUM), ranks()); // before the next rank fails
    }
}

TEST_F(RevocationTest, TheProgramMayRevokeAndTheFirstReasonCounts) {
    if (ranks() == 1) {
        revoke(comm(), "nobody else is here");
        EXPECT_FALSE(isRevoked(comm()));
        recover(comm());
        return;
    }
    if (rank() == ranks() - 1) {
        revoke(comm(), std::make_exception_ptr(std::runtime_error("the first reason")));
        revoke(comm(), "the second reason");
    }
    const std::string text = messageOnAll<RevokedError>([&] { waitForEver(); });
    expectContains(text, "the first reason");
    recover(comm());
}

TEST_F(RevocationTest, RecoveringWithoutAFailureIsHarmless) {
    for (int round = 0; round < 3; ++round)
        recover(comm());
    EXPECT_FALSE(isRevoked(comm()));
}

TEST_F(RevocationTest, OtherNodesHearOfAFailureOfARankThatHasNoNeighbourThere) {
    if (ranks() == 1)
        GTEST_SKIP() << "needs two ranks";
    // Rank 2 of 8 has none where the last rank is alone on its node. The others fail as well, and none of them waits.
    const int first = std::min(2, ranks() - 2);
    if (rank() == first) {
        revoke(comm(), "the first reason");
    } else if (rank() == ranks() - 1) {
        expectContains(messageOf<RevokedError>([&] { waitForEver(); }), "the first reason");
    } else {
        while (!isRevoked(comm()))
            std::this_thread::yield();
        context().revoke("step", "flow", std::make_exception_ptr(DataError("negative pressure")));
    }
    recover(comm());
}

/// Sends messages to the next rank that it need not receive.
class Talker final : public Recoverable {
  public:
    explicit Talker(CommunicatorContext &context) : context_(context), channel_(context.nextChannel()) {
        context.enlist(*this);
    }
    ~Talker() override { context_.delist(*this); }

    void send(int to, std::size_t bytes) {
        bytes_.assign(bytes, static_cast<std::byte>(renewals_));
        checkMpi(MPI_Isend(bytes_.data(), static_cast<int>(bytes), MPI_BYTE, to, channel_.tag, channel_.comm, &send_),
                 "MPI_Isend");
    }
    int receive(int from, std::size_t bytes) {
        std::vector<std::byte> into(bytes);
        checkMpi(MPI_Recv(into.data(), static_cast<int>(bytes), MPI_BYTE, from, channel_.tag, channel_.comm,
                          MPI_STATUS_IGNORE),
                 "MPI_Recv");
        checkMpi(MPI_Wait(&send_, MPI_STATUS_IGNORE), "MPI_Wait");
        return static_cast<int>(into.back());
    }
    bool settle() noexcept override {
        int done = 0;
        return MPI_Test(&send_, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0;
    }
    void renew() override {
        if (std::exchange(throws_, false))
            throw MemoryError("no room to begin anew");
        channel_ = context_.renewed(channel_);
        ++renewals_;
    }
    int renewals() const { return renewals_; }
    void throwOnce() { throws_ = true; }

  private:
    CommunicatorContext &context_;
    Channel channel_;
    std::vector<std::byte> bytes_;
    MPI_Request send_ = MPI_REQUEST_NULL;
    int renewals_ = 0;
    bool throws_ = false;
};

TEST_F(RevocationTest, OldMessagesMatchNothingAfterwards) {
    Talker talker(context());
    const int next = (rank() + 1) % ranks(), before = (rank() + ranks() - 1) % ranks();
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{1} << 22U}) {
        talker.send(next, bytes); // never received
        recover(comm());
        talker.send(next, bytes);
        EXPECT_EQ(talker.receive(before, bytes), talker.renewals());
    }
}

TEST_F(RevocationTest, ARecoveryThatThrewIsRepeated) {
    Talker talker(context());
    const int next = (rank() + 1) % ranks(), before = (rank() + ranks() - 1) % ranks();
    for (int round = 1; round <= 2; ++round) {
        talker.send(next, 8); // never received
        if (rank() == ranks() - 1)
            talker.throwOnce();
        expectContains(messageOnAll<MemoryError>([&] { recover(comm()); }), "no room to begin anew");
        recover(comm());
        talker.send(next, 8);
        EXPECT_EQ(talker.receive(before, 8), before == ranks() - 1 ? round : 2 * round);
    }
}

TEST_F(RevocationTest, ThreadsThatTakeTurnsHearOfFailures) {
    if (ranks() == 1)
        GTEST_SKIP() << "needs two ranks";
    std::thread([&] { // which has not made the context
        if (rank() == 0)
            static_cast<void>(messageOf<DataError>(
                [&] { context().running("step", "flow", [] { throw DataError("negative pressure"); }); }));
        else
            expectContains(messageOf<RevokedError>([&] { waitForEver(); }), "negative pressure");
    })
        .join();
    recover(comm());
}

TEST_F(RevocationTest, AWaitFindsRevocationsOfItsOwnCommunicatorOnly) {
    if (ranks() == 1)
        GTEST_SKIP() << "needs two ranks";
    const Communicator other = Communicator::duplicate(MPI_COMM_WORLD);
    static_cast<void>(CommunicatorContext::of(other.view()));
    if (rank() == 0)
        revoke(other.view(), "the other one");
    EXPECT_FALSE(isRevoked(comm()));
    context().running("step", "flow", [] {});
    expectContains(messageOnAll<RevokedError>([&] {
                       const auto otherContext = CommunicatorContext::of(other.view());
                       waitUntil(
                           *otherContext, [] { return false; }, "nothing");
                   }),
                   "the other one");
    recover(other.view());
}

} // namespace
