// Destinations in runs: the list itself, and over every transport of the host. Those of the device:
// DeviceRowCopyTest.cpp

#include "DNDS/Transport/RowScatter.hpp"

#include "DNDS/Exchange/FieldCase.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Transport/ScatteredCase.hpp"

#include <array>
#include <numeric>
#include <random>
#include <vector>

namespace DNDS {
namespace {

using namespace DNDS::test;

constexpr std::array<index, 6> offsets{0, 3, 3, 7, 8, 12};

RowPart fixedPart(std::size_t stride) {
    RowPart part;
    part.stride = stride;
    return part;
}

RowPart csrPart() {
    RowPart part;
    part.offsets = offsets.data();
    part.elementBytes = 1;
    return part;
}

TEST(RowScatter, ConsecutiveRowsAreOneRun) {
    const std::vector<index> rows{4, 5, 6};
    for (const RowScatter &scatter : {RowScatter(rows, fixedPart(8)), RowScatter(32, 24)}) {
        EXPECT_TRUE(scatter.contiguous());
        EXPECT_EQ(scatter.offset(), 32U);
        EXPECT_EQ(scatter.bytes(), 24U);
        ASSERT_EQ(scatter.runs().size(), 1U);
        EXPECT_EQ(scatter.runs()[0].offset, 32U);
    }
}

TEST(RowScatter, RowsWithoutBytesAreNothing) {
    const std::vector<index> rows{1, 1};
    for (const RowScatter &scatter : {RowScatter(), RowScatter(16, 0), RowScatter(rows, csrPart()),
                                      RowScatter(std::span<const index>(), fixedPart(8))}) {
        EXPECT_TRUE(scatter.contiguous());
        EXPECT_EQ(scatter.bytes(), 0U);
        EXPECT_TRUE(scatter.runs().empty());
    }
}

TEST(RowScatter, PutsRowsWhereTheyBelongInTheOrderOfArrival) {
    const std::vector<index> rows{4, 0, 2}; // of 4, 3 and 4 bytes
    const RowScatter scatter(rows, csrPart());
    EXPECT_FALSE(scatter.contiguous());
    EXPECT_EQ(scatter.offset(), 0U);
    EXPECT_EQ(scatter.bytes(), 11U);
    std::array<std::byte, 11> from{};
    for (std::size_t k = 0; k < from.size(); ++k)
        from[k] = static_cast<std::byte>(k + 1);
    std::array<std::byte, 12> to{};
    scatter.scatter(from.data(), to.data());
    const std::array<int, 12> wanted{5, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4};
    for (std::size_t k = 0; k < to.size(); ++k)
        EXPECT_EQ(std::to_integer<int>(to[k]), wanted[k]) << k;
}

TEST(RowScatter, BlocksBetweenAreWhatGatheringAndScatteringDo) {
    std::seed_seq seeds{seed(), std::uint64_t{5}};
    std::mt19937_64 random(seeds);
    for (int round = 0; round < 50; ++round) {
        const std::size_t stride = round % 3 == 0 ? 8 : 600; // copied row by row, and in runs
        std::vector<index> from(20);
        std::iota(from.begin(), from.end(), index{0});
        std::vector<index> to = from;
        std::shuffle(from.begin(), from.end(), random);
        std::shuffle(to.begin() + static_cast<std::ptrdiff_t>(random() % 19), to.end(), random);
        from.resize(12);
        to.resize(12);
        const RowGather gather(from, fixedPart(stride));
        const RowScatter scatter(to, fixedPart(stride));
        std::vector<std::byte> source(20 * stride);
        for (std::byte &byte : source)
            byte = static_cast<std::byte>(random());
        std::vector<std::byte> packed(gather.bytes());
        std::vector<std::byte> wanted(source.size());
        gather.gather(source.data(), packed.data());
        scatter.scatter(packed.data(), wanted.data());
        std::vector<std::byte> got(source.size());
        for (const Device::CopyBlock &block : blocksBetween(gather, scatter))
            std::copy_n(source.data() + block.source, block.bytes, got.data() + block.destination);
        EXPECT_EQ(got, wanted);
    }
}

TEST(ScatteredDestinations, AreFilledByEveryTransportOfTheHost) {
    expectScattered(TransportKind::Local, MemorySpace::Host);
    expectScattered(TransportKind::Datatype, MemorySpace::Host);
    expectScattered(TransportKind::Packed, MemorySpace::Host);
    const auto context = CommunicatorContext::of(MPI_COMM_WORLD);
    const NodeTopology &node = context->node();
    const bool oneNode = node.arena && static_cast<int>(node.members.size()) == context->comm().size();
    if (context->comm().allReduce(oneNode ? 1 : 0, MPI_MIN) == 0)
        return;
    for (const bool inArena : {false, true})
        expectScattered(TransportKind::NodeShared, MemorySpace::Host, inArena);
}

} // namespace
} // namespace DNDS
