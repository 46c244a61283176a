#include "DNDS/Device/DeviceMemory.hpp"

#include "DeviceWords.hpp"

#include "DNDS/Device/Hooks.hpp"

#include <gtest/gtest.h>

namespace DNDS::Device {
namespace {

TEST(Transfers, CountWhatCrossesBetweenHostAndDevice) {
    if (!available()) {
        EXPECT_EQ(transfers().bytesToDevice + transfers().bytesToHost, 0U);
        GTEST_SKIP() << unavailableReason();
    }
    const test::DeviceWords a(test::countingWords(100, 1));
    const test::DeviceWords b(test::Words(100, 0));
    synchronizeAll();
    const Transfers before = transfers();
    copy(b.get(), MemorySpace::Device, a.get(), MemorySpace::Device, a.bytes(), nullptr); // stays there
    copy(b.get(), MemorySpace::Device, a.get(), MemorySpace::Device, 0, nullptr);
    const test::Words words = b.fetch();
    copy(a.get(), MemorySpace::Device, words.data(), MemorySpace::Host, 40, nullptr);
    synchronize(nullptr);
    const Transfers now = transfers();
    EXPECT_EQ(now.copiesToHost - before.copiesToHost, 1U);
    EXPECT_EQ(now.bytesToHost - before.bytesToHost, b.bytes());
    EXPECT_EQ(now.copiesToDevice - before.copiesToDevice, 1U);
    EXPECT_EQ(now.bytesToDevice - before.bytesToDevice, 40U);
}

} // namespace
} // namespace DNDS::Device
