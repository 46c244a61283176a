// Pulls and pushes of every layout and element type by every transport, against contents computed without
// communication: of rows in host memory, and in another program of rows in device memory.

#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include "DNDS/Device/Stream.hpp"
#include "DNDS/Exchange/ExchangeGroup.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DeviceCase.hpp"
#include "FieldCase.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <numeric>
#include <random>
#include <set>
#include <thread>

namespace DNDS {
namespace {

using namespace DNDS::test;

constexpr std::array allOps{PushOp::Replace, PushOp::Sum, PushOp::Min, PushOp::Max};

FieldCases cases() { return allFieldCases(testsDeviceRows && Device::available()); }

/// A round of a persistent exchange; of rows of the device by a stream, which is waited for in turns.
void exchangeOnce(ArrayTransformerBase &trans, Direction direction, int round = 0) {
    const bool isPull = direction == Direction::Pull;
    if (!testsDeviceRows) {
        isPull ? trans.startPersistentPull() : trans.startPersistentPush();
        return isPull ? trans.waitPersistentPull() : trans.waitPersistentPush();
    }
    const Device::Stream stream;
    isPull ? trans.startPersistentPull(stream) : trans.startPersistentPush(stream);
    if (round == 1)
        isPull ? trans.waitPersistentPull(stream) : trans.waitPersistentPush(stream);
    else
        isPull ? trans.waitPersistentPull() : trans.waitPersistentPush();
    stream.synchronize();
}

/// Calls `body` for every case on every mapping with every transport.
template <class Body>
void forAll(Body &&body) {
    for (const PullLists &pullLists : allPullLists())
        for (const auto &field : cases()) {
            field->create(pullLists);
            for (const TransportKind kind : transportsUnderTest()) {
                SCOPED_TRACE(testing::Message()
                             << pullLists.name << ", " << field->name() << ", " << transportName(kind));
                body(*field, kind);
            }
        }
}

/// Lets ranks come late, each in its turn.
void delay(std::mt19937_64 &random) { std::this_thread::sleep_for(std::chrono::microseconds(random() % 700)); }

TEST(Exchange, PullOnceMakesSonsEqualTheirOwnersRows) {
    std::uint64_t version = 0;
    forAll([&](FieldCase &field, TransportKind kind) {
        field.fillFather(++version);
        field.clearSon();
        field.pullOnce(kind);
        field.expectSon(version);
    });
}

TEST(Exchange, PersistentPullsBringEachNewVersion) {
    std::uint64_t version = 100000;
    forAll([&](FieldCase &field, TransportKind kind) {
        field.initPull(kind);
        for (int round = 0; round < 3; ++round) {
            field.fillFather(++version);
            exchangeOnce(field.trans(), Direction::Pull, round);
            field.expectSon(version);
        }
        field.trans().clearPersistentPull();
    });
}

TEST(Exchange, PushOnceCombinesAsTheOperationSays) {
    std::uint64_t version = 200000;
    forAll([&](FieldCase &field, TransportKind kind) {
        for (const PushOp op : allOps) {
            if (op != PushOp::Replace && !field.arithmetic())
                continue;
            field.fillFather(++version);
            field.fillSon(version);
            field.pushOnce(op, kind);
            field.expectFather(version, version, op);
        }
    });
}

TEST(Exchange, PersistentPushesCombineAgainAndAgain) {
    std::uint64_t version = 300000;
    forAll([&](FieldCase &field, TransportKind kind) {
        const PushOp op = field.arithmetic() ? PushOp::Sum : PushOp::Replace;
        field.initPush(op, kind);
        for (int round = 0; round < 3; ++round) {
            field.fillFather(++version);
            field.fillSon(version);
            exchangeOnce(field.trans(), Direction::Push, round);
            field.expectFather(version, version, op);
        }
        field.trans().clearPersistentPush();
    });
}

TEST(Exchange, PushedSumsDoNotDependOnWhoComesFirst) {
    std::mt19937_64 random(rankSeed(3));
    const auto fields = cases();
    FieldCase &field = *fields.front(); // real: the order of additions shows in the last bits
    field.create(PullLists::everything());
    for (const TransportKind kind : transportsUnderTest()) {
        field.initPush(PushOp::Sum, kind);
        for (std::uint64_t round = 0; round < 8; ++round) {
            field.fillFather(round);
            field.fillSon(round);
            delay(random);
            field.trans().startPersistentPush();
            delay(random);
            field.trans().waitPersistentPush();
            field.expectFather(round, round, PushOp::Sum);
        }
    }
}

TEST(Exchange, PullsStartedAtDifferentTimesDeliverTheirOwnVersion) {
    // A rank that is ahead must neither overwrite ghosts that a late one still reads nor read those of the round
    // before.
    std::mt19937_64 random(rankSeed(4));
    const auto fields = cases();
    FieldCase &field = *fields.front();
    field.create(PullLists::everything());
    for (const TransportKind kind : transportsUnderTest()) {
        field.initPull(kind);
        for (std::uint64_t round = 0; round < 30; ++round) {
            field.fillFather(round);
            if (round % 3 == 0)
                delay(random);
            field.trans().startPersistentPull();
            if (round % 5 == 0)
                delay(random);
            field.trans().waitPersistentPull();
            if (round % 4 == 0)
                delay(random);
            field.expectSon(round);
        }
    }
}

/// Pulls and pushes of many arrays on several patterns, started and waited for in another order on every rank.
void expectNoMixing(bool differentOrders) {
    std::mt19937_64 random(differentOrders ? rankSeed(5) : seed());
    for (const TransportKind kind : transportsUnderTest()) {
        SCOPED_TRACE(testing::Message() << "DNDS_TEST_SEED=" << seed() << ", " << transportName(kind));
        FieldCases fields;
        for (const PullLists &pullLists : {PullLists::ring(), PullLists::everything()}) {
            FieldCases some = cases();
            for (std::size_t k = 0; k < some.size(); ++k) {
                k % 2 == 0 || k == 0 ? some[k]->create(pullLists) : some[k]->borrow(*some[0]);
                some[k]->initPull(kind);
            }
            std::move(some.begin(), some.end(), std::back_inserter(fields));
        }
        std::vector<std::size_t> order(fields.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        for (std::uint64_t round = 0; round < 4; ++round) {
            for (std::size_t k = 0; k < fields.size(); ++k)
                fields[k]->fillFather(100 * round + k);
            std::shuffle(order.begin(), order.end(), random);
            for (const std::size_t k : order) {
                if (differentOrders && random() % 8 == 0)
                    delay(random);
                fields[k]->trans().startPersistentPull();
            }
            std::shuffle(order.begin(), order.end(), random);
            for (const std::size_t k : order) {
                fields[k]->trans().waitPersistentPull();
                fields[k]->expectSon(100 * round + k);
            }
        }
    }
}

TEST(Exchange, ManyInFlightDoNotMix) { expectNoMixing(false); }
TEST(Exchange, ManyInFlightStartedInDifferentOrdersOnDifferentRanksDoNotMix) { expectNoMixing(true); }

TEST(Exchange, PullAndPushOfOneArrayInFlightTogetherWithOthers) {
    for (const TransportKind kind : transportsUnderTest()) {
        const auto fields = cases();
        for (const auto &field : fields) {
            field->create(PullLists::random(21));
            field->initPull(kind);
            field->initPush(PushOp::Replace, kind);
        }
        for (std::size_t k = 0; k < fields.size(); ++k) {
            fields[k]->fillFather(k);
            fields[k]->fillSon(k);
            // Even arrays push and odd ones pull, all at once; ranks begin at different ends.
        }
        const auto forEach = [&](auto &&function) {
            for (std::size_t i = 0; i < fields.size(); ++i) {
                const std::size_t k = worldRank() % 2 == 0 ? i : fields.size() - 1 - i;
                function(fields[k]->trans(), k % 2 == 0);
            }
        };
        forEach([](ArrayTransformerBase &trans, bool push) {
            push ? trans.startPersistentPush() : trans.startPersistentPull();
        });
        forEach([](ArrayTransformerBase &trans, bool push) {
            push ? trans.waitPersistentPush() : trans.waitPersistentPull();
        });
        for (std::size_t k = 0; k < fields.size(); ++k)
            k % 2 == 0 ? fields[k]->expectFather(k, k, PushOp::Replace) : fields[k]->expectSon(k);
    }
}

TEST(Exchange, PathsNameEveryPeerTheTransportAndTheBytes) {
    const auto fields = cases();
    FieldCase &field = *fields.front(); // 40 bytes a row
    const PullLists pullLists = PullLists::random(31);
    field.create(pullLists);
    const auto context = CommunicatorContext::of(MPI_COMM_WORLD);
    const NodeTopology &node = context->node();
    for (const TransportKind kind : transportsUnderTest()) {
        field.initPull(kind);
        std::set<int> peers;
        for (int rank = 0; rank < worldSize(); ++rank)
            if (pullLists.hasReader(worldRank(), rank) || pullLists.hasReader(rank, worldRank()))
                peers.insert(rank);
        const auto paths = field.trans().pullPaths();
        ASSERT_EQ(paths.size(), peers.size());
        for (const PeerPath &path : paths) {
            EXPECT_TRUE(peers.contains(path.peer));
            EXPECT_FALSE(path.why.empty());
            const auto rowsFrom = [&](int owner, int reader) {
                const auto ghosts = pullLists.ghostsOf(reader);
                return std::count_if(ghosts.begin(), ghosts.end(),
                                     [&](index row) { return pullLists.owner(row) == owner; });
            };
            EXPECT_EQ(path.rowsReceived, rowsFrom(path.peer, worldRank()));
            EXPECT_EQ(path.rowsSent, rowsFrom(worldRank(), path.peer));
            EXPECT_EQ(path.bytesReceived, 40U * static_cast<std::size_t>(path.rowsReceived));
            EXPECT_EQ(path.bytesSent, 40U * static_cast<std::size_t>(path.rowsSent));
            if (path.peer == worldRank()) {
                EXPECT_EQ(path.transport, TransportKind::Local);
            } else if (kind == TransportKind::NodeShared || kind == TransportKind::Auto) {
                EXPECT_EQ(path.transport,
                          node.arena && node.sameNode(path.peer) ? TransportKind::NodeShared : TransportKind::Packed);
            } else {
                EXPECT_EQ(path.transport, kind);
            }
        }
    }
}

TEST(ExchangeGroup, EqualsSeparatePullsInOneMessageAPeer) {
    std::uint64_t version = 400000;
    for (const PullLists &pullLists : allPullLists()) {
        const auto fields = cases();
        ExchangeGroup group;
        for (const auto &field : fields) {
            field == fields.front() ? field->create(pullLists) : field->borrow(*fields.front());
            field->addTo(group);
        }
        EXPECT_EQ(group.size(), fields.size());
        for (const TransportKind kind : transportsUnderTest()) {
            group.initPersistentPull({.transport = kind});
            std::size_t separate = 0;
            for (const auto &field : fields) {
                field->initPull(kind);
                separate += field->pullBytes();
            }
            if (testsDeviceRows)
                expectContains(group.describePull(), "on the device");
            std::size_t together = 0;
            std::set<int> peers;
            for (const PeerPath &path : group.pullPaths()) {
                together += path.bytesReceived;
                EXPECT_TRUE(peers.insert(path.peer).second) << "one path a peer";
            }
            EXPECT_EQ(together, separate);
            for (int round = 0; round < 2; ++round) {
                for (const auto &field : fields)
                    field->fillFather(++version);
                group.startPersistentPull();
                group.waitPersistentPull();
                std::uint64_t expected = version - fields.size();
                for (const auto &field : fields)
                    field->expectSon(++expected);
            }
            for (const auto &field : fields)
                field->clearSon();
            group.pullOnce({.transport = kind});
            std::uint64_t expected = version - fields.size();
            for (const auto &field : fields)
                field->expectSon(++expected);
        }
    }
}

TEST(ExchangeGroup, PushesSeveralArraysWithOneOperation) {
    std::uint64_t version = 500000;
    for (const PullLists &pullLists : allPullLists()) {
        const auto fields = cases();
        ExchangeGroup group;
        for (const auto &field : fields) {
            field == fields.front() ? field->create(pullLists) : field->borrow(*fields.front());
            if (field->arithmetic())
                field->addTo(group);
        }
        for (const TransportKind kind : transportsUnderTest())
            for (const PushOp op : allOps) {
                group.initPersistentPush(op, {.transport = kind});
                ++version;
                for (const auto &field : fields) {
                    field->fillFather(version);
                    field->fillSon(version);
                }
                group.startPersistentPush();
                group.waitPersistentPush();
                for (const auto &field : fields)
                    if (field->arithmetic())
                        field->expectFather(version, version, op);
            }
    }
}

TEST(ExchangeGroup, RefusesWhatItCannotDo) {
    ExchangeGroup group;
    EXPECT_THROW(group.initPersistentPull(), StateError);
    EXPECT_THROW(group.pullOnce(), StateError);
    EXPECT_THROW(group.startPersistentPull(), StateError);
    EXPECT_THROW(group.waitPersistentPush(), StateError);
    const auto fields = cases();
    fields[0]->create(PullLists::ring());
    fields[4]->create(PullLists::ring());
    fields[0]->addTo(group);
    expectContains(messageOf<ArgumentError>([&] { fields[4]->addTo(group); }), "borrowGGIndexing");
    ArrayTransformer<ParArray<real, 1>> unmapped;
    EXPECT_THROW(group.add(unmapped), StateError);
    group.initPersistentPull();
    group.startPersistentPull();
    EXPECT_THROW(group.clearPersistentPull(), StateError);
    group.waitPersistentPull();
    CommunicatorView(MPI_COMM_WORLD).barrier();
    EXPECT_THROW(group.waitPersistentPull(), Error);
    recover(MPI_COMM_WORLD);
    group.clearPersistentPull();
}

} // namespace
} // namespace DNDS
