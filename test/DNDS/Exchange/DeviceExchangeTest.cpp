// Pulls and pushes of rows in device memory, of every layout and element type by every device transport.

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Device/Graph.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/Exchange/ExchangeGroup.hpp"
#include "DeviceCase.hpp"
#include "FieldCase.hpp"

#include <array>
#include <chrono>
#include <set>
#include <thread>

namespace DNDS {
namespace {

using namespace DNDS::test;

constexpr std::array allOps{PushOp::Replace, PushOp::Sum, PushOp::Min, PushOp::Max};

class DeviceExchange : public WithDevice {};

/// Calls `body` for every case on every mapping with every device transport.
template <class Body>
void forAll(Body &&body) {
    for (const Wishes &wishes : allWishes())
        for (const auto &field : allFieldCases()) {
            field->create(wishes);
            for (const TransportKind kind : deviceTransports()) {
                SCOPED_TRACE(testing::Message() << wishes.name << ", " << field->name() << ", " << transportName(kind));
                body(*field, kind);
            }
        }
}

TEST_F(DeviceExchange, PersistentPullsBringEachNewVersion) {
    std::uint64_t version = 0;
    const Device::Stream stream;
    forAll([&](FieldCase &field, TransportKind kind) {
        field.toDevice();
        field.initPull(kind);
        for (int round = 0; round < 3; ++round) {
            field.toHost();
            field.clearSon();
            field.fillFather(++version);
            field.toDevice();
            field.trans().startPersistentPull(stream);
            round == 1 ? field.trans().waitPersistentPull(stream) : field.trans().waitPersistentPull();
            stream.synchronize();
            field.toHost();
            field.expectSon(version);
        }
        field.trans().clearPersistentPull();
    });
}

TEST_F(DeviceExchange, PullsOfOwnRowsAreReplayedFromGraphs) {
    const CommunicatorView alone(MPI_COMM_SELF);
    ArrayPair<ParArray<real, 3>> field;
    field.initPair("own rows", alone);
    field.father->resize(100);
    field.transAttach();
    field.trans.createFatherGlobalMapping();
    field.trans.createGhostMapping(std::vector<index>{7, 99, 0, 55});
    field.trans.createMPITypes();
    field.toDevice();
    field.trans.initPersistentPull();
    ASSERT_TRUE(field.trans.canCapturePull());
    const Device::Stream stream;
    const auto pull = [&] {
        field.trans.startPersistentPull(stream);
        field.trans.waitPersistentPull(stream);
    };
    pull();
    const Device::Graph graph = Device::Graph::capture(stream, pull);
    for (int version = 0; version < 5; ++version) {
        field.toHost();
        for (index row = 0; row < 100; ++row)
            (*field.father)(row, 1) = static_cast<real>(100 * version + row);
        field.toDevice();
        (void)field.son->deviceView<DeviceBackend::CUDA>(); // about to be written there
        graph.launch(stream);
        stream.synchronize();
        field.toHost();
        for (index row = 0; row < 4; ++row)
            ASSERT_EQ(
                (*field.son)(row, 1),
                static_cast<real>(100 * version + field.trans.ghostMapping()->ghosts()[static_cast<std::size_t>(row)]));
    }
}

TEST_F(DeviceExchange, PushesCombineAsTheOperationSays) {
    std::uint64_t version = 200000;
    const Device::Stream stream;
    forAll([&](FieldCase &field, TransportKind kind) {
        for (const PushOp op : allOps) {
            if (op != PushOp::Replace && !field.arithmetic())
                continue;
            field.toDevice();
            field.initPush(op, kind);
            for (int round = 0; round < 2; ++round) {
                field.toHost();
                field.fillFather(++version);
                field.fillSon(version);
                field.toDevice();
                field.trans().startPersistentPush(stream);
                round == 1 ? field.trans().waitPersistentPush(stream) : field.trans().waitPersistentPush();
                stream.synchronize();
                field.toHost();
                field.expectFather(version, version, op);
            }
            field.trans().clearPersistentPush();
        }
    });
}

TEST_F(DeviceExchange, SonsAreBitwiseThoseOfTheHost) {
    for (const auto &field : allFieldCases()) {
        field->create(Wishes::random(11));
        field->fillFather(5);
        field->pullOnce(TransportKind::Packed);
        const std::uint64_t expected = field->sonHash();
        for (const TransportKind kind : deviceTransports()) {
            field->clearSon();
            field->toDevice();
            field->pullOnce(kind);
            field->toHost();
            EXPECT_EQ(field->sonHash(), expected) << field->name() << ", " << transportName(kind);
        }
    }
}

TEST_F(DeviceExchange, AGroupMovesAllItsArraysInOneMessageAPeer) {
    for (const TransportKind kind : deviceTransports()) {
        const auto fields = allFieldCases();
        ExchangeGroup group;
        std::size_t total = 0;
        for (std::size_t k = 0; k < fields.size(); ++k) {
            k == 0 ? fields[k]->create(Wishes::random(5)) : fields[k]->borrow(*fields[0]);
            fields[k]->toDevice();
            fields[k]->initPull(kind);
            total += fields[k]->pullBytes();
            fields[k]->addTo(group);
        }
        group.initPersistentPull({.transport = kind});
        std::size_t together = 0;
        for (const PeerPath &path : group.pullPaths()) {
            together += path.bytesReceived;
            EXPECT_EQ(path.transport, path.peer == worldRank() ? TransportKind::Local : kind);
        }
        EXPECT_EQ(together, total);
        expectContains(group.describePull(), "on the device");
        for (std::uint64_t version = 1; version < 4; ++version) {
            for (const auto &field : fields) {
                field->toHost();
                field->fillFather(version);
                field->toDevice();
            }
            group.startPersistentPull();
            group.waitPersistentPull();
            for (const auto &field : fields) {
                field->toHost();
                field->expectSon(version);
            }
        }
    }
}

TEST_F(DeviceExchange, ManyInFlightStartedAndWaitedForInDifferentOrdersDoNotMix) {
    for (const TransportKind kind : deviceTransports()) {
        FieldCases fields;
        for (FieldCases &some : std::array<FieldCases, 2>{allFieldCases(), allFieldCases()})
            for (auto &field : some) {
                field->create(fields.size() % 2 == 0 ? Wishes::ring() : Wishes::everything());
                field->toDevice();
                field->initPull(kind);
                fields.push_back(std::move(field));
            }
        for (std::uint64_t round = 0; round < 3; ++round) {
            for (std::size_t k = 0; k < fields.size(); ++k) {
                fields[k]->toHost();
                fields[k]->fillFather(100 * round + k);
                fields[k]->toDevice();
            }
            const auto turn = [&](std::size_t i) { // another order on every rank, for starting and for waiting
                return (i * 7 + static_cast<std::size_t>(worldRank()) * 5 + round) % fields.size();
            };
            for (std::size_t i = 0; i < fields.size(); ++i)
                fields[turn(i)]->trans().startPersistentPull();
            for (std::size_t i = fields.size(); i-- > 0;) {
                fields[turn(i)]->trans().waitPersistentPull();
                fields[turn(i)]->toHost();
                fields[turn(i)]->expectSon(100 * round + turn(i));
            }
        }
    }
}

} // namespace
} // namespace DNDS
