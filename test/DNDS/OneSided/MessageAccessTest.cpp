#include "DNDS/OneSided/MessageAccess.hpp"

#include "../Mpi/ThrowsOnAll.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/Wait.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace DNDS {
namespace {

using test::expectContains;
using test::messageOf;
using test::worldRank;
using test::worldSize;

/// Words of each rank that others reach by messages only.
class MessageAccesses : public testing::Test {
  protected:
    void SetUp() override {
        if (worldSize() == 1)
            GTEST_SKIP() << "for several ranks";
        owner_ = Communicator::duplicate(MPI_COMM_WORLD);
        context_ = CommunicatorContext::of(owner_.view());
        const auto here = context_->node().members.size();
        if (context_->comm().allReduce(static_cast<int>(here), MPI_MAX) > 1)
            GTEST_SKIP() << "for ranks on nodes of their own";
        before_ = context_->nextChannel();
        access_ = std::make_unique<MessageAccess>(context_, "words of the test", reinterpret_cast<std::byte *>(words),
                                                  RmaWindow(context_->comm(), words, sizeof words));
        context_->enlist(*access_);
        words[0] = 0;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    void TearDown() override {
        if (access_ == nullptr)
            return;
        MPI_Barrier(MPI_COMM_WORLD);
        context_->delist(*access_);
        access_->close();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    /// Serves until there was something to do; false after some seconds.
    bool serveOnce() {
        const auto start = std::chrono::steady_clock::now();
        while (!access_->progress())
            if (std::chrono::steady_clock::now() - start > std::chrono::seconds(5))
                return false;
        return true;
    }
    /// Rank 0 adds 5 to a word of the last rank, which serves it.
    void addOnce(std::int64_t expected) {
        const int last = worldSize() - 1;
        if (worldRank() == 0) {
            const auto add = Atomics::request(AtomicOp::Add, std::int64_t{5});
            const std::int64_t five = 5;
            access_->operate({RemoteVerb::Atomic, last, 0, sizeof(five), add}, &five, nullptr, Completion::AtQuiet);
            EXPECT_TRUE(serveOnce()) << "the answer";
        } else if (worldRank() == last) {
            EXPECT_TRUE(serveOnce()) << "the request";
            EXPECT_EQ(words[0], expected);
            EXPECT_FALSE(access_->progress());
        }
    }

    static std::int64_t words[4]; ///< outlive windows
    Communicator owner_;
    std::shared_ptr<CommunicatorContext> context_;
    Channel before_; ///< the channel before that of the requests
    std::unique_ptr<MessageAccess> access_;
};
std::int64_t MessageAccesses::words[4];

TEST_F(MessageAccesses, ProgressSaysWhetherThereWasSomethingToDo) {
    EXPECT_FALSE(access_->progress());
    MPI_Barrier(MPI_COMM_WORLD);
    addOnce(5);
}

TEST_F(MessageAccesses, WhatFailsWhileServingRevokesTheCommunicator) {
    const int last = worldSize() - 1;
    if (worldRank() == 0) {
        const std::vector<char> tooLong(200);
        MPI_Send(tooLong.data(), 200, MPI_BYTE, last, before_.tag + 1, before_.comm); // is no request
    }
    const std::string text = messageOf<RevokedError>([&] { // in which the last rank serves
        waitUntil(
            *context_, [] { return false; }, "what never comes");
    });
    expectContains(text, "failed in requests for 'memory of other ranks': a request of rank 0 has 200 bytes");
    recover(owner_.view());
    MPI_Barrier(MPI_COMM_WORLD);
    addOnce(5);
}

/// Memory made last is that of a thread that has ended: waits of this one still serve the other.
TEST_F(MessageAccesses, ThatAnotherThreadMadeLaterLeaveTheFirstServed) {
    std::unique_ptr<MessageAccess> later;
    std::thread([&] { later = std::make_unique<MessageAccess>(context_, "later", nullptr, RmaWindow()); }).join();
    const int last = worldSize() - 1;
    if (worldRank() == 0) {
        const std::int64_t five = 5;
        const auto add = Atomics::request(AtomicOp::Add, five);
        std::int64_t before = -1;
        access_->operate({RemoteVerb::FetchAtomic, last, 0, sizeof(five), add}, &five, &before, Completion::Now);
        EXPECT_EQ(before, 0);
    } else if (worldRank() == last) {
        const auto start = std::chrono::steady_clock::now();
        waitUntil(
            *context_,
            [&] {
                return std::atomic_ref(words[0]).load() == 5 ||
                       std::chrono::steady_clock::now() - start > std::chrono::seconds(5);
            },
            "a request");
        EXPECT_EQ(words[0], 5);
    }
    later->close();
}

} // namespace
} // namespace DNDS
