// Ranks read and write each other's device memory.

#include "DNDS/Device/SharedMemory.hpp"
#include "DNDS/Device/Stream.hpp"

#include "DeviceWords.hpp"
#include "support/MpiTest.hpp"

#include "DNDS/Base/Error.hpp"

#include <gtest/gtest.h>

#include <mpi.h>

#include <utility>
#include <vector>

namespace DNDS::Device {
namespace {

using test::countingWords;
using test::DeviceWords;
using test::Words;

std::vector<SharedHandle> gathered(const SharedHandle &mine) {
    std::vector<SharedHandle> handles(static_cast<std::size_t>(DNDS::test::worldSize()));
    MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, handles.data(), sizeof(mine), MPI_BYTE, MPI_COMM_WORLD);
    return handles;
}

TEST(SharedMemory, WithoutADeviceThereIsNone) {
    if (available())
        GTEST_SKIP() << "this build has a device";
    EXPECT_THROW(SharedMemory(SharedHandle{}), NotBuiltError);
    EXPECT_EQ(SharedMemory().get(), nullptr);
}

TEST(SharedMemory, RanksReadEachOthersMemoryAtTheRightOffset) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    const auto rank = static_cast<std::uint32_t>(DNDS::test::worldRank());
    const DeviceWords first(countingWords(1000, 1000 * rank));
    const DeviceWords second(countingWords(3000, 77 + 1000 * rank));
    const std::vector<SharedHandle> firsts = gathered(share(first.get() + 3));
    const std::vector<SharedHandle> seconds = gathered(share(second.get() + 1001));
    {
        const Stream stream;
        for (std::uint32_t peer = 0; peer < firsts.size(); ++peer) {
            const SharedMemory one(firsts[peer]);
            const SharedMemory two(seconds[peer]);
            const SharedMemory again(firsts[peer]);
            Words words(10);
            copy(words.data(), MemorySpace::Host, one.get(), MemorySpace::Device, 40, stream);
            stream.synchronize();
            EXPECT_EQ(words, countingWords(10, 1000 * peer + 3));
            copy(words.data(), MemorySpace::Host, two.get(), MemorySpace::Device, 40, stream);
            stream.synchronize();
            EXPECT_EQ(words, countingWords(10, 77 + 1000 * peer + 1001));
            if (peer == rank) {
                EXPECT_EQ(one.get(), first.get() + 3) << "one's own memory is where it always is";
            }
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

TEST(SharedMemory, WritesArrive) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    const int rank = DNDS::test::worldRank();
    const int size = DNDS::test::worldSize();
    const DeviceWords mine(Words(static_cast<std::size_t>(size), 0));
    const std::vector<SharedHandle> handles = gathered(share(mine.get()));
    {
        std::vector<SharedMemory> peers;
        for (const SharedHandle &handle : handles)
            peers.emplace_back(handle);
        const Words word{100 + static_cast<std::uint32_t>(rank)};
        for (const SharedMemory &peer : peers)
            copy(peer.as<std::uint32_t>() + rank, MemorySpace::Device, word.data(), MemorySpace::Host, 4, nullptr);
        synchronize(nullptr);
        MPI_Barrier(MPI_COMM_WORLD);
        EXPECT_EQ(mine.fetch(), countingWords(static_cast<std::size_t>(size), 100));
    } // closed here
    MPI_Barrier(MPI_COMM_WORLD);
}

TEST(SharedMemory, MistakesAreNoticed) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    Words host(4);
    EXPECT_THROW(share(host.data()), ArgumentError);
    EXPECT_THROW(SharedMemory(SharedHandle{}), ArgumentError);
    const DeviceWords device(host);
    SharedMemory own(share(device.get()));
    SharedMemory moved(std::move(own));
    EXPECT_EQ(own.get(), nullptr); // NOLINT(bugprone-use-after-move): documented
    EXPECT_EQ(moved.get(), device.get());
    moved = SharedMemory();
    EXPECT_EQ(device.fetch(), host) << "closing one's own memory leaves it";
}

} // namespace
} // namespace DNDS::Device
