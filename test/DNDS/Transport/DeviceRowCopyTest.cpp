// One launch that gathers, copies ranges and copies blocks, for all widths and alignments.

#include "DNDS/Transport/DeviceRowCopy.hpp"

#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/Device/RowKernelBodies.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Exchange/DeviceCase.hpp"
#include "DNDS/Transport/MessageLayout.hpp"
#include "DNDS/Transport/ScatteredCase.hpp"
#include "DNDS/Transport/Transport.hpp"
#include "support/MpiTest.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

namespace DNDS {
namespace {

using namespace DNDS::test;

class DeviceRowCopies : public WithDevice {};

std::vector<std::byte> randomBytes(std::size_t count, std::mt19937_64 &random) {
    std::vector<std::byte> bytes(count);
    for (std::byte &byte : bytes)
        byte = static_cast<std::byte>(random());
    return bytes;
}

TEST_F(DeviceRowCopies, GatherLikeTheHostForEveryWidthAndAlignment) {
    std::mt19937_64 random(seed());
    const Device::Stream stream;
    constexpr index rows = 300;
    for (const std::size_t stride :
         std::array<std::size_t, 17>{1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 40, 48, 100, 160, 500, 512, 4000}) {
        const auto contents = randomBytes(static_cast<std::size_t>(rows) * stride + 64, random);
        for (const std::size_t shift : {std::size_t{0}, std::size_t{8}, std::size_t{4}, std::size_t{1}}) {
            SCOPED_TRACE(testing::Message() << "stride " << stride << ", shift " << shift);
            std::vector<index> list;
            for (index row = 3; row < rows; row += 1 + static_cast<index>(random() % 5))
                list.push_back(row);
            RowPart part;
            part.stride = stride;
            const RowGather gather(list, part);
            std::vector<std::byte> expected(gather.bytes());
            gather.gather(contents.data() + shift, expected.data());

            HostDeviceBuffer source(contents.size());
            std::memcpy(source.write(MemorySpace::Host, "source"), contents.data(), contents.size());
            source.toDevice();
            DeviceRowCopy copy;
            EXPECT_EQ(copy.addGather(gather), 0U);
            for (const MemorySpace space : {MemorySpace::Device, MemorySpace::Host}) { // which kernels write otherwise
                HostDeviceBuffer target(expected.size() + 2 * shift, Device::pinnedHostMemory());
                copy.point(0, source.read(MemorySpace::Device, "source") + shift,
                           target.write(MemorySpace::Host, "target") + shift, space);
                copy.launch(stream);
                stream.synchronize();
                const std::byte *got = target.read(MemorySpace::Host, "target");
                EXPECT_EQ(std::memcmp(got + shift, expected.data(), expected.size()), 0);
                for (std::size_t k = 0; k < shift; ++k) { // nothing beside the rows
                    EXPECT_EQ(got[k], std::byte{0});
                    EXPECT_EQ(got[shift + expected.size() + k], std::byte{0});
                }
            }
        }
    }
}

TEST(RowKernelBodies, WideStoresOfAllThreadsWriteEachChunkOnce) {
    std::mt19937_64 random(seed());
    const auto contents = randomBytes(20000, random);
    const auto lists = [&](std::size_t stride) {
        std::vector<std::uint32_t> rows(37);
        for (std::uint32_t &row : rows)
            row = static_cast<std::uint32_t>(random() % (contents.size() / stride));
        return rows;
    };
    for (const std::size_t stride : {4U, 8U, 12U, 20U, 24U, 40U, 56U})
        for (const std::size_t shift : {0U, 4U, 8U, 12U})
            for (const std::uint32_t threads : {1U, 3U, 32U, 256U}) {
                SCOPED_TRACE(testing::Message() << stride << ", " << shift << ", " << threads);
                const std::vector<std::uint32_t> rows = lists(stride);
                alignas(16) std::array<std::byte, 37 * 56 + 32> target{};
                Device::CopySegment segment{};
                segment.source = contents.data();
                segment.destination = target.data() + 16 + shift;
                segment.rows = rows.data();
                segment.items = rows.size();
                segment.itemsPerTile = 5;
                segment.chunkBytes = stride % 8 == 0 && shift % 8 == 0 ? 8 : 4;
                segment.chunksPerRow = static_cast<std::uint32_t>(stride / segment.chunkBytes);
                segment.reciprocal = static_cast<std::uint32_t>(((std::uint64_t{1} << 32U) + segment.chunksPerRow - 1) /
                                                                segment.chunksPerRow);
                segment.wideStores = 1;
                const std::vector<std::uint32_t> segmentOfTile(8, 0);
                for (std::uint32_t tile = 0; tile < 8; ++tile)
                    for (std::uint32_t thread = 0; thread < threads; ++thread)
                        Device::copyTile({&segment, segmentOfTile.data(), 8}, tile, thread, threads);
                std::array<std::byte, 37 * 56 + 32> expected{};
                for (std::size_t k = 0; k < rows.size(); ++k)
                    std::copy_n(contents.data() + rows[k] * stride, stride, expected.data() + 16 + shift + k * stride);
                EXPECT_EQ(target, expected);
            }
}

TEST(RowKernelBodies, WideStoresOfBlocksWriteEachWordOnce) {
    std::mt19937_64 random(seed());
    alignas(16) std::array<std::byte, 4096> contents{};
    std::ranges::copy(randomBytes(contents.size(), random), contents.begin());
    const std::vector<Device::CopyBlock> blocks{
        {8, 0, 104}, {208, 104, 8}, {20, 112, 52}, {1000, 168, 1000}, {3, 1170, 5}};
    for (const auto &[threads, lanes] : {std::pair{1U, 32U}, {32U, 32U}, {256U, 32U}, {256U, 4U}, {256U, 1U}}) {
        alignas(16) std::array<std::byte, 4096> target{}, expected{};
        Device::CopySegment segment{};
        segment.lanes = lanes;
        segment.source = contents.data();
        segment.destination = target.data() + 8;
        segment.blocks = blocks.data();
        segment.items = blocks.size();
        segment.itemsPerTile = 4;
        segment.wideStores = 1;
        for (std::uint32_t tile = 0; tile < 2; ++tile)
            for (std::uint32_t thread = 0; thread < threads; ++thread)
                Device::copyTile({&segment, nullptr, 2}, tile, thread, threads);
        for (const Device::CopyBlock &block : blocks)
            std::copy_n(contents.data() + block.source, block.bytes, expected.data() + 8 + block.destination);
        EXPECT_EQ(target, expected) << threads << " threads, " << lanes << " a block";
    }
}

TEST_F(DeviceRowCopies, RangesAndBlocksOfAnySizeGoInOneLaunchAndCanBeLeftOut) {
    std::mt19937_64 random(seed());
    const Device::Stream stream;
    const auto contents = randomBytes(100000, random);
    HostDeviceBuffer source(contents.size());
    std::memcpy(source.write(MemorySpace::Host, "source"), contents.data(), contents.size());
    source.toDevice();
    HostDeviceBuffer target(contents.size(), Device::pinnedHostMemory());
    DeviceRowCopy copy;
    copy.addRange(70001);
    copy.addRange(0);
    const std::vector<Device::CopyBlock> blocks{{0, 5000, 1}, {7, 0, 4999}, {9000, 6000, 9000}};
    copy.addBlocks(blocks);
    const std::byte *from = source.read(MemorySpace::Device, "source");
    std::byte *to = target.write(MemorySpace::Host, "target");
    copy.point(0, from, to);
    copy.point(1, from, to);
    copy.point(2, from + 70001, to + 70001);
    for (const bool second : {true, false, true}) {
        copy.point(2, from + 70001, to + 70001, second ? MemorySpace::Host : MemorySpace::Device);
        std::memset(to, 0, target.bytes());
        copy.launch(stream);
        stream.synchronize();
        std::vector<std::byte> expected(contents.size());
        std::copy_n(contents.begin(), 70001, expected.begin());
        for (const Device::CopyBlock &block : blocks)
            std::copy_n(contents.data() + 70001 + block.source, block.bytes,
                        expected.data() + 70001 + block.destination);
        EXPECT_EQ(std::memcmp(to, expected.data(), expected.size()), 0);
    }
}

TEST_F(DeviceRowCopies, FollowTheirMemoryFromLaunchToLaunchWithoutWaiting) {
    const Device::Stream stream;
    constexpr std::size_t copies = 20;
    HostDeviceBuffer source(copies * 64);
    std::byte *bytes = source.write(MemorySpace::Host, "source");
    for (std::size_t k = 0; k < copies * 64; ++k)
        bytes[k] = static_cast<std::byte>(k / 64 + 1);
    source.toDevice();
    HostDeviceBuffer target(copies * 64, Device::pinnedHostMemory());
    std::byte *to = target.write(MemorySpace::Host, "target");
    DeviceRowCopy copy;
    copy.addRange(64);
    for (std::size_t k = 0; k < copies; ++k) {
        copy.point(0, source.read(MemorySpace::Device, "source") + 64 * k, to + 64 * (copies - 1 - k));
        copy.launch(stream);
    }
    stream.synchronize();
    for (std::size_t k = 0; k < copies * 64; ++k)
        EXPECT_EQ(to[k], static_cast<std::byte>(copies - k / 64));
}

TEST_F(DeviceRowCopies, OfNothingNeedNoMemory) {
    const Device::Stream stream;
    DeviceRowCopy copy;
    copy.launch(stream);
    EXPECT_EQ(copy.addRange(0), 0U);
    EXPECT_EQ(copy.addGather(RowGather(std::span<const index>(), RowPart{})), 1U);
    copy.point(0, nullptr, nullptr);
    copy.launch(stream);
    stream.synchronize();
}

/// Those of the host: RowScatterTest.cpp
TEST_F(DeviceRowCopies, FillScatteredDestinationsByEveryTransport) {
    expectScattered(TransportKind::Local, MemorySpace::Device);
    for (const TransportKind kind : deviceTransports())
        expectScattered(kind, MemorySpace::Device);
}

TEST(MessageLayouts, AlignPartsAndMessages) {
    Incoming first{.peer = 1, .parts = {{0, 5}, {0, 0}, {0, 20}}, .bytes = 25};
    Incoming second{.peer = 2, .parts = {{5, 1}, {0, 0}, {0, 3}}, .bytes = 4};
    const MessageLayout layout(std::vector<Incoming>{first, second});
    EXPECT_EQ(layout.size(), 2U);
    EXPECT_EQ(layout.begin(0), 0U);
    EXPECT_EQ(layout.part(0, 1), 16U);
    EXPECT_EQ(layout.part(0, 2), 16U);
    EXPECT_EQ(layout.bytes(0), 36U);
    EXPECT_EQ(layout.begin(1), 256U);
    EXPECT_EQ(layout.part(1, 2), 256U + 16U);
    EXPECT_EQ(layout.bytes(1), 19U);
    EXPECT_EQ(layout.total(), 256U + 19U);
}

} // namespace
} // namespace DNDS
