#include "DNDS/Device/Stream.hpp"

#include "DeviceWords.hpp"

#include "DNDS/Base/Error.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <type_traits>
#include <utility>

namespace DNDS::Device {
namespace {

using test::countingWords;
using test::DeviceWords;
using test::Words;

static_assert(!std::is_copy_constructible_v<Graph> && std::is_nothrow_move_constructible_v<Graph>);

void copyBetween(const DeviceWords &to, const DeviceWords &from, StreamHandle stream) {
    copy(to.get(), MemorySpace::Device, from.get(), MemorySpace::Device, from.bytes(), stream);
}

/// Records the contents of pinned memory at each call on the host.
struct Witness {
    const std::uint32_t *word;
    Words seen;

    static void look(void *witness) {
        static_cast<Witness *>(witness)->seen.push_back(*static_cast<Witness *>(witness)->word);
    }
};

TEST(Graph, CallsOfTheHostAreInOrderWithOtherWork) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    const DeviceWords one(Words(1, 1)), two(Words(1, 2));
    auto *word = static_cast<std::uint32_t *>(allocatePinned(sizeof(std::uint32_t)));
    *word = 0;
    Witness witness{word, {}};
    const Stream stream;
    const auto work = [&] {
        callHost(stream, &Witness::look, &witness);
        copy(word, MemorySpace::Host, one.get(), MemorySpace::Device, one.bytes(), stream);
        callHost(stream, &Witness::look, &witness);
        copy(word, MemorySpace::Host, two.get(), MemorySpace::Device, two.bytes(), stream);
    };
    work();
    stream.synchronize();
    EXPECT_EQ(witness.seen, (Words{0, 1}));
    const Graph graph = Graph::capture(stream, work);
    for (int launch = 0; launch < 2; ++launch)
        graph.launch(stream);
    stream.synchronize();
    EXPECT_EQ(witness.seen, (Words{0, 1, 2, 1, 2, 1}));
    deallocatePinned(word);
}

TEST(Graph, CapturedWorkRunsWhenLaunchedAndAsOftenAsLaunched) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    const DeviceWords a(countingWords(100, 1));
    const DeviceWords b(Words(100, 0));
    const DeviceWords c(Words(100, 0));
    const Stream stream;
    const Graph graph = Graph::capture(stream, [&] {
        EXPECT_TRUE(isCapturing(stream));
        copyBetween(b, a, stream);
        copyBetween(c, b, stream);
    });
    EXPECT_FALSE(isCapturing(stream));
    stream.synchronize();
    EXPECT_EQ(c.fetch(), Words(100, 0)) << "nothing runs while it is captured";
    for (std::uint32_t round = 0; round < 20; ++round) {
        const Words words = countingWords(100, round);
        copy(a.get(), MemorySpace::Device, words.data(), MemorySpace::Host, a.bytes(), stream);
        graph.launch(stream); // in order with what is queued eagerly
        stream.synchronize();
        ASSERT_EQ(c.fetch(), words);
    }
}

TEST(Graph, StreamsForkAndJoinByEvents) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    const DeviceWords a(countingWords(100, 1));
    const DeviceWords b(Words(100, 0));
    const DeviceWords c(Words(100, 0));
    const DeviceWords left(Words(100, 0));
    const DeviceWords right(Words(100, 0));
    const Stream stream;
    const Stream side;
    const Graph graph = Graph::capture(stream, [&] {
        copyBetween(b, a, stream);
        runAfter(side, stream);
        EXPECT_TRUE(isCapturing(side));
        copyBetween(left, b, side);
        copyBetween(right, b, stream);
        runAfter(stream, side);
        copyBetween(c, left, stream);
    });
    EXPECT_FALSE(isCapturing(side));
    for (std::uint32_t round = 0; round < 50; ++round) {
        const Words words = countingWords(100, round);
        copy(a.get(), MemorySpace::Device, words.data(), MemorySpace::Host, a.bytes(), stream);
        graph.launch(stream);
        stream.synchronize();
        ASSERT_EQ(c.fetch(), words);
        ASSERT_EQ(right.fetch(), words);
    }
    copyBetween(c, a, side); // streams serve as before
    side.synchronize();
}

TEST(Graph, MistakesEndTheCapture) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    const DeviceWords a(countingWords(100, 1));
    const DeviceWords b(Words(100, 0));
    EXPECT_THROW(Graph::capture(nullptr, [] {}), ArgumentError);
    EXPECT_THROW(Graph().launch(nullptr), ArgumentError);
    const Stream stream;
    const Stream side;
    EXPECT_THROW(endCapture(stream), StateError);
    EXPECT_THROW(Graph::capture(stream, [&] { stream.synchronize(); }), StateError);
    EXPECT_THROW(Graph::capture(stream,
                                [&] {
                                    copyBetween(b, a, stream);
                                    runAfter(side, stream);
                                    copyBetween(b, a, side); // never joined
                                }),
                 StateError);
    EXPECT_THROW(Graph::capture(stream, [&]() { throw std::runtime_error("user"); }), std::runtime_error);
    EXPECT_FALSE(isCapturing(stream));
    EXPECT_FALSE(isCapturing(side));
    copyBetween(b, a, stream);
    stream.synchronize();
    EXPECT_EQ(b.fetch(), countingWords(100, 1));
}

TEST(Graph, AnEmptyOneDoesNothing) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    const Stream stream;
    const Graph graph = Graph::capture(stream, [] {});
    EXPECT_TRUE(static_cast<bool>(graph));
    graph.launch(stream);
    stream.synchronize();
}

} // namespace
} // namespace DNDS::Device
