#include "DNDS/GridFile/Slab.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/GridFile/ElementConversion.hpp"
#include "DNDS/GridFile/Parts.hpp"
#include "DNDS/GridFile/SlabChunks.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

namespace DNDS {
namespace {

using Detail::holds;
using Detail::SlabChunk;
using Detail::SlabChunks;

TEST(Slab, ChunksCoverABoxOnceWhateverTheirSize) {
    const std::vector<index> count{3, 4, 5};
    for (const index limit : {0, 1, 2, 4, 5, 7, 11, 20, 39, 40, 59, 60, 1000}) {
        const SlabChunks chunks(count, limit);
        std::vector<int> seen(60, 0);
        for (index k = 0; k < chunks.size(); k++) {
            const SlabChunk chunk = chunks.at(k);
            EXPECT_LE(chunk.elements, std::max<index>(limit, 1));
            Detail::forEachRun(chunk, {20, 5, 1}, [&](index, index memory, index length, index) {
                for (index i = 0; i < length; i++)
                    seen[static_cast<std::size_t>(memory + i)]++;
            });
        }
        EXPECT_EQ(seen, std::vector<int>(60, 1)) << limit;
    }
    EXPECT_EQ(SlabChunks({3, 0, 5}, 10).size(), 0);
    EXPECT_EQ(SlabChunks({}, 10).size(), 1);
    // The product of the other dimensions is no index.
    const std::vector<index> none{index{1} << 40, index{1} << 40, 0};
    EXPECT_EQ(SlabChunks(none, 10).size(), 0);
    EXPECT_NO_THROW(checkSlab(slabOf(static_cast<double *>(nullptr), {0, 0, 0}, none), none, "v"));
}

TEST(Slab, GatherAndScatterAreInverse) {
    const std::vector<index> count{2, 3, 4};
    test::PaddedBox<int> from({0, 0, 0}, count, -1);
    from.forEach(count, [&](index global, std::size_t place) { from.memory[place] = static_cast<int>(global); });
    const WrittenSlab written =
        slabOf(static_cast<const int *>(from.data()), from.start, std::vector<index>(count), from.strides);
    const SlabChunk all{{0, 0, 0}, count, 24};
    std::vector<int> packed(24);
    Detail::gatherChunk(written, all, sizeof(int), reinterpret_cast<std::byte *>(packed.data()));
    std::vector<int> expected(24);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(packed, expected);
    test::PaddedBox<int> to({0, 0, 0}, count, -1);
    Detail::scatterChunk(slabOf(to.data(), to.start, std::vector<index>(count), to.strides), all, sizeof(int),
                         reinterpret_cast<const std::byte *>(packed.data()));
    EXPECT_EQ(to.memory, from.memory);
}

TEST(Slab, BoxesOutsideAreRefused) {
    double memory[6] = {};
    const auto check = [&](std::vector<index> start, std::vector<index> count, std::vector<index> strides = {}) {
        checkSlab(slabOf(memory, std::move(start), std::move(count), std::move(strides)), {2, 3}, "v");
    };
    EXPECT_NO_THROW(check({0, 0}, {2, 3}));
    EXPECT_NO_THROW(check({2, 3}, {0, 0}));
    EXPECT_THROW(check({0, 0}, {2}), LayoutError);
    EXPECT_THROW(check({0, 1}, {2, 3}), LayoutError);
    EXPECT_THROW(check({-1, 0}, {1, 1}), LayoutError);
    EXPECT_THROW(check({0, 0}, {-1, 1}), LayoutError);
    EXPECT_THROW(check({0, 0}, {1, 1}, {1}), LayoutError);
    EXPECT_THROW(checkSlab(slabOf(static_cast<double *>(nullptr), {0}, {1}), {2}, "v"), ArgumentError);
}

TEST(ElementConversion, KnowsWhatTypesHold) {
    using Limits = std::numeric_limits<std::int64_t>;
    EXPECT_TRUE(holds<std::int16_t>(32767.0));
    EXPECT_FALSE(holds<std::int16_t>(32768.0));
    EXPECT_FALSE(holds<std::int16_t>(0.5));
    EXPECT_FALSE(holds<std::int16_t>(std::numeric_limits<double>::quiet_NaN()));
    EXPECT_FALSE(holds<std::uint8_t>(-1));
    EXPECT_FALSE(holds<std::int64_t>(9223372036854775808.0));
    EXPECT_TRUE(holds<std::int64_t>(-9223372036854775808.0));
    EXPECT_FALSE(holds<double>(Limits::max()));
    EXPECT_TRUE(holds<double>(Limits::min()));
    EXPECT_TRUE(holds<double>(std::numeric_limits<std::int32_t>::max()));
    EXPECT_TRUE(holds<double>(std::int8_t{127}));
    EXPECT_FALSE(holds<float>((std::int64_t{1} << 24) + 1));
    EXPECT_TRUE(holds<float>(std::numeric_limits<double>::quiet_NaN()));
    EXPECT_FALSE(holds<float>(0.1));
}

} // namespace
} // namespace DNDS
