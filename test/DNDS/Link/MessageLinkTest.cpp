#include "DNDS/Link/MessageLink.hpp"

#include "DNDS/Device/Stream.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/NodeArena.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "DNDS/Mpi/Wait.hpp"
#include "DNDS/Transport/DeviceTopology.hpp"
#include "support/ScopedVariable.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

namespace DNDS::test {
namespace {

CommunicatorView world() { return {MPI_COMM_WORLD}; }

/// The carriers: the ring where ranks share a node, messages of MPI everywhere; of device memory, opened by ranks of
/// the node, and sent by MPI.
class MessageLinks : public testing::TestWithParam<const char *> {
  protected:
    MessageLinks() {
        for (int rank = 0; rank < world().size(); ++rank)
            if (rank != world().rank())
                peers.push_back(rank);
    }
    void SetUp() override {
        if (!onDevice())
            return;
        if (!Device::available())
            GTEST_SKIP() << Device::unavailableReason();
        stream.emplace();
        const DeviceTopology &devices = DeviceTopology::of(*context);
        for (const int rank : peers)
            kinds.push_back(devices.reaches(rank) && is("peer") ? TransportKind::Peer : TransportKind::Direct);
        if (std::ranges::count(kinds, TransportKind::Direct) > 0 && !devices.mpiTakesDeviceMemory())
            GTEST_SKIP() << devices.aboutMpi();
    }
    static bool is(std::string_view name) { return GetParam() == name; }
    static bool onDevice() { return is("peer") || is("direct"); }
    std::unique_ptr<MessageLink> make() const {
        const ScopedVariable transport("DNDS_TRANSPORT", GetParam());
        auto link = std::make_unique<MessageLink>(context, context->nextChannel(), peers, kinds);
        link->connect();
        return link;
    }
    void copy(std::byte *to, const std::byte *from, std::size_t bytes, MemorySpace side) const {
        if (!onDevice()) {
            std::copy_n(from, bytes, to);
            return;
        }
        const MemorySpace other = side == MemorySpace::Host ? MemorySpace::Device : MemorySpace::Host;
        Device::copy(to, side, from, other, bytes, *stream);
        stream->synchronize();
    }
    void send(MessageLink &link, std::size_t k, std::size_t bytes, std::byte value, std::size_t spare = 0) const {
        const auto room = link.prepare(k, bytes + spare);
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(room.data()) % 16, 0U);
        const std::vector<std::byte> message(bytes, value);
        copy(room.data(), message.data(), bytes, MemorySpace::Device);
        link.send(k, bytes);
    }
    void expect(MessageLink &link, std::size_t k, std::size_t bytes, std::byte value) const {
        while (!link.receive(k))
            context->progressParked();
        EXPECT_TRUE(link.receive(k)) << "until it is taken";
        ASSERT_EQ(link.received(k).size(), bytes);
        std::vector<std::byte> got(bytes);
        copy(got.data(), link.received(k).data(), bytes, MemorySpace::Host);
        EXPECT_EQ(std::ranges::count(got, value), static_cast<std::ptrdiff_t>(bytes));
        link.take(k);
    }

    const ScopedVariable pretend{"DNDS_EMULATED_DEVICE", "gpu-aware-mpi"};
    Communicator owner = Communicator::duplicate(MPI_COMM_WORLD);
    std::shared_ptr<CommunicatorContext> context = CommunicatorContext::of(owner.view());
    std::vector<int> peers;
    std::vector<TransportKind> kinds; ///< transports of messages in device memory
    std::optional<Device::Stream> stream;
};

/// Bytes of a message from one rank to another in a round: any number, also none.
std::size_t bytesOf(int from, int to, int round) {
    const std::size_t sizes[] = {0, 1, 64, 65, 5000, 200'000};
    return sizes[static_cast<std::size_t>(from * 7 + to * 3 + round) % 6];
}

TEST_P(MessageLinks, AnySizesInOrder) {
    const auto link = make();
    const auto valueOf = [](int from, int round) { return static_cast<std::byte>(from * 31 + round); };
    for (int round = 0; round < 30; ++round) {
        for (std::size_t k = 0; k < peers.size(); ++k) {
            if (round % 5 == 4)
                (void)link->prepare(k, bytesOf(0, 0, round)); // and not sent
            send(*link, k, bytesOf(world().rank(), peers[k], round), valueOf(world().rank(), round), 16);
        }
        for (std::size_t k = 0; k < peers.size(); ++k)
            expect(*link, k, bytesOf(peers[k], world().rank(), round), valueOf(peers[k], round));
    }
    EXPECT_LE(link->bufferBytes(), peers.size() * 4 * 260'000);
}

/// Rank 0 sends and destroys its link at once; the others come late, and read all.
TEST_P(MessageLinks, WhatWasSentArrivesAfterTheSenderHasGone) {
    auto link = make();
    if (world().rank() == 0) {
        for (std::size_t k = 0; k < peers.size(); ++k)
            for (const std::size_t bytes : {std::size_t{40}, std::size_t{100'000}})
                send(*link, k, bytes, std::byte{3});
        link.reset();
    } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        for (const std::size_t bytes : {std::size_t{40}, std::size_t{100'000}})
            expect(*link, 0, bytes, std::byte{3});
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/// Many rounds, links and recoveries with messages on their way: memory of the node's arena comes back.
TEST_P(MessageLinks, TakeNoMemoryForGood) {
    class Linked final : public Recoverable {
      public:
        Linked(CommunicatorContext &context, MessageLink &link) : context_(context), link_(link) {
            context.enlist(*this);
        }
        ~Linked() override { context_.delist(*this); }
        bool settle() noexcept override { return link_.settle(); }
        void renew() override { link_.renew(); }

      private:
        CommunicatorContext &context_;
        MessageLink &link_;
    };
    const std::shared_ptr<NodeArena> arena = context->node().arena;
    std::size_t before = 0;
    for (int object = 0; object < 6; ++object) {
        {
            const auto link = make();
            const Linked linked(*context, *link);
            for (int round = 0; round < 3; ++round) {
                for (std::size_t k = 0; k < peers.size(); ++k)
                    send(*link, k, 50'000, static_cast<std::byte>(round));
                if (round == 1) { // messages from before match nothing
                    recover(owner.view());
                    continue;
                }
                for (std::size_t k = 0; k < peers.size(); ++k)
                    expect(*link, k, 50'000, static_cast<std::byte>(round));
            }
            MPI_Barrier(MPI_COMM_WORLD);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        context->progressParked();
        MPI_Barrier(MPI_COMM_WORLD);
        if (arena) {
            arena->reap();
            if (object == 1)
                before = arena->bytesInUse();
            EXPECT_TRUE(object <= 1 || arena->bytesInUse() <= before) << arena->bytesInUse() << " after " << before;
        }
    }
    EXPECT_FALSE(context->hasParked());
}

/// A rank that waits for a peer to take a message is told of a failure.
TEST_P(MessageLinks, AWaitForRoomEndsWithARevocation) {
    if (world().size() == 1)
        GTEST_SKIP() << "there is no peer";
    const auto link = make();
    if (world().rank() == 1)
        revoke(owner.view(), "nothing is taken here");
    else
        expectContains(messageOf<RevokedError>([&] {
                           for (int k = 0; k < 3; ++k)
                               send(*link, 0, 1 << 20, std::byte{});
                           waitUntil(
                               *context, [] { return false; }, "the end");
                       }),
                       "rank 1 failed in the program: nothing is taken here");
    recover(owner.view());
}

INSTANTIATE_TEST_SUITE_P(Carriers, MessageLinks, testing::Values("auto", "packed", "peer", "direct"));

} // namespace
} // namespace DNDS::test
