// The turns that a packing and a reading rank take; threads stand for ranks.

#include "DNDS/Transport/PeerEdge.hpp"

#include <gtest/gtest.h>

#include <array>
#include <thread>

namespace DNDS {
namespace {

using State = EdgeState;

TEST(PeerEdge, PacksTwoEpochsAheadOfTheReader) {
    PeerEdge edge;
    const std::uint32_t e = PeerEdge::initialEpoch + 1;
    edge.packed(e);
    EXPECT_EQ(edge.poll(e), State::Open);
    EXPECT_EQ(edge.poll(e + 1), State::Waiting);
    EXPECT_FALSE(edge.mayPack(e + 2));
    edge.taken(e);
    EXPECT_TRUE(edge.mayPack(e + 2));
}

TEST(PeerEdge, TwoThreadsPassEveryEpochAcrossTheWrap) {
    PeerEdge edge;
    constexpr std::uint32_t epochs = 4000; // past 0
    std::array<std::uint32_t, 2> buffers{};
    std::thread writer([&] {
        for (std::uint32_t k = 1; k <= epochs; ++k) {
            const std::uint32_t e = PeerEdge::initialEpoch + k;
            while (!edge.mayPack(e))
                std::this_thread::yield();
            buffers[e % 2] = e;
            edge.packed(e);
        }
    });
    std::uint32_t wrong = 0;
    for (std::uint32_t k = 1; k <= epochs; ++k) {
        const std::uint32_t e = PeerEdge::initialEpoch + k;
        while (edge.poll(e) != State::Open)
            std::this_thread::yield();
        wrong += buffers[e % 2] == e ? 0U : 1U;
        edge.taken(e);
    }
    writer.join();
    EXPECT_EQ(wrong, 0U);
}

} // namespace
} // namespace DNDS
