#include "DNDS/Sparse/PeerMessages.hpp"

#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace DNDS::test {
namespace {

CommunicatorView world() { return {MPI_COMM_WORLD}; }

/// Bytes of a message from one rank to another in a round: any number, also none.
std::size_t bytesOf(int from, int to, int round) {
    const std::size_t sizes[] = {0, 1, 64, 65, 5000, 200'000};
    return sizes[static_cast<std::size_t>(from * 7 + to * 3 + round) % 6];
}

TEST(PeerMessages, AnySizesInOrder) {
    const auto context = CommunicatorContext::of(world());
    std::vector<int> peers;
    for (int rank = 0; rank < world().size(); ++rank)
        if (rank != world().rank())
            peers.push_back(rank);
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

} // namespace
} // namespace DNDS::test
