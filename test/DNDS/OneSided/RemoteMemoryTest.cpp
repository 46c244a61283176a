#include "HeapTest.hpp"

#include "../Mpi/ThrowsOnAll.hpp"
#include "DNDS/OneSided/RemoteMemory.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <thread>

namespace DNDS {
namespace {

using test::expectContains;
using test::messageOf;
using test::worldRank;
using test::worldSize;

std::unique_ptr<RemoteMemory> makeMemory(std::size_t bytes) {
    const auto context = CommunicatorContext::of(MPI_COMM_WORLD);
    auto memory = RemoteMemory::allocate(*context, bytes, MemorySpace::Host, "memory of the test");
    std::memset(memory.get(), 0, bytes);
    return std::make_unique<RemoteMemory>(context, std::move(memory), bytes, MemorySpace::Host, "memory of the test");
}

TEST(RemoteMemory, SizesMayDifferAndAreChecked) {
    const auto memory = makeMemory(static_cast<std::size_t>(100 * (worldRank() + 1)));
    memory->barrier();
    for (int rank = 0; rank < worldSize(); ++rank) {
        const std::size_t bytes = static_cast<std::size_t>(100 * (rank + 1));
        EXPECT_EQ(memory->bytes(rank), bytes);
        memory->check(RemoteCall::Put, rank, 0, bytes);
        memory->check(RemoteCall::Put, rank, bytes, 0);
        messageOf<IndexError>([&] { memory->check(RemoteCall::Put, rank, 1, bytes); });
        messageOf<IndexError>([&] { memory->check(RemoteCall::Put, rank, UINT64_MAX, 2); });
        messageOf<IndexError>([&] { memory->check(RemoteCall::Put, rank, 2, UINT64_MAX); });
        messageOf<ArgumentError>([&] { memory->check(RemoteCall::Atomic, rank, 4, 8, 8); });
    }
    expectContains(messageOf<IndexError>([&] { memory->check(RemoteCall::Get, worldSize(), 0, 1); }),
                   "memory of the test: get of 1 bytes at offset 0");
    const int last = worldSize() - 1;
    memory->address(last, 8).atomic(0, AtomicOp::Add, std::int64_t{1} + worldRank());
    memory->barrier();
    EXPECT_EQ(memory->address(last, 8).fetchAtomic(0, AtomicOp::Fetch, std::int64_t{0}),
              worldSize() * (worldSize() + 1) / 2);
    memory->barrier();
}

TEST(RemoteMemory, IsLeftAloneWhereAnExceptionPasses) {
    // The first rank whose exception passes revokes the communicator: no destructor waits
    const auto pass = [] {
        const auto memory = makeMemory(64);
        memory->barrier();
        throw std::runtime_error("passes");
    };
    EXPECT_THROW(pass(), std::runtime_error);
    recover(MPI_COMM_WORLD);
}

/// A GPU's atomic operations and the host's are not atomic together over PCIe.
TEST(FaultRecord, HasNoWordThatBothKernelsAndTheHostChange) {
    FaultRecord record;
    const auto bytesOf = [&] {
        std::array<unsigned char, sizeof(FaultRecord)> bytes;
        std::memcpy(bytes.data(), &record, sizeof(record));
        return bytes;
    };
    std::array<bool, sizeof(FaultRecord) / 4> byKernels{};
    std::array<bool, sizeof(FaultRecord) / 4> byHost{};
    const auto watch = [&](auto &changed, const auto &change) {
        const auto before = bytesOf();
        change();
        const auto after = bytesOf();
        for (std::size_t k = 0; k < after.size(); ++k)
            changed[k / 4] = changed[k / 4] || before[k] != after[k];
    };
    for (int round = 0; round < 3; ++round) {
        for (int rank = 0; rank < 3; ++rank)
            watch(byKernels, [&] { record.note(AccessFault::Range, RemoteCall::Get, rank + round, 40, 8); });
        watch(byHost, [&] { EXPECT_TRUE(record.noted() && record.take().others == 2); });
    }
    for (std::size_t word = 0; word < byHost.size(); ++word)
        EXPECT_FALSE(byKernels[word] && byHost[word]) << "word " << word;
}

TEST(FaultRecord, LosesNoneWhileItIsRead) {
    FaultRecord record;
    constexpr std::uint64_t notes = 20000;
    std::atomic<bool> done{false};
    std::uint64_t seen = 0;
    std::uint64_t torn = 0;
    const auto takeAll = [&] {
        while (record.noted()) {
            const KernelFault fault = record.take();
            seen += 1 + fault.others;
            torn += fault.offset == fault.bytes && static_cast<std::uint64_t>(fault.rank) == fault.offset ? 0 : 1;
        }
    };
    std::thread writer([&] {
        for (std::uint64_t k = 0; k < notes; ++k)
            record.note(AccessFault::Range, RemoteCall::Put, static_cast<int>(k), k, k);
        done = true;
    });
    while (!done)
        takeAll();
    writer.join();
    takeAll();
    EXPECT_EQ(seen + record.unreported(), notes);
    EXPECT_EQ(torn, 0U);
}

TEST(CopyShare, OfAllLanesCopiesEachByteAtAnyAlignment) {
    alignas(16) std::array<std::byte, 200> source;
    for (std::size_t k = 0; k < source.size(); ++k)
        source[k] = static_cast<std::byte>(k + 1);
    for (const std::size_t bytes : {0U, 1U, 4U, 8U, 12U, 15U, 16U, 20U, 24U, 31U, 32U, 40U, 48U, 60U, 100U, 136U})
        for (const std::size_t shift : {0U, 1U, 4U, 8U, 16U, 20U, 24U})
            for (const std::size_t other : {0U, 1U, 4U, 8U, 16U})
                for (const index lanes : {1, 2, 3, 32}) {
                    alignas(16) std::array<std::byte, 200> target{};
                    for (index lane = 0; lane < lanes; ++lane)
                        Detail::copyShare(target.data() + other, source.data() + shift, bytes, {lane, lanes});
                    std::array<std::byte, 200> expected{};
                    std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(shift), bytes,
                                expected.begin() + static_cast<std::ptrdiff_t>(other));
                    EXPECT_EQ(target, expected) << bytes << " bytes, " << shift << ", " << other << ", " << lanes;
                }
}

} // namespace
} // namespace DNDS
