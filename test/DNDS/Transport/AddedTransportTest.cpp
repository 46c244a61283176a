// A complete transport in one file that DNDS knows nothing of.

#include "DNDS/Transport/TransportTable.hpp"

#include "DNDS/Exchange/FieldCase.hpp"
#include "DNDS/Exchange/RingField.hpp"
#include "DNDS/Mpi/Survival.hpp"
#include "support/ScopedVariable.hpp"

#include <string>
#include <vector>

namespace DNDS {
namespace {

using namespace DNDS::test;

// ---------------------------------------------------------------------------------------------------------------------
// The transport

/// One message a peer, packed and unpacked on the host.
class MailTransport final : public Transport {
  public:
    MailTransport(TransportPlan plan, const TransportSetup & /*setup*/) : plan_(std::move(plan)) {
        for (const Outgoing &outgoing : plan_.outgoing)
            sent_.emplace_back(outgoing.bytes);
        for (const Incoming &incoming : plan_.incoming)
            received_.emplace_back(incoming.bytes);
    }

    static TransportDescriptor describe() {
        TransportDescriptor transport;
        transport.name = "mail";
        transport.servesHost = transport.pollsMpi = true;
        transport.reach = [](const CommunicatorContext &, int) { return Reach::yes(); };
        transport.make = [](TransportPlan plan, const TransportSetup &setup) {
            return std::make_unique<MailTransport>(std::move(plan), setup);
        };
        return transport;
    }

    void replacePlan(TransportPlan plan) override { plan_ = std::move(plan); }
    void bind(const Endpoints &endpoints) override { endpoints_ = endpoints; }
    void start() override {
        receives_.assign(received_.size(), MPI_REQUEST_NULL);
        sends_.assign(sent_.size(), MPI_REQUEST_NULL);
        for (std::size_t k = 0; k < received_.size(); ++k)
            checkMpi(MPI_Irecv(received_[k].data(), static_cast<int>(received_[k].size()), MPI_BYTE,
                               plan_.incoming[k].peer, plan_.channel.tag, plan_.channel.comm, &receives_[k]),
                     "MPI_Irecv");
        for (std::size_t k = 0; k < sent_.size(); ++k) {
            std::byte *to = sent_[k].data();
            for (std::size_t p = 0; p < plan_.outgoing[k].parts.size(); ++p) {
                plan_.outgoing[k].parts[p].gather(endpoints_.sources[p], to);
                to += plan_.outgoing[k].parts[p].bytes();
            }
            checkMpi(MPI_Isend(sent_[k].data(), static_cast<int>(sent_[k].size()), MPI_BYTE, plan_.outgoing[k].peer,
                               plan_.channel.tag, plan_.channel.comm, &sends_[k]),
                     "MPI_Isend");
        }
    }
    bool progress() override {
        const bool received = complete(receives_);
        return complete(sends_) && received;
    }
    void finish() override {
        for (std::size_t k = 0; k < received_.size(); ++k) {
            const std::byte *from = received_[k].data();
            for (std::size_t p = 0; p < plan_.incoming[k].parts.size(); ++p) {
                plan_.incoming[k].parts[p].scatter(from, endpoints_.destinations[p]);
                from += plan_.incoming[k].parts[p].bytes();
            }
        }
    }
    bool settle() noexcept override {
        for (MPI_Request &request : receives_)
            if (request != MPI_REQUEST_NULL)
                MPI_Cancel(&request);
        return progress();
    }
    void renew(const CommunicatorContext &context) override { plan_.channel = context.renewed(plan_.channel); }

  private:
    static bool complete(std::vector<MPI_Request> &requests) {
        int done = 0;
        return MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE) ==
                   MPI_SUCCESS &&
               done != 0;
    }

    TransportPlan plan_;
    Endpoints endpoints_;
    std::vector<std::vector<std::byte>> sent_;
    std::vector<std::vector<std::byte>> received_;
    std::vector<MPI_Request> receives_;
    std::vector<MPI_Request> sends_;
};

// ---------------------------------------------------------------------------------------------------------------------
// Its tests

/// Added once to each communicator. Collective.
TransportKind mailOn(CommunicatorView comm) {
    TransportTable &transports = TransportTable::of(*CommunicatorContext::of(comm));
    try {
        return transports.kindOf("mail");
    } catch (const ArgumentError &) {
        return transports.add(MailTransport::describe());
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
    TransportKind kind = mailOn(comm.view());
    std::vector<RealField> u;
};

TEST(AddedTransport, IsAskedForByItsKindAndByName) {
    const Ring ring;
    for (const PeerPath &path : ring.u[0].trans.pullPaths())
        EXPECT_EQ(path.name, path.peer == worldRank() ? "local" : "mail");
    const Communicator comm = Communicator::duplicate(MPI_COMM_WORLD);
    mailOn(comm.view());
    RealField u = ringField("u", comm.view());
    {
        const ScopedVariable asked("DNDS_TRANSPORT", "mail");
        u.trans.initPersistentPull();
    }
    for (const PeerPath &path : u.trans.pullPaths())
        EXPECT_EQ(path.name, path.peer == worldRank() ? "local" : "mail");
    if (worldSize() > 1)
        expectContains(u.trans.describePull(), "mail");
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

TEST(AddedTransport, PullsAndPushesAreRight) {
    const TransportKind kind = mailOn(MPI_COMM_WORLD);
    std::uint64_t version = 0;
    for (const PullLists &pullLists : allPullLists())
        for (const auto &field : allFieldCases()) {
            SCOPED_TRACE(testing::Message() << pullLists.name << ", " << field->name());
            field->create(pullLists);
            field->fillFather(++version);
            field->clearSon();
            field->pullOnce(kind);
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

TEST(AddedTransport, GoesOnAfterAFailure) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs a peer";
    Ring ring(2);
    const auto fail = [&] {
        revoke(ring.comm.view(), "had enough");
        pull(ring.u[0]);
    };
    survive(ring.comm.view(),
            {.rank = worldSize() - 1, .told = "had enough", .happens = fail, .call = [&] { pull(ring.u[0]); }});
    for (int version = 1; version < 3; ++version)
        for (RealField &each : ring.u)
            expectPullWorks(each, version);
}

TEST(AddedTransport, DescriptorsAreChecked) {
    TransportTable transports;
    TransportDescriptor taken = MailTransport::describe();
    taken.name = "packed";
    EXPECT_THROW(transports.add(taken), ArgumentError);
    TransportDescriptor incomplete = MailTransport::describe();
    incomplete.make = nullptr;
    EXPECT_THROW(transports.add(incomplete), ArgumentError);
    const TransportKind kind = transports.add(MailTransport::describe());
    EXPECT_EQ(transports.kindOf("mail"), kind);
    EXPECT_EQ(transports.nameOf(kind), "mail");
    EXPECT_EQ(transportName(kind), "added");
    EXPECT_EQ(transports.at(kind).name, "mail");
}

} // namespace
} // namespace DNDS
