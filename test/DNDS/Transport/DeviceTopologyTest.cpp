// Choice of the device transport, also where MPI or the device does not keep its promises.

#include "DNDS/Transport/DeviceTopology.hpp"

#include "DNDS/Exchange/DeviceCase.hpp"
#include "DNDS/Exchange/RingField.hpp"
#include "DNDS/Mpi/GpuAware.hpp"
#include "support/ScopedVariable.hpp"

#include <string>

namespace DNDS {
namespace {

using namespace DNDS::test;

class DeviceTopologies : public WithDevice {
  protected:
    void SetUp() override {
        WithDevice::SetUp();
        if (Device::name() != "emulated")
            GTEST_SKIP() << "only the emulated device can pretend";
    }
};

/// A field on a communicator of its own, with devices not yet probed.
struct FreshField {
    Communicator comm = Communicator::duplicate(MPI_COMM_WORLD);
    RealField field = ringField("u", comm.view());

    void pull(int version) {
        field.toHost();
        fill(field, version);
        field.toDevice();
        field.trans.startPersistentPull();
        field.trans.waitPersistentPull();
        field.toHost();
        EXPECT_EQ(wrongGhosts(field, version), 0);
    }
    void expectPaths(TransportKind kind, const std::string &why, const ExchangeOptions &options = {}) {
        field.toDevice();
        field.trans.initPersistentPull(options);
        for (const PeerPath &path : field.trans.pullPaths()) {
            EXPECT_EQ(path.transport, path.peer == worldRank() ? TransportKind::Local : kind)
                << transportName(path.transport);
            if (path.peer != worldRank())
                expectContains(path.why, why);
        }
        expectContains(field.trans.describePull(), "on the device");
        pull(1);
        pull(2);
        pull(3);
    }
};

TEST_F(DeviceTopologies, RanksOfANodeReadEachOthersDevices) {
    FreshField fresh;
    fresh.expectPaths(TransportKind::Peer, "on this node");
}

TEST_F(DeviceTopologies, WhereSharingIsRefusedMpiTakesTheRowsFromTheDevice) {
    const ScopedVariable pretend("DNDS_EMULATED_DEVICE", "gpu-aware-mpi,no-sharing");
    FreshField fresh;
    if (worldSize() > 1)
        fresh.expectPaths(TransportKind::Direct, "sharing memory is refused");
    else
        fresh.expectPaths(TransportKind::Local, "");
}

TEST_F(DeviceTopologies, WhereMpiCannotEitherRowsGoByWayOfTheHost) {
    const ScopedVariable pretend("DNDS_EMULATED_DEVICE", "no-sharing");
    FreshField fresh;
    fresh.expectPaths(TransportKind::Staged, "does not take its memory");
}

TEST_F(DeviceTopologies, AnMpiThatClaimsWronglyIsFoundOutByATransfer) {
    const ScopedVariable pretend("DNDS_EMULATED_DEVICE", "lying-mpi,no-sharing");
    FreshField fresh;
    fresh.expectPaths(TransportKind::Staged, "arrived with other bytes");
    if (worldSize() > 1) {
        expectContains(messageOnAll<StateError>(
                           [&] { fresh.field.trans.initPersistentPull({.transport = TransportKind::Direct}); }),
                       "arrived with other bytes");
        expectContains(
            messageOnAll<StateError>([&] { fresh.field.trans.initPersistentPull({.transport = TransportKind::Peer}); }),
            "refused");
    }
}

TEST_F(DeviceTopologies, WhereOneRankCannotShareItsPeersTakeAnotherWay) {
    if (worldSize() < 3)
        GTEST_SKIP() << "needs three ranks";
    const ScopedVariable pretend("DNDS_EMULATED_DEVICE", worldRank() == 0 ? "no-sharing" : "");
    FreshField fresh;
    fresh.field.toDevice();
    fresh.field.trans.initPersistentPull();
    for (const PeerPath &path : fresh.field.trans.pullPaths()) {
        const bool own = path.peer == worldRank();
        const bool without = worldRank() == 0 || path.peer == 0;
        EXPECT_EQ(path.transport, own ? TransportKind::Local : without ? TransportKind::Staged : TransportKind::Peer);
    }
    fresh.pull(1);
    fresh.pull(2);
}

TEST_F(DeviceTopologies, TheEnvironmentForcesTheHostAndKeepsDeviceMemoryFromMpi) {
    {
        const ScopedVariable force("DNDS_FORCE_HOST_STAGING", "1");
        FreshField fresh;
        fresh.expectPaths(TransportKind::Staged, "DNDS_FORCE_HOST_STAGING");
    }
    const ScopedVariable disable("DNDS_DISABLE_GPU_AWARE_MPI", "1");
    const ScopedVariable pretend("DNDS_EMULATED_DEVICE", "crashing-mpi,no-sharing"); // it is not even tried
    FreshField fresh;
    fresh.expectPaths(TransportKind::Staged, "DNDS_DISABLE_GPU_AWARE_MPI");
}

TEST_F(DeviceTopologies, NamesOfDeviceTransportsInTheEnvironmentConcernTheDeviceOnly) {
    const ScopedVariable name("DNDS_TRANSPORT", "staged");
    FreshField fresh;
    fresh.expectPaths(TransportKind::Staged, "DNDS_TRANSPORT");
    fresh.field.toHost();
    fill(fresh.field, 7); // the host's copies
    fresh.field.trans.pullOnce({.space = ExchangeSpace::Host});
    EXPECT_EQ(wrongGhosts(fresh.field, 7), 0);
}

TEST_F(DeviceTopologies, ATransportOfTheOtherSpaceIsAnError) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs a peer";
    FreshField fresh;
    fresh.field.toDevice();
    messageOnAll<ArgumentError>([&] {
        fresh.field.trans.initPersistentPull({.transport = TransportKind::Packed, .space = ExchangeSpace::Device});
    });
    messageOnAll<ArgumentError>([&] {
        fresh.field.trans.initPersistentPull({.transport = TransportKind::Peer, .space = ExchangeSpace::Host});
    });
    fresh.expectPaths(TransportKind::Peer, "asked for", {.transport = TransportKind::Peer});
}

TEST(GpuAware, ClaimsSayWhereTheyComeFrom) { EXPECT_FALSE(claimOfMpi().second.empty()); }

} // namespace
} // namespace DNDS
