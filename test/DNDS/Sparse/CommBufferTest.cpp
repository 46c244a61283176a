#include "DNDS/Sparse/CommBuffer.hpp"

#include "DNDS/Mpi/ThrowsOnAll.hpp"

#include <cstdlib>
#include <numeric>
#include <random>

namespace DNDS::test {
namespace {

CommunicatorView world() { return {MPI_COMM_WORLD}; }

template <class Receive>
void waitFor(const Receive &receive) {
    while (!receive()) {
    }
}

/// Each rank sends to the next one, which is itself where it is alone.
struct Ring {
    typename CommBuffer<real>::Pool pool = CommBuffer<real>::makePool();
    int me = world().rank();
    int next = (me + 1) % world().size();
    int previous = (me + world().size() - 1) % world().size();
    CommBuffer<real> out;
    CommBuffer<real> in;

    explicit Ring(ReceiveWay way)
        : out(7, me, next, world(), 100, pool, way),
          in(next == me ? out : CommBuffer<real>(7, previous, me, world(), 100, pool, way)) {}
};

class CommBuffers : public testing::TestWithParam<ReceiveWay> {};

TEST_P(CommBuffers, SendsOrSendsNothing) {
    Ring ring(GetParam());
    std::mt19937 random(5); // the same on all ranks
    for (int step = 0; step < 200; ++step) {
        std::vector<int> sends(toSize(world().size()));
        for (int &s : sends)
            s = static_cast<int>(random() % 3);
        EXPECT_EQ(ring.out.state(), ChannelState::Stale);
        if (sends[toSize(ring.me)] > 0) {
            ring.out.allocate();
            EXPECT_TRUE(ring.out.isAllocated());
            std::iota(ring.out.buffer().begin(), ring.out.buffer().end(), 1000 * step + ring.me);
            ring.out.send();
        } else {
            ring.out.sendNull();
        }
        if (step % 2 == 0)
            (void)ring.in.tryStartReceive();
        waitFor([&] { return ring.in.tryReceive(); });
        EXPECT_TRUE(ring.in.tryReceive()) << "as often as one likes";
        if (sends[toSize(ring.previous)] > 0) {
            ASSERT_EQ(ring.in.state(), ChannelState::Received);
            EXPECT_EQ(ring.in.buffer().back(), 1000 * step + ring.previous + 99);
        } else {
            EXPECT_EQ(ring.in.state(), ChannelState::ReceivedNull);
        }
        ring.in.stale();
        waitFor([&] { return ring.out.state() == ChannelState::Stale; });
        if (step % 3 == 0) {
            ring.out.free();
            ring.in.free();
            EXPECT_FALSE(ring.in.isAllocated());
        }
    }
    EXPECT_LE(ring.pool.use().peak, 2 * 100 * sizeof(real));
}

TEST_P(CommBuffers, NonsenseThrows) {
    Ring ring(GetParam());
    EXPECT_THROW((void)ring.out.buffer(), StateError) << "there is no buffer";
    EXPECT_THROW(ring.in.stale(), StateError) << "nothing has come";
    ring.out.allocate();
    ring.out.send();
    if (world().size() > 1) {
        EXPECT_THROW(ring.out.tryReceive(), StateError);
        EXPECT_THROW(ring.in.sendNull(), StateError);
    }
    if (GetParam() == ReceiveWay::Ahead) {
        EXPECT_TRUE(ring.in.tryStartReceive());
        EXPECT_THROW(ring.in.free(), StateError);
    }
    waitFor([&] { return ring.in.tryReceive(); });
    ring.in.stale();
    EXPECT_THROW(ring.in.stale(), StateError);
    if (world().size() > 2) {
        EXPECT_THROW(CommBuffer<real>(7, ring.next, ring.previous, world(), 1, ring.pool), ArgumentError);
    }
}

TEST_P(CommBuffers, DestroyedInFlight) {
    const int tag = GetParam() == ReceiveWay::Ahead ? 8 : 9;
    auto pool = CommBuffer<real>::makePool();
    const int next = (world().rank() + 1) % world().size();
    {
        CommBuffer<real> out(tag, world().rank(), next, world(), 100'000, pool, GetParam());
        out.allocate();
        std::fill(out.buffer().begin(), out.buffer().end(), world().rank());
        out.send();
    }
    if (world().size() == 1)
        return;
    const int previous = (world().rank() + world().size() - 1) % world().size();
    CommBuffer<real> in(tag, previous, world().rank(), world(), 100'000, pool, GetParam());
    waitFor([&] { return in.tryReceive(); });
    EXPECT_EQ(in.buffer().front(), previous);
    EXPECT_EQ(in.buffer().back(), previous);
    { CommBuffer<real> never(tag + 10, previous, world().rank(), world(), 10, pool, GetParam()); }
    CommBuffer<real> waiting(tag + 20, previous, world().rank(), world(), 10, pool, GetParam());
    EXPECT_EQ(waiting.tryStartReceive(), GetParam() == ReceiveWay::Ahead);
}

TEST_P(CommBuffers, WhatHasComeIsNotOverwritten) {
    Ring ring(GetParam());
    ring.out.allocate();
    ring.out.buffer()[0] = 1;
    ring.out.send();
    waitFor([&] { return ring.in.tryReceive(); });
    expectContains(messageOf<StateError>([&] { (void)ring.in.tryStartReceive(); }), "would overwrite");
    EXPECT_EQ(ring.in.state(), ChannelState::Received);
    ring.in.stale();
    EXPECT_EQ(ring.in.tryStartReceive(), GetParam() == ReceiveWay::Ahead);
}

TEST_P(CommBuffers, BuffersHaveAsManyElementsAsWereSent) {
    Ring ring(GetParam());
    for (const std::size_t count : {std::size_t{100}, std::size_t{10}, std::size_t{100}, std::size_t{55}}) {
        waitFor([&] { return ring.out.state() == ChannelState::Stale; });
        ring.out.allocate();
        ring.out.buffer().assign(count, static_cast<real>(count));
        ring.out.send();
        waitFor([&] { return ring.in.tryReceive(); });
        ASSERT_EQ(ring.in.buffer().size(), count);
        EXPECT_EQ(ring.in.buffer().back(), static_cast<real>(count));
        ring.in.stale();
    }
}

TEST_P(CommBuffers, WithoutMemorySendIsSendNull) {
    Ring ring(GetParam());
    for (const bool something : {false, true, false}) {
        waitFor([&] { return ring.out.state() == ChannelState::Stale; });
        something ? ring.out.allocate() : ring.out.free();
        ring.out.send();
        waitFor([&] { return ring.in.tryReceive(); });
        EXPECT_EQ(ring.in.state(), something ? ChannelState::Received : ChannelState::ReceivedNull);
        ring.in.stale();
    }
    EXPECT_EQ(ring.in.isAllocated(), GetParam() == ReceiveWay::Ahead) << "sizes first: a null gives memory back";
    waitFor([&] { return ring.out.state() == ChannelState::Stale; });
    EXPECT_EQ(ring.pool.use().liveObjects, GetParam() == ReceiveWay::Ahead ? 1U : 0U);
}

/// What a channel does is the same on one rank and between two.
TEST_P(CommBuffers, WithinARankAsBetweenRanks) {
    auto pool = CommBuffer<real>::makePool();
    const auto check = [&](CommBuffer<real> out, CommBuffer<real> in) {
        const auto sends = [&](real value) {
            waitFor([&] { return out.state() == ChannelState::Stale; });
            out.allocate();
            out.buffer().assign(4, value);
            out.send();
        };
        out.allocate();
        out.buffer().resize(40);
        if (GetParam() == ReceiveWay::Ahead) {
            expectContains(messageOf<ArgumentError>([&] { out.send(); }), "was made for 32");
        }
        sends(1);
        sends(2); // nothing was received yet
        const auto expectReceived = [&](real value) {
            waitFor([&] { return in.tryReceive(); });
            ASSERT_EQ(in.state(), ChannelState::Received);
            EXPECT_EQ(in.buffer(), std::vector<real>(4, value));
        };
        expectReceived(1);
        sends(3); // what was received is still read
        waitFor([&] { return out.state() == ChannelState::Stale; });
        out.free();
        expectReceived(1);
        out.sendNull();
        in.stale();
        expectReceived(2);
        in.stale();
        expectReceived(3);
        in.stale();
        in.free();
        waitFor([&] { return in.tryReceive(); });
        EXPECT_EQ(in.state(), ChannelState::ReceivedNull);
        in.stale();
        EXPECT_EQ(in.state(), ChannelState::Stale);
    };
    const CommBuffer<real> within(7, 0, 0, {MPI_COMM_SELF}, 4, pool, GetParam());
    check(within, within);
    if (world().size() > 1) {
        const Ring ring(GetParam());
        check({30, ring.me, ring.next, world(), 4, pool, GetParam()},
              {30, ring.previous, ring.me, world(), 4, pool, GetParam()});
    }
    EXPECT_EQ(pool.use().liveObjects, GetParam() == ReceiveWay::Ahead ? 1U : 0U) << "of `within`";
}

TEST_P(CommBuffers, OneCopyIsBothEndsInTurn) {
    auto pool = CommBuffer<real>::makePool();
    CommBuffer<real> both(7, 0, 0, {MPI_COMM_SELF}, 4, pool, GetParam());
    for (int step = 0; step < 3; ++step) {
        EXPECT_EQ(both.state(), ChannelState::Stale);
        both.allocate();
        both.buffer().assign(4, step);
        both.send();
        EXPECT_TRUE(both.tryReceive());
        EXPECT_EQ(both.state(), ChannelState::Received);
        EXPECT_EQ(both.buffer().back(), step);
        both.stale();
    }
}

/// Nothing comes; see also `DyingRank kill channel`.
TEST_P(CommBuffers, ASenderThatIsLateForTooLong) {
    ::setenv("DNDS_WAIT_TIMEOUT", "0.2", 1);
    Ring ring(GetParam());
    ::unsetenv("DNDS_WAIT_TIMEOUT");
    EXPECT_FALSE(ring.in.tryReceive());
    expectContains(messageOf<PeerError>([&] { waitFor([&] { return ring.in.tryReceive(); }); }),
                   fmt::format("rank {} to send on channel 7", ring.previous));
    world().barrier();
    ring.out.sendNull();
    waitFor([&] { return ring.in.tryReceive(); }); // it may come after all
    EXPECT_EQ(ring.in.state(), ChannelState::ReceivedNull);
}

TEST(CommBuffer, MoreThanThereIsRoomFor) {
    if (world().size() == 1)
        GTEST_SKIP() << "there is one buffer then";
    MPI_Comm returning = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &returning);
    const auto handle = [&](MPI_Errhandler handler) {
        for (const MPI_Comm comm :
             {returning, MPI_COMM_WORLD, MPI_COMM_SELF}) // MPIs differ in whose handler MPI_Test asks
            MPI_Comm_set_errhandler(comm, handler);
    };
    handle(MPI_ERRORS_RETURN); // MPI ends the program otherwise
    auto pool = CommBuffer<real>::makePool();
    if (world().rank() == 0) {
        CommBuffer<real> out(21, 0, 1, {returning}, 100, pool);
        out.allocate();
        out.buffer().resize(101);
        expectContains(messageOf<ArgumentError>([&] { out.send(); }), "was made for 800");
        out.buffer().resize(100);
        out.send();
        waitFor([&] { return out.state() == ChannelState::Stale; });
    } else if (world().rank() == 1) {
        CommBuffer<real> in(21, 0, 1, {returning}, 50, pool);
        const auto text = [&] { return messageOf<LayoutError>([&] { waitFor([&] { return in.tryReceive(); }); }); };
        expectContains(text(), "more than the 400 bytes");
        expectContains(text(), "more than the 400 bytes"); // not: nothing
        EXPECT_NE(in.state(), ChannelState::ReceivedNull);
    }
    handle(MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(&returning);
}

TEST(CommBuffer, DestroyedBetweenSizeAndData) {
    if (world().size() == 1)
        GTEST_SKIP() << "there is one buffer then";
    auto pool = CommBuffer<real>::makePool();
    constexpr std::size_t count = 1'000'000; // so many that the sender waits for the receiver
    if (world().rank() == 0) {
        CommBuffer<real> out(22, 0, 1, world(), count, pool);
        out.allocate();
        out.send();
        waitFor([&] { return out.state() == ChannelState::Stale; });
    } else if (world().rank() == 1) {
        CommBuffer<real> in(
            22, 0, 1, world(), count,
            [](std::size_t) -> CommBuffer<real>::Buffer { throw MemoryError("no room for it"); },
            ReceiveWay::SizesFirst);
        EXPECT_EQ(messageOf<MemoryError>([&] { waitFor([&] { return in.tryReceive(); }); }).empty(), false);
    }
    world().barrier();
}

INSTANTIATE_TEST_SUITE_P(Ways, CommBuffers, testing::Values(ReceiveWay::Ahead, ReceiveWay::SizesFirst));

} // namespace
} // namespace DNDS::test
