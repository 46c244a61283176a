#include "DNDS/Device/Stream.hpp"

#include "DeviceWords.hpp"
#include "Gate.hpp"

#include "DNDS/Base/Error.hpp"

#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

namespace DNDS::Device {
namespace {

using test::countingWords;
using test::DeviceWords;
using test::Words;

static_assert(!std::is_copy_constructible_v<Event> && std::is_nothrow_move_constructible_v<Event> &&
              std::is_nothrow_move_assignable_v<Event>);

TEST(Event, MovesItsHandle) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    Event first;
    const EventHandle handle = first.handle();
    Event second(std::move(first));
    EXPECT_EQ(second.handle(), handle);
    EXPECT_EQ(first.handle(), nullptr);                 // NOLINT(bugprone-use-after-move): documented
    EXPECT_THROW(first.record(nullptr), ArgumentError); // NOLINT(bugprone-use-after-move): documented
    Event third;
    third = std::move(second);
    EXPECT_EQ(third.handle(), handle);
}

TEST(Event, NeverRecordedItHoldsNobodyBack) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    const Event event;
    const Stream stream;
    EXPECT_TRUE(event.reached());
    event.synchronize();
    event.holdBack(stream);
    stream.synchronize();
}

TEST(Event, AStreamWaitsForWhatAnotherHeldWhenItWasRecorded) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    const DeviceWords source(countingWords(1000, 1));
    for (int i = 0; i < 50; ++i) {
        const DeviceWords between(Words(1000, 0));
        Words result(1000);
        {
            const Stream first;
            const Stream second;
            copy(between.get(), MemorySpace::Device, source.get(), MemorySpace::Device, source.bytes(), first);
            {
                const Event event; // may go before the wait is over
                event.record(first);
                event.holdBack(second);
            }
            copy(result.data(), MemorySpace::Host, between.get(), MemorySpace::Device, source.bytes(), second);
        }
        ASSERT_EQ(result, countingWords(1000, 1));
    }
}

TEST(Event, TheHostWaitsForIt) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    const DeviceWords source(countingWords(1000, 1));
    const Stream stream;
    const Event event;
    for (int i = 0; i < 20; ++i) {
        Words result(1000);
        copy(result.data(), MemorySpace::Host, source.get(), MemorySpace::Device, source.bytes(), stream);
        event.record(stream);
        if (i % 2 == 0)
            event.synchronize();
        else
            while (!event.reached()) {
            }
        ASSERT_EQ(result, countingWords(1000, 1));
    }
}

TEST(Event, StandsBehindItsLastRecord) {
    if (!test::isEmulated())
        GTEST_SKIP() << "only the emulated device has kernels that the host compiler compiled";
    const Stream stream;
    const Event event;
    event.record(stream);
    event.synchronize();
    EXPECT_TRUE(event.reached());
    test::Gate gate(stream);
    event.record(stream);
    EXPECT_FALSE(event.reached());
    const Stream other;
    const Stream third;
    runAfter(other, stream);
    const DeviceWords device(Words(4, 0)); // its default stream waits for no other stream
    EXPECT_FALSE(event.reached());
    gate.open();
    other.synchronize();
    EXPECT_TRUE(event.reached());
}

} // namespace
} // namespace DNDS::Device
