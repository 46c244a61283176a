// A complete transport in one file that DNDS knows nothing of: its messages have no tags and are never empty, so they
// match by order alone, as NCCL's do. Refusal and order go over `HostHandshake`.

#include "DNDS/Transport/HostHandshake.hpp"
#include "DNDS/Transport/TransportTable.hpp"

#include "DNDS/Exchange/FieldCase.hpp"
#include "DNDS/Exchange/RingField.hpp"
#include "DNDS/Mpi/NodeTopology.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

namespace DNDS {
namespace {

using namespace DNDS::test;

// ---------------------------------------------------------------------------------------------------------------------
// The transport

/// What all exchanges of a communicator share: one stream of bytes between each two ranks, without tags.
struct Wire {
    Channel channel;
    StartOrder order;

    static void prepare(CommunicatorContext &context) {
        context.attach<Wire>([&] {
            auto wire = std::make_shared<Wire>();
            wire->channel = context.nextChannel();
            return wire;
        });
    }
};

class TaglessTransport final : public Transport {
  public:
    TaglessTransport(TransportPlan plan, const TransportSetup &setup)
        : plan_(std::move(plan)), wire_(setup.context.attachment<Wire>()),
          handshake_(plan_, setup, std::shared_ptr<StartOrder>(wire_, &wire_->order)),
          crowded_(setup.context.node().crowded) {
        for (const Outgoing &outgoing : plan_.outgoing)
            sent_.emplace_back(outgoing.bytes);
        for (const Incoming &incoming : plan_.incoming)
            received_.emplace_back(incoming.bytes);
        requests_.reserve(sent_.size() + received_.size());
    }

    static TransportDescriptor describe() {
        TransportDescriptor transport;
        transport.name = "tagless";
        transport.servesHost = transport.needsProgress = true;
        transport.prepare = Wire::prepare;
        transport.reach = [](const CommunicatorContext &, int) { return Reach::yes(); };
        transport.make = [](TransportPlan plan, const TransportSetup &setup) {
            return std::make_unique<TaglessTransport>(std::move(plan), setup);
        };
        return transport;
    }

    void replacePlan(TransportPlan plan) override { plan_ = std::move(plan); }
    void bind(const Endpoints &endpoints) override { endpoints_ = endpoints; }
    void start() override {
        for (std::size_t k = 0; k < sent_.size(); ++k) {
            std::byte *to = sent_[k].data();
            for (std::size_t p = 0; p < plan_.outgoing[k].parts.size(); ++p) {
                plan_.outgoing[k].parts[p].gather(endpoints_.sources[p], to);
                to += plan_.outgoing[k].parts[p].bytes();
            }
        }
        handshake_.start();
    }
    bool progress() override {
        if (handshake_.mayMove()) {
            move();
            handshake_.moved();
        }
        if (moving_) {
            int done = 0;
            checkMpi(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE),
                     "MPI_Testall");
            if (done != 0)
                unpack();
        }
        return handshake_.complete() && !moving_;
    }
    void wait() override {
        waitUntilComplete(*this, Backoff(plan_.channel.comm, crowded_));
        handshake_.throwIfAny();
    }
    void checkPeers(double secondsWaited) override { handshake_.checkPeers(secondsWaited); }
    void refuse() override { handshake_.refuse(); }

  private:
    void move() {
        requests_.clear();
        moving_ = true;
        const Channel &wire = wire_->channel;
        for (std::size_t k = 0; k < received_.size(); ++k)
            if (handshake_.takesPart(plan_.incoming[k].peer))
                checkMpi(MPI_Irecv(received_[k].data(), static_cast<int>(received_[k].size()), MPI_BYTE,
                                   plan_.incoming[k].peer, wire.tag, wire.comm,
                                   &requests_.emplace_back(MPI_REQUEST_NULL)),
                         "MPI_Irecv");
        for (std::size_t k = 0; k < sent_.size(); ++k)
            if (handshake_.takesPart(plan_.outgoing[k].peer))
                checkMpi(MPI_Isend(sent_[k].data(), static_cast<int>(sent_[k].size()), MPI_BYTE, plan_.outgoing[k].peer,
                                   wire.tag, wire.comm, &requests_.emplace_back(MPI_REQUEST_NULL)),
                         "MPI_Isend");
    }
    void unpack() {
        moving_ = false;
        for (std::size_t k = 0; k < received_.size(); ++k) {
            const std::byte *from = received_[k].data();
            if (!handshake_.takesPart(plan_.incoming[k].peer))
                continue;
            for (std::size_t p = 0; p < plan_.incoming[k].parts.size(); ++p) {
                plan_.incoming[k].parts[p].scatter(from, endpoints_.destinations[p]);
                from += plan_.incoming[k].parts[p].bytes();
            }
        }
    }

    TransportPlan plan_;
    std::shared_ptr<Wire> wire_;
    HostHandshake handshake_;
    bool crowded_;
    Endpoints endpoints_;
    std::vector<std::vector<std::byte>> sent_;
    std::vector<std::vector<std::byte>> received_;
    std::vector<MPI_Request> requests_;
    bool moving_ = false;
};

// ---------------------------------------------------------------------------------------------------------------------
// Its tests

/// Added once to each communicator. Collective.
TransportKind taglessOn(CommunicatorView comm) {
    TransportTable &transports = TransportTable::of(*CommunicatorContext::of(comm));
    try {
        return transports.kindOf("tagless");
    } catch (const ArgumentError &) {
        return transports.add(TaglessTransport::describe());
    }
}

/// Rows on a communicator of their own.
struct Ring {
    explicit Ring(int fields = 1) {
        for (int k = 0; k < fields; ++k) {
            u.push_back(ringField("u" + std::to_string(k), comm.view()));
            u.back().trans.initPersistentPull({.transport = kind});
        }
    }
    Communicator comm = Communicator::duplicate(MPI_COMM_WORLD);
    TransportKind kind = taglessOn(comm.view());
    std::vector<RealField> u;
};

TEST(AddedTransport, IsAskedForByItsKindAndByName) {
    const Ring ring;
    for (const PeerPath &path : ring.u[0].trans.pullPaths())
        EXPECT_EQ(path.name, path.peer == worldRank() ? "local" : "tagless");
    const Communicator comm = Communicator::duplicate(MPI_COMM_WORLD);
    taglessOn(comm.view());
    RealField u = ringField("u", comm.view());
    const char *before = std::getenv("DNDS_TRANSPORT");
    const std::string restored = before != nullptr ? before : "auto";
    ::setenv("DNDS_TRANSPORT", "tagless", 1);
    u.trans.initPersistentPull();
    ::setenv("DNDS_TRANSPORT", restored.c_str(), 1);
    for (const PeerPath &path : u.trans.pullPaths())
        EXPECT_EQ(path.name, path.peer == worldRank() ? "local" : "tagless");
    if (worldSize() > 1)
        expectContains(u.trans.describePull(), "tagless");
    expectPullWorks(u, 1);
}

TEST(AddedTransport, OtherCommunicatorsDoNotKnowIt) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs a peer";
    const Ring ring;
    const Communicator comm = Communicator::duplicate(MPI_COMM_WORLD);
    RealField u = ringField("u", comm.view());
    expectContains(messageOnAll<ArgumentError>([&] { u.trans.initPersistentPull({.transport = ring.kind}); }),
                   "no transport");
}

TEST(AddedTransport, PullsAndPushesAreBitwiseThoseOfPackedMessages) {
    const TransportKind kind = taglessOn(MPI_COMM_WORLD);
    std::uint64_t version = 0;
    for (const Wishes &wishes : allWishes())
        for (const auto &field : allFieldCases()) {
            SCOPED_TRACE(testing::Message() << wishes.name << ", " << field->name());
            field->create(wishes);
            field->fillFather(++version);
            field->clearSon();
            field->pullOnce(TransportKind::Packed);
            const std::uint64_t expected = field->sonHash();
            field->clearSon();
            field->pullOnce(kind);
            EXPECT_EQ(field->sonHash(), expected);
            field->expectSon(version);
            for (const PushOp op : {PushOp::Replace, PushOp::Sum}) {
                if (op == PushOp::Sum && !field->arithmetic())
                    continue;
                field->fillFather(version);
                field->fillSon(version);
                field->pushOnce(op, kind);
                field->expectFather(version, version, op);
            }
        }
}

TEST(AddedTransport, EpochsOfSeveralExchangesMayBeWaitedForInAnyOrder) {
    Ring ring(3);
    for (int version = 1; version <= 4; ++version) {
        for (RealField &u : ring.u) {
            fill(u, version);
            u.trans.startPersistentPull();
        }
        for (std::size_t k = 0; k < ring.u.size(); ++k)
            ring.u[(k + static_cast<std::size_t>(worldRank() + version)) % ring.u.size()].trans.waitPersistentPull();
        for (const RealField &u : ring.u)
            EXPECT_EQ(wrongGhosts(u, version), 0);
    }
}

/// A start that this rank refuses, because its father has too many rows.
void refuse(RealField &u) {
    u.father->resize(ringRows + 1);
    messageOf<StateError>([&] { u.trans.startPersistentPull(); });
    u.father->resize(ringRows);
}

bool isNeighbour(int rank) {
    const int distance = (rank - worldRank() + worldSize()) % worldSize();
    return distance == 1 || distance == worldSize() - 1;
}

TEST(AddedTransport, ARankThatCannotStartIsNamedByItsPeersAndNobodyHangs) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs a peer";
    Ring ring(2);
    int version = 0;
    for (const int epochs : {1, 3}) {
        const int refuser = epochs % worldSize();
        if (worldRank() == refuser) {
            for (int k = 0; k < epochs; ++k)
                refuse(ring.u[0]); // does not wait: the others start after the barrier
            ring.comm.view().barrier();
        } else {
            ring.comm.view().barrier();
            for (int k = 0; k < epochs; ++k) {
                fill(ring.u[0], ++version);
                ring.u[0].trans.startPersistentPull();
                if (isNeighbour(refuser))
                    expectContains(messageOf<PeerError>([&] { ring.u[0].trans.waitPersistentPull(); }),
                                   fmt::format("rank {} could not send its rows", refuser));
                else
                    ring.u[0].trans.waitPersistentPull();
            }
        }
        version = 10 * epochs;
        for (int k = 0; k < 2; ++k)
            for (RealField &u : ring.u)
                expectPullWorks(u, ++version);
    }
}

TEST(AddedTransport, AnExchangeDestroyedInFlightHoldsUpNoOther) {
    Ring ring(2);
    RealField &given = ring.u[0];
    RealField &other = ring.u[1];
    for (RealField &u : ring.u)
        fill(u, 1);
    auto pull = std::make_unique<Exchange>(given.trans.pattern(), Direction::Pull,
                                           std::vector<ExchangeMember>{given.trans.member()},
                                           ExchangeOptions{.transport = ring.kind});
    if (worldRank() == 0) {
        pull->start();
        pull.reset(); // before any peer has answered
    }
    ring.comm.view().barrier();
    if (pull)
        pull->start();
    other.trans.startPersistentPull();
    other.trans.waitPersistentPull();
    EXPECT_EQ(wrongGhosts(other, 1), 0);
    if (pull) {
        pull->wait(); // the rows of rank 0 are there, too: it had said that it takes part
        EXPECT_EQ(wrongGhosts(given, 1), 0);
    }
}

TEST(AddedTransport, TheNextEpochMayStartBeforePeersHaveSeenARefusal) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs a peer";
    Ring ring;
    RealField &u = ring.u[0];
    const int refuser = worldSize() - 1;
    for (int round = 0; round < 3; ++round) {
        if (worldRank() == refuser) {
            refuse(u);
            refuse(u);
            fill(u, 3);
            u.trans.startPersistentPull();
            ring.comm.view().barrier();
        } else {
            ring.comm.view().barrier();
            for (int k = 0; k < 2; ++k) {
                fill(u, 1);
                u.trans.startPersistentPull();
                if (isNeighbour(refuser))
                    messageOf<PeerError>([&] { u.trans.waitPersistentPull(); });
                else
                    u.trans.waitPersistentPull();
            }
            fill(u, 3);
            u.trans.startPersistentPull();
        }
        u.trans.waitPersistentPull();
        EXPECT_EQ(wrongGhosts(u, 3), 0);
    }
}

TEST(AddedTransport, ExchangesStartedInDifferentOrdersAreErrorsOnBothSides) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs a peer";
    Ring ring(2);
    const std::size_t first = worldRank() == 1 ? 1 : 0;
    for (const std::size_t k : {first, 1 - first})
        ring.u[k].trans.startPersistentPull();
    for (const std::size_t k : {first, 1 - first}) {
        if (worldRank() == 1 || isNeighbour(1))
            expectContains(messageOf<StateError>([&] { ring.u[k].trans.waitPersistentPull(); }), "same order");
        else
            ring.u[k].trans.waitPersistentPull();
    }
    for (int version = 2; version < 4; ++version)
        for (RealField &u : ring.u)
            expectPullWorks(u, version);
}

TEST(AddedTransport, DescriptorsAreChecked) {
    TransportTable transports;
    TransportDescriptor taken = TaglessTransport::describe();
    taken.name = "packed";
    EXPECT_THROW(transports.add(taken), ArgumentError);
    TransportDescriptor incomplete = TaglessTransport::describe();
    incomplete.make = nullptr;
    EXPECT_THROW(transports.add(incomplete), ArgumentError);
    const TransportKind kind = transports.add(TaglessTransport::describe());
    EXPECT_EQ(transports.kindOf("tagless"), kind);
    EXPECT_EQ(transports.nameOf(kind), "tagless");
    EXPECT_EQ(transportName(kind), "added");
    EXPECT_EQ(transports.at(kind).name, "tagless");
}

} // namespace
} // namespace DNDS
