// Ranks that refuse, leave or never come while others send them messages.

#include "DNDS/Exchange/RingField.hpp"
#include "NodeSharedCase.hpp"

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <vector>

namespace DNDS {
namespace {

using namespace DNDS::test;

using Bytes = ArrayPair<ParArray<std::uint8_t, DynamicSize>>;

/// Rows of one byte, which go at once, and of 128 kilobytes, which MPI only sends when both sides are there.
constexpr rowsize small = 1;
constexpr rowsize large = 1 << 17;

/// Every rank reads two rows of each other one.
Wishes twoOfEach() {
    Wishes wishes = Wishes::ring();
    for (int rank = 0; rank < worldSize(); ++rank) {
        auto &list = wishes.reads[static_cast<std::size_t>(rank)];
        list.clear();
        for (int peer = 0; peer < worldSize(); ++peer)
            if (peer != rank)
                for (index row = 0; row < 2; ++row)
                    list.push_back(wishes.begin(peer) + row);
    }
    return wishes;
}

Bytes byteField(CommunicatorView comm, rowsize width) {
    return makePair<Bytes>(
        twoOfEach(), [&](auto &father, index n) { father.resize(n, width); }, "bytes", comm);
}

/// Each transport and width on a communicator of its own.
template <class Body>
void forEachCase(Body &&body, std::initializer_list<rowsize> widths = {small, large}) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs peers";
    for (const TransportKind kind : allTransports())
        for (const rowsize width : widths) {
            SCOPED_TRACE(testing::Message() << transportName(kind) << ", width " << width);
            const Communicator comm = Communicator::duplicate(MPI_COMM_WORLD);
            const ExchangeOptions options{.transport = kind};
            Bytes u = byteField(comm.view(), width);
            u.trans.initPersistentPull(options);
            body(u, comm.view(), options);
        }
}

/// A start that this rank refuses, because its father has too many rows.
void refuse(Bytes &u) {
    const index rows = u.father->size();
    const rowsize width = u.father->rowSize(0);
    u.father->resize(rows + 1, width);
    messageOf<StateError>([&] { u.trans.startPersistentPull(); });
    u.father->resize(rows, width);
}

TEST(MessageFailures, ARefusedStartDoesNotWaitForItsPeers) {
    forEachCase([](Bytes &u, CommunicatorView comm, const ExchangeOptions &) {
        int version = 0;
        for (const int epochs : {1, 3}) {
            const int refuser = epochs % worldSize();
            if (worldRank() == refuser) {
                for (int k = 0; k < epochs; ++k)
                    refuse(u); // the others start after the barrier
                comm.barrier();
            } else {
                comm.barrier();
                for (int k = 0; k < epochs; ++k) {
                    fill(u, ++version);
                    u.trans.startPersistentPull();
                    expectContains(messageOf<PeerError>([&] { u.trans.waitPersistentPull(); }),
                                   "rank " + std::to_string(refuser));
                }
            }
            version = 10 * epochs;
            expectPullWorks(u, ++version);
            expectPullWorks(u, ++version);
        }
    });
}

TEST(MessageFailures, TheNextPullMayStartBeforePeersHaveSeenTheRefusal) {
    forEachCase([](Bytes &u, CommunicatorView comm, const ExchangeOptions &) {
        const int refuser = worldSize() - 1;
        for (int round = 0; round < 3; ++round) {
            fill(u, 1);
            if (worldRank() == refuser) {
                refuse(u);
                refuse(u);
                fill(u, 3);
                u.trans.startPersistentPull();
                comm.barrier();
            } else {
                comm.barrier();
                for (int k = 0; k < 2; ++k) {
                    u.trans.startPersistentPull();
                    EXPECT_THROW(u.trans.waitPersistentPull(), PeerError);
                }
                fill(u, 3);
                u.trans.startPersistentPull();
            }
            u.trans.waitPersistentPull();
            EXPECT_EQ(wrongGhosts(u, 3), 0);
        }
    });
}

TEST(MessageFailures, GhostsOfARefusedEpochKeepTheirOldContents) {
    forEachCase([](Bytes &u, CommunicatorView comm, const ExchangeOptions &) {
        expectPullWorks(u, 1);
        const int refuser = 0;
        if (worldRank() == refuser) {
            refuse(u);
            comm.barrier();
        } else {
            fill(u, 2);
            u.trans.startPersistentPull();
            EXPECT_THROW(u.trans.waitPersistentPull(), PeerError);
            comm.barrier();
        }
        comm.barrier(); // what the others sent has arrived
        if (worldRank() == refuser) {
            EXPECT_EQ(wrongGhosts(u, 1), 0);
        }
    });
}

TEST(MessageFailures, AnExchangeDestroyedAfterARefusalLeavesNobodyWaiting) {
    forEachCase([](Bytes &u, CommunicatorView comm, const ExchangeOptions &options) {
        const int refuser = worldSize() - 1;
        if (worldRank() == refuser) {
            refuse(u);
            u.trans.clearPersistentPull();
            comm.barrier();
        } else {
            comm.barrier();
            u.trans.startPersistentPull();
            expectContains(messageOf<PeerError>([&] { u.trans.waitPersistentPull(); }),
                           "rank " + std::to_string(refuser));
            u.trans.clearPersistentPull();
        }
        u.trans.initPersistentPull(options);
        expectPullWorks(u, 1);
    });
}

/// Lets one rank do `instead` while the others start and wait; expects that they give up in time and name it.
template <class Instead>
void expectGivenUp(Instead &&instead) {
    const Setting limit("DNDS_WAIT_TIMEOUT", "0.3");
    forEachCase(
        [&](Bytes &u, CommunicatorView comm, const ExchangeOptions &options) {
            const int missing = worldSize() - 1;
            const std::vector<PeerPath> paths = u.trans.pullPaths();
            const bool onNode = std::ranges::any_of(paths, [&](const PeerPath &path) {
                return path.peer == missing && path.transport == TransportKind::NodeShared;
            });
            fill(u, 1);
            if (worldRank() == missing) {
                instead(u);
                comm.barrier();
            } else {
                const Clock::time_point begin = Clock::now();
                u.trans.startPersistentPull();
                const std::string message = messageOf<PeerError>([&] { u.trans.waitPersistentPull(); });
                EXPECT_LE(secondsSince(begin), 10.0);
                expectContains(message, "rank " + std::to_string(missing) + " ");
                if (!onNode) {
                    expectContains(message, "DNDS_WAIT_TIMEOUT");
                    expectContains(messageOf<StateError>([&] { u.trans.startPersistentPull(); }), "lost a peer");
                }
                u.trans.clearPersistentPull();
                comm.barrier();
            }
            u.trans.clearPersistentPull();
            u.trans.initPersistentPull(options); // the communicator is as good as before
            expectPullWorks(u, 2);
        },
        {large}); // one width: each case takes a second, in which its communicator waits for what is under way
}

TEST(MessageFailures, APeerThatNeverStartsIsNamedAfterTheTimeLimit) {
    expectGivenUp([](Bytes &) {});
}

TEST(MessageFailures, WhoPollsGivesUpAfterTheTimeLimitToo) {
    const Setting limit("DNDS_WAIT_TIMEOUT", "0.3");
    forEachCase(
        [](Bytes &u, CommunicatorView comm, const ExchangeOptions &options) {
            const int missing = worldSize() - 1;
            auto pull = std::make_unique<Exchange>(u.trans.pattern(), Direction::Pull,
                                                   std::vector<ExchangeMember>{u.trans.member()}, options);
            if (worldRank() != missing) {
                pull->start();
                const Clock::time_point begin = Clock::now();
                while (!pull->ready() && secondsSince(begin) < 10.0)
                    pull->checkPeers(secondsSince(begin));
                EXPECT_TRUE(pull->ready());
                EXPECT_GE(secondsSince(begin), 0.3);
                EXPECT_LE(secondsSince(begin), 5.0);
                const std::string message = messageOf<PeerError>([&] { pull->wait(); });
                expectContains(message, "rank " + std::to_string(missing) + " ");
                expectContains(message, "DNDS_WAIT_TIMEOUT");
                expectContains(messageOf<StateError>([&] { pull->start(); }), "lost a peer");
                expectContains(messageOf<StateError>([&] { pull->refuse(); }), "lost a peer");
            }
            comm.barrier();
            pull.reset();
            expectPullWorks(u, 2);
        },
        {large});
}

TEST(MessageFailures, APeerThatDestroyedItsExchangeWithoutAStartIsNamed) {
    expectGivenUp([](Bytes &u) { u.trans.clearPersistentPull(); });
}

} // namespace
} // namespace DNDS
