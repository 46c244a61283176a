#include "DNDS/Sparse/PeerMessages.hpp"

#include "DNDS/Mpi/NodeTopology.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace DNDS::test {
namespace {

CommunicatorView world() { return {MPI_COMM_WORLD}; }

std::vector<int> others() {
    std::vector<int> peers;
    for (int rank = 0; rank < world().size(); ++rank)
        if (rank != world().rank())
            peers.push_back(rank);
    return peers;
}

/// Bytes of a message from one rank to another in a round: any number, also none.
std::size_t bytesOf(int from, int to, int round) {
    const std::size_t sizes[] = {0, 1, 64, 65, 5000, 200'000};
    return sizes[static_cast<std::size_t>(from * 7 + to * 3 + round) % 6];
}

TEST(PeerMessages, AnySizesInOrder) {
    const auto context = CommunicatorContext::of(world());
    const std::vector<int> peers = others();
    PeerMessages messages(context, context->nextChannel(), peers);
    const auto fill = [](int from, int round) { return static_cast<std::byte>(from * 31 + round); };
    for (int round = 0; round < 30; ++round) {
        for (std::size_t k = 0; k < peers.size(); ++k) {
            const std::size_t bytes = bytesOf(world().rank(), peers[k], round);
            const auto room = messages.prepare(k, bytes + 16);
            ASSERT_EQ(reinterpret_cast<std::uintptr_t>(room.data()) % 16, 0U);
            std::fill_n(room.begin(), bytes, fill(world().rank(), round));
            messages.send(k, bytes);
        }
        for (std::size_t k = 0; k < peers.size(); ++k) {
            while (!messages.receive(k)) {
            }
            EXPECT_TRUE(messages.receive(k)) << "until it is taken";
            const auto got = messages.received(k);
            ASSERT_EQ(got.size(), bytesOf(peers[k], world().rank(), round));
            EXPECT_EQ(std::ranges::count(got, fill(peers[k], round)), static_cast<std::ptrdiff_t>(got.size()));
            messages.take(k);
        }
    }
    EXPECT_LE(messages.bufferBytes(), peers.size() * 3 * 260'000);
}

TEST(PeerMessages, StayOnTheNodeWhereRanksShareIt) {
    const auto context = CommunicatorContext::of(world());
    const std::vector<int> peers = others();
    const NodeTopology &node = context->node();
    for (const char *transport : {"", "auto", "node-shared", "packed", "datatype"}) {
        transport[0] == '\0' ? ::unsetenv("DNDS_TRANSPORT") : ::setenv("DNDS_TRANSPORT", transport, 1);
        const bool may = transport[0] == '\0' || transport[0] == 'a' || transport[0] == 'n';
        PeerMessages messages(context, context->nextChannel(), peers);
        for (std::size_t k = 0; k < peers.size(); ++k)
            EXPECT_EQ(messages.staysOnNode(k), may && node.arena && node.sameNode(peers[k])) << transport;
    }
    ::unsetenv("DNDS_TRANSPORT");
}

/// Rank 0 sends and destroys its object at once; the others come late, and read all.
TEST(PeerMessages, AreReadAfterTheirSenderHasGone) {
    const auto context = CommunicatorContext::of(world());
    const std::vector<int> peers = others();
    const std::array<std::byte, 8> farewell{std::byte{7}};
    std::optional<PeerMessages> messages(std::in_place, context, context->nextChannel(), peers);
    messages->setFarewell(farewell);
    if (world().rank() == 0) {
        for (std::size_t k = 0; k < peers.size(); ++k)
            for (const std::size_t bytes : {std::size_t{40}, std::size_t{100'000}}) {
                std::ranges::fill(messages->prepare(k, bytes), std::byte{3});
                messages->send(k, bytes);
            }
        messages.reset();
    } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        for (const std::size_t bytes : {std::size_t{40}, std::size_t{100'000}, farewell.size()}) {
            while (!messages->receive(0))
                context->progressParked();
            const auto got = messages->received(0);
            ASSERT_EQ(got.size(), bytes);
            EXPECT_EQ(got.front(), bytes == 8 ? std::byte{7} : std::byte{3});
            messages->take(0);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/// Many rounds and objects: memory of the node's arena comes back.
TEST(PeerMessages, TakeNoMemoryForGood) {
    const auto context = CommunicatorContext::of(world());
    const std::vector<int> peers = others();
    const std::shared_ptr<NodeArena> arena = context->node().arena;
    std::size_t before = 0;
    for (int object = 0; object < 6; ++object) {
        {
            PeerMessages messages(context, context->nextChannel(), peers);
            for (int round = 0; round < 3; ++round) {
                for (std::size_t k = 0; k < peers.size(); ++k) {
                    (void)messages.prepare(k, 50'000);
                    messages.send(k, 50'000);
                }
                for (std::size_t k = 0; k < peers.size(); ++k) {
                    while (!messages.receive(k)) {
                    }
                    messages.take(k);
                }
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
}

TEST(PeerMessages, NotesAreRefusedWhereNobodyTakesThem) {
    const auto context = CommunicatorContext::of(world());
    const std::vector<int> peers = others();
    PeerMessages messages(context, context->nextChannel(), peers);
    const std::array<std::byte, 16> note{};
    for (std::size_t k = 0; k < peers.size(); ++k)
        if (messages.staysOnNode(k)) {
            for (int sent = 0; sent < 4; ++sent)
                EXPECT_TRUE(messages.sendNote(k, note));
            EXPECT_FALSE(messages.sendNote(k, note));
        }
    MPI_Barrier(MPI_COMM_WORLD);
    for (std::size_t k = 0; k < peers.size(); ++k)
        for (int taken = 0; messages.staysOnNode(k) && taken < 4; ++taken) {
            while (!messages.receive(k)) {
            }
            EXPECT_EQ(messages.received(k).size(), note.size());
            messages.take(k);
        }
    MPI_Barrier(MPI_COMM_WORLD);
    for (std::size_t k = 0; k < peers.size(); ++k)
        EXPECT_TRUE(!messages.staysOnNode(k) || messages.sendNote(k, note));
}

} // namespace
} // namespace DNDS::test
