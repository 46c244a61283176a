#include "DNDS/Device/Stream.hpp"

#include <gtest/gtest.h>

#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS::Device {
namespace {

static_assert(!std::is_copy_constructible_v<Stream> && std::is_nothrow_move_constructible_v<Stream> &&
              std::is_nothrow_move_assignable_v<Stream>);

TEST(Stream, MovesItsHandle) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    Stream first;
    const StreamHandle handle = first.handle();
    ASSERT_NE(handle, nullptr);
    Stream second(std::move(first));
    EXPECT_EQ(second.handle(), handle);
    EXPECT_EQ(first.handle(), nullptr); // NOLINT(bugprone-use-after-move): documented
    Stream third;
    third = std::move(second);
    EXPECT_EQ(third.handle(), handle);
    third.synchronize();
}

TEST(Stream, FinishesItsWorkWhenDestroyed) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    std::vector<char> source(1000, 'a');
    std::vector<char> result(1000, 'b');
    void *device = allocate(1000);
    {
        const Stream stream;
        copy(device, MemorySpace::Device, source.data(), MemorySpace::Host, 1000, stream);
        copy(result.data(), MemorySpace::Host, device, MemorySpace::Device, 1000, stream);
    }
    EXPECT_EQ(result, source);
    deallocate(device);
}

} // namespace
} // namespace DNDS::Device
