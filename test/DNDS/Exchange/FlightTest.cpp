#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include "DNDS/Exchange/ExchangeGroup.hpp"
#include "DNDS/Exchange/RingField.hpp"

#include <stdexcept>
#include <utility>

namespace DNDS {
namespace {

using namespace DNDS::test;

TEST(Flight, TheEndOfTheScopeWaits) {
    auto u = ringField();
    u.trans.initPersistentPull();
    u.trans.initPersistentPush(PushOp::Replace);
    for (int version = 1; version < 4; ++version) {
        fill(u, version);
        {
            const Flight ghosts = u.trans.startPull();
            EXPECT_FALSE(ghosts.done());
        }
        EXPECT_EQ(wrongGhosts(u, version), 0);
        { const Flight copies = u.trans.startPush(); }
    }
    CommunicatorView(MPI_COMM_WORLD).barrier();
    EXPECT_THROW(u.trans.waitPersistentPull(), Error); // nothing is left to wait for
    recover(MPI_COMM_WORLD);
}

TEST(Flight, IsWaitedForOnce) {
    auto u = ringField();
    u.trans.initPersistentPull();
    fill(u, 1);
    Flight ghosts = u.trans.startPull();
    ghosts.wait();
    EXPECT_TRUE(ghosts.done());
    EXPECT_EQ(wrongGhosts(u, 1), 0);
    ghosts.wait();
    // Another flight of the same exchange may be in progress: it is not affected.
    fill(u, 2);
    u.trans.startPersistentPull();
    ghosts.wait();
    EXPECT_TRUE(ghosts.done());
    u.trans.waitPersistentPull();
    EXPECT_EQ(wrongGhosts(u, 2), 0);
    // Another owner may also wait.
    Flight other = u.trans.startPull();
    u.trans.waitPersistentPull();
    EXPECT_TRUE(other.done());
    other.wait();
    // And starts it again: that is another flight.
    Flight first = u.trans.startPull();
    u.trans.waitPersistentPull();
    Flight second = u.trans.startPull();
    EXPECT_TRUE(first.done());
    first.wait();
    EXPECT_FALSE(second.done());
    second.wait();
    EXPECT_TRUE(Flight().done());
}

TEST(Flight, MovesAndWaitsForWhatItGivesUp) {
    auto u = ringField("u");
    auto v = ringField("v");
    u.trans.initPersistentPull();
    v.trans.initPersistentPull();
    fill(u, 1);
    fill(v, 2);
    Flight first = u.trans.startPull();
    Flight second = std::move(first);
    EXPECT_TRUE(first.done()); // NOLINT: moved from, on purpose
    EXPECT_FALSE(second.done());
    first = v.trans.startPull();
    second = std::move(first);
    EXPECT_EQ(wrongGhosts(u, 1), 0);
    EXPECT_FALSE(second.done());
    second.wait(nullptr);
    EXPECT_EQ(wrongGhosts(v, 2), 0);
}

TEST(Flight, AnExceptionThatLeavesTheScopeGoesOn) {
    auto u = ringField();
    u.trans.initPersistentPull();
    fill(u, 1);
    try {
        const Flight ghosts = u.trans.startPull();
        throw std::runtime_error("in between");
    } catch (const std::runtime_error &error) {
        EXPECT_STREQ(error.what(), "in between");
    }
    EXPECT_EQ(wrongGhosts(u, 1), 0);
    // If waiting fails as well, its error is thrown only if there is no other.
    for (const bool inBetween : {true, false}) {
        try {
            const Flight ghosts = u.trans.startPull();
            CommunicatorView(MPI_COMM_WORLD).barrier();
            u.father->resize(ringRows + 1);
            if (inBetween)
                throw std::runtime_error("in between");
        } catch (const std::runtime_error &error) {
            expectContains(error.what(), inBetween ? "in between" : "between start and wait");
        }
        EXPECT_THROW(u.trans.waitPersistentPull(), Error); // it was waited for
        u.father->resize(ringRows);
        recover(MPI_COMM_WORLD);
    }
}

TEST(Flight, NeedsAnExchangeThatCanStart) {
    auto u = ringField();
    expectContains(messageOf<StateError>([&] { const Flight ghosts = u.trans.startPull(); }),
                   "there is no persistent Pull of 'u': call initPersistentPull first");
    expectContains(messageOf<StateError>([&] { const Flight copies = u.trans.startPush(); }),
                   "there is no persistent Push of 'u'");
    EXPECT_THROW((void)Flight(nullptr), ArgumentError);
    u.trans.initPersistentPull();
    const Flight ghosts = u.trans.startPull();
    expectContains(messageOf<StateError>([&] { u.trans.clearPersistentPull(); }),
                   "the persistent Pull of 'u' is in flight: call waitPersistentPull");
}

TEST(Flight, KeepsTheExchangeOfAGroupThatGoes) {
    auto u = ringField("u");
    auto v = ringField("v");
    v.trans.borrowGGIndexing(u.trans);
    v.trans.createMPITypes();
    fill(u, 3);
    fill(v, 4);
    {
        Flight ghosts;
        {
            ExchangeGroup group;
            group.add(u.trans);
            group.add(v.trans);
            expectContains(messageOf<StateError>([&] { group.startPersistentPull(); }),
                           "there is no persistent Pull of 'u, v'");
            group.initPersistentPull();
            ghosts = group.startPull();
        }
        EXPECT_FALSE(ghosts.done());
    }
    EXPECT_EQ(wrongGhosts(u, 3), 0);
    EXPECT_EQ(wrongGhosts(v, 4), 0);
}

} // namespace
} // namespace DNDS
