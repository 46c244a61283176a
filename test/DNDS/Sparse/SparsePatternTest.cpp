#include "DNDS/Sparse/SparsePattern.hpp"

#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "DNDS/Sparse/SparseCase.hpp"
#include "DNDS/Sparse/SparseField.hpp"
#include "DNDS/Transport/RowGather.hpp"
#include "support/World.hpp"

#include <cmath>
#include <limits>

namespace DNDS::test {
namespace {

TEST(SparsePattern, ChannelsAreTheGhostRegions) {
    for (const SparseGrid &grid : sparseGrids()) {
        SCOPED_TRACE(grid.name);
        const auto blocks = grid.on(world());
        const auto pattern = SparsePattern::make(world(), blocks, grid.ghosts);
        const std::vector<RowGather> &copies = pattern->copies(1).gathers;
        std::size_t channels = 0;
        for (int b = 0; b < static_cast<int>(pattern->blocks().size()); ++b) {
            const int number = pattern->blocks()[toSize(b)].block;
            EXPECT_EQ(pattern->localOf(number), b);
            std::vector<std::size_t> expected;
            std::vector<std::size_t> found;
            for (const GhostRegion &region : blocks->ghostRegions(number, grid.ghosts))
                expected.push_back(static_cast<std::size_t>(region.ghosts.size()));
            for (const auto &place : pattern->receivedBy(b)) {
                const ChannelEnd &end = pattern->peers()[toSize(place.peer)].received[toSize(place.channel)];
                EXPECT_EQ(end.block, b);
                found.push_back(copies[toSize(end.shape)].bytes());
            }
            for (const std::int32_t k : pattern->localTo(b)) {
                const LocalChannel &channel = pattern->localChannels()[toSize(k)];
                EXPECT_EQ(channel.to.block, b);
                EXPECT_EQ(copies[toSize(channel.from.shape)].bytes(), copies[toSize(channel.to.shape)].bytes());
                found.push_back(copies[toSize(channel.to.shape)].bytes());
            }
            std::ranges::sort(expected);
            std::ranges::sort(found);
            EXPECT_EQ(found, expected) << "block " << number;
            channels += pattern->localFrom(b).size() + pattern->givenBy(b).size();
        }
        std::size_t given = pattern->localChannels().size();
        for (const PeerChannels &peer : pattern->peers()) {
            EXPECT_NE(peer.rank, world().rank());
            given += peer.given.size();
        }
        EXPECT_EQ(channels, given);
        EXPECT_EQ(pattern->localOf(static_cast<int>(blocks->blocks().size())), -1);
    }
}

TEST(SparsePattern, GridsThatDoNotFit) {
    messageOnAll<ArgumentError>([&] { SparsePattern::make(world(), nullptr, {1}); });
    const auto grid = sparseGrids().front().on(world());
    messageOnAll<ArgumentError>([&] { SparsePattern::make(world(), grid, {-1}); });
}

template <class T>
std::size_t firstAbove(const std::vector<T> &values, T background, real threshold) {
    const SparseElementsOf<T> elements(background);
    return elements.firstAbove(reinterpret_cast<const std::byte *>(values.data()), values.size(), threshold);
}

TEST(SparseElements, FindTheFirstAbove) {
    for (const std::size_t at : {0U, 63U, 64U, 99U}) {
        std::vector<real> values(100, 2.0);
        EXPECT_EQ(firstAbove(values, 2.0, 0), 100U);
        values[at] = 2.5;
        EXPECT_EQ(firstAbove(values, 2.0, 0), at);
        EXPECT_EQ(firstAbove(values, 2.0, 0.5), 100U) << "at the threshold is not above";
        EXPECT_EQ(firstAbove(values, 2.0, 0.499), at);
        values[at] = std::numeric_limits<real>::quiet_NaN();
        EXPECT_EQ(firstAbove(values, 2.0, 1e300), at);
    }
    EXPECT_EQ(firstAbove<real>({0.0, -0.0}, 0.0, 0), 1U);
    EXPECT_EQ(firstAbove<real>({0.0, -0.0}, 0.0, 1e-300), 2U);
    EXPECT_EQ(firstAbove<std::int8_t>({7, 7, -7}, 7, 13.5), 2U);
    EXPECT_EQ(firstAbove<float>({}, 1.0F, 0), 0U);
    EXPECT_NE(SparseElementsOf<real>(0.0).describe(), SparseElementsOf<real>(-0.0).describe());
}

} // namespace
} // namespace DNDS::test
