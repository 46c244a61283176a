#include "DNDS/Sparse/SparseReductions.hpp"

#include "DNDS/Blocks/BlockFile.hpp"
#include "DNDS/Sparse/SparseCase.hpp"
#include "support/RandomCases.hpp"
#include "support/World.hpp"

#include <stdexcept>

namespace DNDS::test {
namespace {

/// A value for a cell in some blocks, of any size; elsewhere the default.
real valueOf(int number, const IndexVector &cell, rowsize c) {
    const auto draw = drawn(1000, {static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(cell[0]),
                                   static_cast<std::uint64_t>(cell[1]), static_cast<std::uint64_t>(c)});
    return (static_cast<real>(draw) - 700) * std::pow(1.7, static_cast<real>(draw % 60) - 30);
}

TEST(SparseReductions, AreThoseOfTheDenseField) {
    for (const SparseGrid &grid : sparseGrids())
        for (const std::uint64_t presence : {0U, 1U, 3U, 4U}) {
            SCOPED_TRACE(grid.name);
            constexpr real background = 0.1;
            const auto blocks = grid.on(world());
            SparseField<real> u("u", SparsePattern::make(world(), blocks, grid.ghosts), {.components = 2}, background);
            BlockField<real> dense("dense", world(), blocks, {.ghosts = grid.ghosts, .components = 2});
            for (int b = 0; b < u.blocks(); ++b) {
                const int number = u.block(b).block;
                const bool there = drawn(4, {static_cast<std::uint64_t>(number)}) < presence;
                if (there)
                    u.allocate(b);
                const Box cells = u.block(b).cells;
                Box local(cells.dims, {}, {});
                for (int d = 0; d < cells.dims; ++d)
                    local.upper[toSize(d)] = cells.extent(d);
                forEachCell(local, [&](const IndexVector &cell) {
                    for (rowsize c = 0; c < 2; ++c) {
                        at(dense.view(b), cell, c) = there ? valueOf(number, cell, c) : background;
                        if (there)
                            at(u.view(b), cell, c) = valueOf(number, cell, c);
                    }
                });
            }
            const CellRows<real> rows = cellRows(dense);
            std::vector<real> expected(2);
            std::vector<real> squares;
            const std::span<const real> values(rows.values.data(), rows.ids.size() * 2);
            exactSums(world(), values, expected);
            EXPECT_TRUE(sameBits(sums(u), expected)) << sums(u)[0] << " " << expected[0];
            for (const real value : values)
                squares.push_back(value * value);
            exactSums(world(), squares, expected);
            EXPECT_EQ(norms2(u)[1], std::sqrt(expected[1]));
            Extrema own;
            for (std::size_t i = 0; i < values.size(); i += 2) {
                own.least = std::min(own.least, values[i]);
                own.largest = std::max(own.largest, values[i]);
            }
            EXPECT_EQ(extrema(u)[0].least, world().allReduce(own.least, MPI_MIN));
            EXPECT_EQ(extrema(u)[0].largest, world().allReduce(own.largest, MPI_MAX));
        }
}

TEST(SparseReductions, TellOfNan) {
    const SparseGrid grid = sparseGrids().front();
    SparseField<real> u("u", SparsePattern::make(world(), grid.on(world()), grid.ghosts), {}, 2.0);
    EXPECT_EQ(sums(u)[0], 80);
    EXPECT_EQ(extrema(u)[0].least, 2);
    if (const int b = u.pattern()->localOf(3); b >= 0) {
        u.allocate(b);
        u.view(b)(0) = std::numeric_limits<real>::quiet_NaN();
    }
    EXPECT_TRUE(std::isnan(sums(u)[0]));
    EXPECT_TRUE(std::isnan(extrema(u)[0].largest));
}

/// Result of a run on some ranks: sums before and after, and the dropped contents.
struct Dropped {
    std::vector<real> before, after, dropped;
};

/// Blocks with values below and above the threshold; three exchanges free the former.
Dropped freeSome(const SparseGrid &grid, const CommunicatorView &comm, bool weighted) {
    constexpr real background = 0.75;
    SparseField<real> u("u", SparsePattern::make(comm, grid.on(comm), grid.ghosts),
                        {.components = 2, .allocationThreshold = 2, .deallocationThreshold = 1, .deallocationCount = 3},
                        background);
    for (int b = 0; b < u.blocks(); ++b) {
        const auto number = static_cast<std::uint64_t>(u.block(b).block);
        u.allocate(b);
        const auto v = u.view(b);
        for (index n = 0; n < v.size(); ++n) {
            IndexVector cell{};
            for (int d = 0; d < v.dims(); ++d)
                cell[toSize(d)] = v.indexOf(n, d);
            for (rowsize c = 0; c < 2; ++c) // multiples of 1/64, whose sums are exact
                at(v, cell, c) = background + static_cast<real>(drawn(64, {number, toSize(n), toSize(c)})) / 64;
        }
    }
    const DroppedSums<real> all(u, weighted ? [](int, index cell) { return cell == 1 ? 0.5 : 0.0; }
                                            : DroppedSums<real>::Weight());
    Dropped result{sums(u), {}, {}};
    for (int k = 0; k < 3; ++k)
        u.exchangeGhosts();
    result.after = sums(u);
    result.dropped = all.sums();
    EXPECT_TRUE(u.allocatedBlocks().empty());
    return result;
}

TEST(SparseReductions, WhatIsDroppedWithBlocksIsWhatSumsMiss) {
    for (const SparseGrid &grid : sparseGrids()) {
        SCOPED_TRACE(grid.name);
        const Dropped here = freeSome(grid, world(), false);
        for (std::size_t c = 0; c < 2; ++c) {
            EXPECT_EQ(here.before[c] - here.dropped[c], here.after[c]);
            EXPECT_GT(here.dropped[c], 0);
        }
        const Dropped alone = freeSome(grid, CommunicatorView(MPI_COMM_SELF), false);
        EXPECT_TRUE(sameBits(here.dropped, alone.dropped));
        const Dropped weighted = freeSome(grid, world(), true);
        EXPECT_TRUE(sameBits(weighted.dropped, freeSome(grid, CommunicatorView(MPI_COMM_SELF), true).dropped));
        EXPECT_LT(weighted.dropped[0], here.dropped[0]);
    }
}

/// Blocks that the program frees are its own business; a field may go before what counts, and the other way round.
TEST(SparseReductions, DroppedSumsCountExchangesOnly) {
    const SparseGrid grid = sparseGrids().front();
    auto u = std::make_unique<SparseField<real>>(
        "u", SparsePattern::make(world(), grid.on(world()), grid.ghosts),
        SparseFieldOptions{.allocationThreshold = 2, .deallocationThreshold = 1, .deallocationCount = 1});
    const auto fill = [&] {
        for (int b = 0; b < u->blocks(); ++b) {
            u->allocate(b);
            u->view(b)(0) = 0.5;
        }
    };
    const auto count = [&](SparseField<real> &field) { return DroppedSums<real>(field); };
    const DroppedSums<real> all = count(*u);
    fill();
    for (int b = 0; b < u->blocks(); ++b)
        u->free(b);
    EXPECT_EQ(all.sums(), std::vector<real>{0});
    fill();
    u->exchangeGhosts();
    const auto blocks = static_cast<real>(u->grid()->blocks().size());
    EXPECT_EQ(all.sums(), std::vector<real>{0.5 * blocks});
    {
        const DroppedSums<real> later(*u);
        fill();
        u->exchangeGhosts();
        EXPECT_EQ(later.sums(), std::vector<real>{0.5 * blocks});
        EXPECT_EQ(all.sums(), std::vector<real>{0.5 * blocks}) << "the last one counts";
    }
    fill();
    u->exchangeGhosts();
    world().barrier();
    u.reset();
    EXPECT_EQ(all.sums(), std::vector<real>{0.5 * blocks});
}

/// On one rank, whose failure ends the exchange there and stops the others.
TEST(SparseReductions, WhatAWeightThrowsReachesTheProgram) {
    SparseField<real> u("u", SparsePattern::make(world(), sparseGrids().front().on(world()), {}),
                        {.allocationThreshold = 2, .deallocationThreshold = 1, .deallocationCount = 1});
    for (int b = 0; b < u.blocks(); ++b) {
        u.allocate(b);
        u.view(b)(0) = 0.5;
    }
    const bool fails = world().rank() == 0 && u.blocks() > 0;
    const DroppedSums<real> sums(
        u, [&](int, index) -> real { return fails ? throw std::out_of_range("no volume of this cell") : 1; });
    try {
        u.exchangeGhosts();
        EXPECT_FALSE(fails);
    } catch (const std::out_of_range &) {
        EXPECT_TRUE(fails);
        EXPECT_FALSE(u.allocatedBlocks().empty()) << "the block is not freed";
    } catch (const RevokedError &) { // stopped by rank 0
        EXPECT_FALSE(fails);
    }
    recoverTogether(world());
}

} // namespace
} // namespace DNDS::test
