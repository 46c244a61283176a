// A device that fails on one rank, when an exchange is made, started or waited for: that rank gets the error, its peers
// learn of it, and nobody waits for ever.

#include "DNDS/Device/Stream.hpp"
#include "DeviceCase.hpp"
#include "RingField.hpp"

#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <thread>

namespace DNDS {
namespace {

using namespace DNDS::test;

class DeviceRefusals : public WithDevice {
  protected:
    void SetUp() override {
        WithDevice::SetUp();
        if (Device::name() != "emulated")
            GTEST_SKIP() << "only the emulated device can pretend";
    }
};

/// While it lives, the emulated device of this rank fails so.
WithVariable pretending(const std::string &what) { return {"DNDS_EMULATED_DEVICE", "gpu-aware-mpi," + what}; }

RealField fieldOn(const Wishes &wishes, const std::string &name = "u") {
    auto u = makePair<RealField>(
        wishes, [](auto &father, index n) { father.resize(n); }, name);
    u.toDevice();
    return u;
}

/// The ring without the rows that ranks read from themselves, for which there is a transport of its own.
Wishes othersOnly() {
    Wishes wishes = Wishes::ring();
    for (int rank = 0; rank < worldSize(); ++rank)
        std::erase_if(wishes.reads[static_cast<std::size_t>(rank)],
                      [&](index row) { return wishes.owner(row) == rank; });
    return wishes;
}

std::unique_ptr<Exchange> pullOf(RealField &u, const ExchangeOptions &options) {
    return std::make_unique<Exchange>(u.trans.pattern(), Direction::Pull, std::vector<ExchangeMember>{u.trans.member()},
                                      options);
}

void expectPull(RealField &u, int version) {
    refill(u, version);
    u.trans.startPersistentPull();
    u.trans.waitPersistentPull();
    expectGhosts(u, version);
}

/// Fails unless the wait throws PeerError where one of `refusers` gives this rank rows, and nothing elsewhere.
template <class Wait>
void expectPeerError(const Wishes &wishes, const std::function<bool(int)> &refuses, Wait &&wait) {
    bool reads = false;
    for (int rank = 0; rank < worldSize(); ++rank)
        reads = reads || (refuses(rank) && wishes.hasReader(rank, worldRank()));
    if (reads)
        messageOf<PeerError>(wait);
    else
        wait();
}

TEST_F(DeviceRefusals, WithoutRoomOnOneRankAnExchangeIsMadeOnNone) {
    for (const TransportKind kind : deviceTransports())
        for (int bad = 0; bad < worldSize(); ++bad) {
            SCOPED_TRACE(transportName(kind));
            RealField u = fieldOn(Wishes::ring());
            {
                const WithVariable pretend = pretending(worldRank() == bad ? "no-room" : "");
                messageOnAll<MemoryError>([&] { u.trans.initPersistentPull({.transport = kind}); });
            }
            u.trans.initPersistentPull({.transport = kind});
            expectPull(u, bad);
        }
}

/// Lets `start` fail on one rank after another and expects that its peers learn it and that the next one works.
void expectRefusedStarts(const Wishes &wishes, const std::function<void(RealField &)> &failingStart) {
    for (const TransportKind kind : deviceTransports()) {
        SCOPED_TRACE(transportName(kind));
        RealField u = fieldOn(wishes);
        u.trans.initPersistentPull({.transport = kind});
        for (int bad = 0; bad < worldSize(); ++bad) {
            refill(u, 2 * bad);
            if (worldRank() == bad) {
                failingStart(u);
            } else {
                u.trans.startPersistentPull();
                expectPeerError(
                    wishes, [&](int rank) { return rank == bad; }, [&] { u.trans.waitPersistentPull(); });
            }
            expectPull(u, 2 * bad + 1);
        }
    }
}

TEST_F(DeviceRefusals, ADeviceThatIsLostBeforeTheStart) {
    expectRefusedStarts(Wishes::ring(), [](RealField &u) {
        const WithVariable pretend = pretending("lost");
        messageOf<StateError>([&] { u.trans.startPersistentPull(); });
    });
}

TEST_F(DeviceRefusals, KernelsThatCannotBeLaunched) {
    const auto start = [](RealField &u) {
        const WithVariable pretend = pretending("no-kernels");
        messageOf<StateError>([&] { u.trans.startPersistentPull(); });
    };
    expectRefusedStarts(Wishes::ring(), start);
    if (worldSize() > 1)
        expectRefusedStarts(othersOnly(), start);
}

TEST_F(DeviceRefusals, AStreamWhoseWorkIsCapturedForAGraph) {
    if (worldSize() == 1)
        GTEST_SKIP() << "needs a peer: what stays within a rank can be captured";
    expectRefusedStarts(Wishes::ring(), [](RealField &u) {
        const Device::Stream stream;
        Device::beginCapture(stream);
        expectContains(messageOf<StateError>([&] { u.trans.startPersistentPull(stream); }), "captured");
        Device::destroyGraph(Device::endCapture(stream));
    });
}

TEST_F(DeviceRefusals, ADeviceThatIsLostInFlight) {
    for (const TransportKind kind : deviceTransports())
        for (int bad = 0; bad < worldSize(); ++bad) {
            SCOPED_TRACE(transportName(kind));
            RealField u = fieldOn(othersOnly());
            auto exchange = pullOf(u, {.transport = kind});
            refill(u, 1);
            exchange->start();
            if (worldRank() == bad) {
                const WithVariable pretend = pretending("lost");
                messageOf<StateError>([&] { exchange->wait(); });
                exchange.reset();
            } else {
                try {
                    exchange->wait();
                } catch (const PeerError &) { // where its rows were not packed before
                }
            }
            MPI_Barrier(MPI_COMM_WORLD);
            exchange = pullOf(u, {.transport = kind});
            refill(u, 2);
            exchange->start();
            exchange->wait();
            expectGhosts(u, 2);
        }
}

TEST_F(DeviceRefusals, PolledExchangesAndEpochsThatRanksTakeNoPartIn) {
    const Wishes wishes = Wishes::ring();
    for (const TransportKind kind : deviceTransports()) {
        SCOPED_TRACE(transportName(kind));
        RealField u = fieldOn(wishes);
        const auto exchange = pullOf(u, {.transport = kind});
        const auto poll = [&] {
            while (!exchange->ready())
                std::this_thread::yield();
        };
        for (int bad = 0; bad < worldSize(); ++bad) {
            refill(u, 2 * bad);
            if (worldRank() == bad) {
                exchange->refuse();
            } else {
                exchange->start();
                poll();
                expectPeerError(
                    wishes, [&](int rank) { return rank == bad; }, [&] { exchange->wait(); });
            }
            refill(u, 2 * bad + 1);
            exchange->start();
            poll();
            exchange->wait();
            expectGhosts(u, 2 * bad + 1);
        }
    }
}

TEST_F(DeviceRefusals, ADeviceThatIsLostWhileItIsPolledIsToldByWait) {
    const Wishes wishes = othersOnly();
    for (const TransportKind kind : deviceTransports()) {
        if (kind == TransportKind::Peer)
            continue; // whose rows may have been packed in `start`
        SCOPED_TRACE(transportName(kind));
        for (int bad = 0; bad < worldSize() && worldSize() > 1; ++bad) {
            RealField u = fieldOn(wishes);
            const auto exchange = pullOf(u, {.transport = kind});
            refill(u, 1);
            exchange->start();
            {
                const WithVariable pretend = pretending(worldRank() == bad ? "lost" : "");
                while (!exchange->ready())
                    std::this_thread::yield();
            }
            if (worldRank() == bad)
                expectContains(messageOf<StateError>([&] { exchange->wait(); }), "lost");
            else
                expectPeerError(
                    wishes, [&](int rank) { return rank == bad; }, [&] { exchange->wait(); });
            refill(u, 2);
            exchange->start();
            exchange->wait();
            expectGhosts(u, 2);
        }
    }
}

TEST_F(DeviceRefusals, WhatFailsWhileAnotherExchangeIsWaitedForIsToldByItsOwnWait) {
    const Wishes wishes = othersOnly();
    for (const TransportKind kind : deviceTransports()) {
        if (kind == TransportKind::Peer)
            continue; // whose rows may have been packed in `start`
        SCOPED_TRACE(transportName(kind));
        for (int bad = 0; bad < worldSize() && worldSize() > 1; ++bad) {
            RealField u = fieldOn(wishes);
            RealField other = fieldOn(wishes, "other");
            u.trans.initPersistentPull({.transport = kind});
            other.trans.initPersistentPull({.space = ExchangeSpace::Host});
            refill(u, 1);
            refill(other, 1);
            u.trans.startPersistentPull();
            other.trans.startPersistentPull();
            {
                const WithVariable pretend = pretending(worldRank() == bad ? "lost" : "");
                other.trans.waitPersistentPull();
                EXPECT_EQ(wrongGhosts(other, 1), 0);
            }
            if (worldRank() == bad)
                expectContains(messageOf<StateError>([&] { u.trans.waitPersistentPull(); }), "lost");
            else
                expectPeerError(
                    wishes, [&](int rank) { return rank == bad; }, [&] { u.trans.waitPersistentPull(); });
            expectPull(u, 2);
        }
    }
}

TEST_F(DeviceRefusals, AfterPeerErrorTheRowsOfTheOthersAreThere) {
    if (worldSize() < 3)
        GTEST_SKIP() << "needs two peers";
    const Wishes wishes = Wishes::ring();
    for (const TransportKind kind : deviceTransports()) {
        SCOPED_TRACE(transportName(kind));
        RealField u = fieldOn(wishes);
        u.trans.initPersistentPull({.transport = kind});
        for (int version = 1; version < 25; ++version) {
            const int bad = version % worldSize();
            refill(u, version);
            if (worldRank() == bad) {
                const WithVariable pretend = pretending("lost");
                messageOf<StateError>([&] { u.trans.startPersistentPull(); });
                continue;
            }
            u.trans.startPersistentPull();
            expectPeerError(
                wishes, [&](int rank) { return rank == bad; }, [&] { u.trans.waitPersistentPull(); });
            u.toHost(); // on the default stream, which waits for no other
            const auto son = std::as_const(*u.son).view();
            const auto ghosts = u.trans.ghostMapping()->ghosts();
            for (index row = 0; row < son.size(); ++row) {
                const index global = ghosts[static_cast<std::size_t>(row)];
                if (wishes.owner(global) != bad) {
                    EXPECT_EQ(son(row, 4), ringValue<real>(global, 4, version));
                }
            }
        }
    }
}

TEST_F(DeviceRefusals, RanksThatRefuseInCrossedOrderDoNotWaitForEachOther) {
    const Wishes wishes = othersOnly();
    for (const TransportKind kind : deviceTransports()) {
        SCOPED_TRACE(transportName(kind));
        RealField even = fieldOn(wishes, "refused by even ranks");
        RealField odd = fieldOn(wishes, "refused by odd ranks");
        even.trans.initPersistentPull({.transport = kind});
        odd.trans.initPersistentPull({.transport = kind});
        RealField &refused = worldRank() % 2 == 0 ? even : odd;
        RealField &started = worldRank() % 2 == 0 ? odd : even;
        for (int version = 1; version < 6; ++version) {
            refill(started, version);
            started.trans.startPersistentPull(); // its rows leave when this rank waits for something
            refused.toHost();
            fill(refused, version); // and the device has the old ones
            messageOf<StaleError>([&] { refused.trans.startPersistentPull(); });
            expectPeerError(
                wishes, [&](int rank) { return rank % 2 != worldRank() % 2; },
                [&] { started.trans.waitPersistentPull(); });
        }
        expectPull(even, 6);
        expectPull(odd, 6);
    }
}

TEST_F(DeviceRefusals, ARefusedStartDoesNotWaitForItsPeers) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs a peer";
    for (const TransportKind kind : deviceTransports())
        for (const index rows : {ringRows, index{20'000}}) { // the latter are sent when both sides are there only
            SCOPED_TRACE(testing::Message() << transportName(kind) << ", " << rows << " rows");
            const Wishes wishes = Wishes::ring(rows);
            RealField u = fieldOn(wishes);
            u.trans.initPersistentPull({.transport = kind});
            const int refuser = worldSize() - 1;
            for (int round = 0; round < 3; ++round) {
                refill(u, 2 * round);
                if (worldRank() == refuser) {
                    u.toHost();
                    fill(u, 2 * round); // and the device has the old ones
                    for (int k = 0; k < 2; ++k)
                        messageOf<StaleError>([&] { u.trans.startPersistentPull(); });
                    u.toDevice();
                    MPI_Barrier(MPI_COMM_WORLD);
                } else {
                    MPI_Barrier(MPI_COMM_WORLD);
                    for (int k = 0; k < 2; ++k) {
                        u.trans.startPersistentPull();
                        expectPeerError(
                            wishes, [&](int rank) { return rank == refuser; }, [&] { u.trans.waitPersistentPull(); });
                    }
                }
                expectPull(u, 2 * round + 1);
            }
        }
}

TEST_F(DeviceRefusals, APeerThatDoesNotStartIsNamed) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs a peer";
    const WithVariable limit("DNDS_WAIT_TIMEOUT", "0.3");
    const int missing = worldSize() - 1;
    const Wishes wishes = othersOnly();
    for (const TransportKind kind : deviceTransports())
        for (const bool destroyed : {false, true}) {
            if (!destroyed && kind != TransportKind::Peer)
                continue; // both are the same to those who wait for messages, and each takes a second
            SCOPED_TRACE(testing::Message() << transportName(kind) << (destroyed ? ", destroyed" : ""));
            const Communicator comm = Communicator::duplicate(MPI_COMM_WORLD);
            auto u = makePair<RealField>(
                wishes, [](auto &father, index n) { father.resize(n); }, "u", comm.view());
            u.toDevice();
            auto exchange = pullOf(u, {.transport = kind});
            refill(u, 1);
            if (worldRank() == missing) {
                if (destroyed)
                    exchange.reset();
                comm.view().barrier();
            } else {
                exchange->start();
                if (wishes.hasReader(missing, worldRank())) {
                    const std::string message = messageOf<PeerError>([&] { exchange->wait(); });
                    expectContains(message, "rank " + std::to_string(missing) + " ");
                    expectContains(message,
                                   destroyed && kind == TransportKind::Peer ? "destroyed" : "DNDS_WAIT_TIMEOUT");
                } else {
                    try {
                        exchange->wait();
                    } catch (const PeerError &) { // where the missing one does not take its rows
                    }
                }
                exchange.reset();
                comm.view().barrier();
            }
            exchange.reset();
            exchange = pullOf(u, {.transport = kind}); // the communicator is as good as before
            refill(u, 2);
            exchange->start();
            exchange->wait();
            expectGhosts(u, 2);
        }
}

/// Bytes of emulated device memory that this process has mapped, its own and others'.
std::size_t mappedDeviceMemory() {
    std::ifstream maps("/proc/self/maps");
    std::size_t bytes = 0;
    for (std::string line; std::getline(maps, line);)
        if (line.find("DNDS emulated device memory") != std::string::npos) {
            std::istringstream range(line);
            std::size_t begin = 0;
            std::size_t end = 0;
            char dash = 0;
            range >> std::hex >> begin >> dash >> end;
            bytes += end - begin;
        }
    return bytes;
}

TEST_F(DeviceRefusals, MemoryThatOnePeerCannotOpenIsGivenBackByAll) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs a peer";
    RealField u = fieldOn(Wishes::ring());
    const auto mappedAfterInit = [&] {
        u.trans.initPersistentPull({.transport = TransportKind::Peer});
        MPI_Barrier(MPI_COMM_WORLD); // its predecessor is gone everywhere
        DeviceTopology::of(*CommunicatorContext::of(MPI_COMM_WORLD)).reap();
        return mappedDeviceMemory();
    };
    const std::size_t before = mappedAfterInit();
    for (int bad = 0; bad < worldSize(); ++bad) {
        const WithVariable pretend = pretending(worldRank() == bad ? "no-sharing" : "");
        expectContains(
            messageOnAll<StateError>([&] { u.trans.initPersistentPull({.transport = TransportKind::Peer}); }),
            "refused");
    }
    EXPECT_EQ(mappedAfterInit(), before);
    expectPull(u, 1);
}

} // namespace
} // namespace DNDS
