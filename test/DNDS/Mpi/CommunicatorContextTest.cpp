#include "DNDS/Mpi/CommunicatorContext.hpp"

#include "ThrowsOnAll.hpp"
#include "support/ScopedVariable.hpp"

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace DNDS {
namespace {

using test::expectContains;
using test::messageOf;
using test::messageOnAll;
using test::worldSize;

TEST(CommunicatorContext, IsOneObjectACommunicator) {
    const auto world = CommunicatorContext::of(MPI_COMM_WORLD);
    EXPECT_EQ(CommunicatorContext::of(MPI_COMM_WORLD), world);
    const Communicator other = Communicator::duplicate(MPI_COMM_WORLD);
    const auto context = CommunicatorContext::of(other.view());
    EXPECT_NE(context, world);
    EXPECT_EQ(CommunicatorContext::of(other.view()), context);
    // The private duplicate is that of its context, also a later one.
    EXPECT_EQ(CommunicatorContext::of(context->comm()), context);
    EXPECT_EQ(CommunicatorContext::of(context->nextChannel().comm), context);
    // A duplicate made by the user does not inherit what is cached.
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_dup(other.view().handle(), &copy);
    EXPECT_NE(CommunicatorContext::of(copy), context);
    MPI_Comm_free(&copy);
}

TEST(NodeTopology, KnowsTheRankOnTheMachineInAnyOrder) {
    const CommunicatorView world(MPI_COMM_WORLD);
    // virtual nodes do not count: devices belong to machines
    const int mine = [&] {
        const test::ScopedVariable alone("DNDS_RANKS_PER_NODE", "1");
        return rankOnMachine(world);
    }();
    const std::vector<int> all = world.allGather(mine);
    EXPECT_EQ(std::set<int>(all.begin(), all.end()).size(), all.size()); // tests run on one machine
    EXPECT_EQ(mine, world.rank());
    const Communicator reversed = Communicator::split(world, 0, -world.rank());
    EXPECT_EQ(rankOnMachine(reversed.view()), world.size() - 1 - world.rank());
}

TEST(CommunicatorContext, CommunicatesOnADuplicate) {
    const auto world = CommunicatorContext::of(MPI_COMM_WORLD);
    int relation = MPI_UNEQUAL;
    MPI_Comm_compare(world->comm().handle(), MPI_COMM_WORLD, &relation);
    EXPECT_EQ(relation, MPI_CONGRUENT);
    EXPECT_EQ(world->comm().allReduce(1, MPI_SUM), worldSize());
}

TEST(CommunicatorContext, ChannelsAreDistinctAndEqualOnAllRanks) {
    const auto world = CommunicatorContext::of(MPI_COMM_WORLD);
    std::set<std::pair<MPI_Comm, int>> seen;
    for (int i = 0; i < 100; ++i) {
        const Channel channel = world->nextChannel();
        EXPECT_TRUE(seen.emplace(channel.comm, channel.tag).second);
        EXPECT_EQ(world->comm().allReduce(channel.tag, MPI_MIN), channel.tag);
        EXPECT_EQ(world->comm().allReduce(channel.tag, MPI_MAX), channel.tag);
    }
}

TEST(CommunicatorContext, VariablesSetOnSomeRanksOnlyAreToldOnAllRanks) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs ranks that differ";
    using Named = std::pair<const char *, const char *>;
    for (const auto &[name, value] :
         {Named("DNDS_RANKS_PER_NODE", "1"), Named("DNDS_WAIT_TIMEOUT", "7.5"), Named("DNDS_TRANSPORT", "packed"),
          Named("DNDS_FORCE_HOST_STAGING", "1"), Named("DNDS_DISABLE_GPU_AWARE_MPI", "1")})
        for (int odd = 0; odd < worldSize(); ++odd) {
            const Communicator own = Communicator::duplicate(MPI_COMM_WORLD);
            {
                const test::ScopedVariable setting(name, test::worldRank() == odd ? value : "");
                const std::string text =
                    messageOnAll<ArgumentError>([&] { (void)CommunicatorContext::of(own.view()); });
                expectContains(text, name);
                expectContains(text, value);
                expectContains(text, "not set");
                expectContains(text, "rank 0");
                expectContains(text, "on rank " + std::to_string(odd == 0 ? 1 : odd));
            }
            const test::ScopedVariable setting(name, value); // equal values are welcome, also after that
            EXPECT_TRUE(CommunicatorContext::of(own.view())->alive());
        }
}

TEST(CommunicatorContext, VariablesThatMeanTheSameAreEqual) {
    const test::ScopedVariable timeout("DNDS_WAIT_TIMEOUT", test::worldRank() % 2 == 1 ? "10" : "1e1");
    const test::ScopedVariable transport("DNDS_TRANSPORT", test::worldRank() % 2 == 1 ? "auto" : "");
    const Communicator own = Communicator::duplicate(MPI_COMM_WORLD);
    EXPECT_TRUE(CommunicatorContext::of(own.view())->alive());
}

TEST(CommunicatorContext, OutlivesItsCommunicatorButIsNoLongerAlive) {
    std::shared_ptr<CommunicatorContext> context;
    {
        const Communicator user = Communicator::duplicate(MPI_COMM_WORLD);
        context = CommunicatorContext::of(user.view());
        EXPECT_TRUE(context->alive());
    }
    EXPECT_FALSE(context->alive());
    expectContains(messageOf<StateError>([&] { (void)context->comm(); }), "freed");
    expectContains(messageOf<StateError>([&] { (void)context->nextChannel(); }), "freed");
}

const std::thread::id madeHere = std::this_thread::get_id();

TEST(CommunicatorContext, ParkedThingsGoWhenTheyAreFinishedOrWithTheCommunicator) {
    for (const int asks : {5, 30, 1 << 30}) { // the last one never ends, and is never freed
        auto kept = std::make_shared<int>(3);
        const std::weak_ptr<int> watched = kept;
        {
            const Communicator user = Communicator::duplicate(MPI_COMM_WORLD);
            const auto context = CommunicatorContext::of(user.view());
            context->park(
                std::move(kept), [asks, asked = 0]() mutable { return ++asked > asks; }, madeHere);
            EXPECT_FALSE(watched.expired());
            for (int i = 0; i < 6; ++i)
                context->progressParked();
            EXPECT_EQ(watched.expired(), asks == 5);
        }
        EXPECT_EQ(watched.expired(), asks < 100);
    }
}

TEST(CommunicatorContext, ThingsThatAnotherThreadAsksAreStillParked) {
    const Communicator user = Communicator::duplicate(MPI_COMM_WORLD);
    const auto context = CommunicatorContext::of(user.view());
    std::atomic<bool> asked = false, answered = false;
    const auto finished = [&] {
        if (std::this_thread::get_id() == madeHere)
            return false;
        for (asked = true; !answered;)
            std::this_thread::yield();
        return true;
    };
    context->park(std::make_shared<int>(3), finished, madeHere);
    std::thread other([&] { context->progressParked(); });
    while (!asked)
        std::this_thread::yield();
    context->progressParked();
    EXPECT_TRUE(context->hasParked());
    answered = true;
    other.join();
    EXPECT_FALSE(context->hasParked());
}

TEST(CommunicatorContext, AttachmentsAreMadeOnceAndGoWithTheContext) {
    std::weak_ptr<int> watched;
    {
        const Communicator user = Communicator::duplicate(MPI_COMM_WORLD);
        CommunicatorContext &context = *CommunicatorContext::of(user.view());
        EXPECT_EQ(context.attachment<int>(), nullptr);
        int made = 0;
        const auto make = [&] {
            ++made;
            return std::make_shared<int>(context.comm().allReduce(1, MPI_SUM));
        };
        EXPECT_EQ(context.attach<int>(make), worldSize());
        context.attach<int>(make) = 7;
        EXPECT_EQ(made, 1);
        EXPECT_EQ(*context.attachment<int>(), 7);
        EXPECT_EQ(context.attachment<long>(), nullptr);
        watched = context.attachment<int>();
    }
    EXPECT_TRUE(watched.expired());
}

TEST(CommunicatorContext, AnAttachmentThatCouldNotBeMadeIsTriedAgain) {
    const Communicator user = Communicator::duplicate(MPI_COMM_WORLD);
    CommunicatorContext &context = *CommunicatorContext::of(user.view());
    EXPECT_THROW(context.attach<int>([]() -> std::shared_ptr<int> { throw MemoryError("none"); }), MemoryError);
    EXPECT_EQ(context.attachment<int>(), nullptr);
    EXPECT_EQ(context.attach<int>([] { return std::make_shared<int>(3); }), 3);
}

TEST(CommunicatorContext, ManyCommunicatorsInTurnDoNotUseUpMpi) {
    // Open MPI and MPICH have room for some 2^16 and 2^11 communicators at a time.
    for (int i = 0; i < 3000; ++i) {
        const Communicator user = Communicator::duplicate(MPI_COMM_SELF);
        ASSERT_TRUE(CommunicatorContext::of(user.view())->alive());
    }
}

} // namespace
} // namespace DNDS
