#include "DNDS/Sparse/SparseField.hpp"

#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "DNDS/Sparse/SparseCase.hpp"
#include "support/ScopedVariable.hpp"
#include "support/World.hpp"

#include <algorithm>
#include <map>

namespace DNDS::test {
namespace {

/// A sparse field at threshold 0 and dense ones that hold the same.
template <class T>
struct Twins {
    const SparseGrid &grid;
    T background;
    std::shared_ptr<const BlockGrid> blocks = grid.on(world());
    SparseField<T> sparse;
    BlockField<T> dense;
    BlockField<T> next;

    Twins(const SparseGrid &of, T value, rowsize components)
        : grid(of), background(value), sparse("sparse", SparsePattern::make(world(), blocks, grid.ghosts),
                                              {.components = components, .stages = 2, .deallocationCount = 2}, value),
          dense("dense", world(), BlockPattern::make(world(), blocks, grid.ghosts), components),
          next("next", world(), dense.blockPattern(), components) {
        for (int b = 0; b < dense.blocks(); ++b)
            for (auto *field : {&dense, &next})
                std::fill_n(field->array().data() + field->block(b).firstRow * components,
                            field->block(b).rows * components, value);
    }
    /// Something or nothing in some blocks.
    void disturb(std::uint64_t round) {
        for (int b = 0; b < sparse.blocks(); ++b) {
            const auto number = static_cast<std::uint64_t>(sparse.block(b).block);
            const std::uint64_t draw = drawn(8, {number, round});
            if (draw > 1)
                continue;
            const auto cells = sparse.block(b).cells;
            if (draw == 0) {
                sparse.free(b);
                (void)sparse.allocate(b);
            } else {
                sparse.free(b);
            }
            fill(b, cells, draw == 0, number, round);
        }
    }
    void fill(int b, const Box &cells, bool something, std::uint64_t number, std::uint64_t round) {
        const auto u = dense.view(b);
        forEachCell(cells.shift(negative(cells.lower)), [&](const IndexVector &cell) {
            for (rowsize c = 0; c < u.components(); ++c) {
                const bool here = something && drawn(5, {number, round, static_cast<std::uint64_t>(cell[0])}) == 0;
                at(u, cell, c) = here ? static_cast<T>(background + static_cast<T>(1 + c)) : background;
                if (something)
                    at(sparse.view(b), cell, c) = at(u, cell, c);
            }
        });
    }
    static IndexVector negative(IndexVector v) {
        for (index &i : v)
            i = -i;
        return v;
    }
    void expectEqual() const {
        for (int b = 0; b < sparse.blocks(); ++b) {
            const auto whole = elementsOf(dense.view(b));
            if (sparse.isAllocated(b)) {
                EXPECT_TRUE(sameBits(elementsOf(sparse.view(b)), whole)) << "block " << sparse.block(b).block;
            } else {
                EXPECT_TRUE(sameBits(std::vector<T>(whole.size(), background), whole))
                    << "block " << sparse.block(b).block << " is absent, but something should be there";
            }
        }
    }
    void step() {
        for (int b = 0; b < dense.blocks(); ++b)
            diffuse(std::as_const(dense).view(b), next.view(b), background, grid.ghosts);
        dense.swapData(next);
        for (const int b : sparse.allocatedBlocks())
            diffuse(std::as_const(sparse).view(b), sparse.view(b, 1), background, grid.ghosts);
        sparse.swapStages(0, 1);
    }
};

template <class T>
void expectTwinsAgree(T background, rowsize components) {
    for (const SparseGrid &grid : sparseGrids()) {
        SCOPED_TRACE(grid.name);
        Twins<T> twins(grid, background, components);
        for (std::uint64_t round = 0; round < 6; ++round) {
            SCOPED_TRACE(round);
            twins.disturb(round);
            twins.dense.exchangeGhosts();
            twins.sparse.exchangeGhosts();
            twins.expectEqual();
            if constexpr (std::is_floating_point_v<T>)
                twins.step();
        }
    }
}

TEST(SparseField, IsTheDenseFieldAtThreshold0) {
    expectTwinsAgree<real>(0, 1);
    expectTwinsAgree<real>(0.1, 3);
    expectTwinsAgree<float>(-2.5F, 2);
    expectTwinsAgree<std::int8_t>(7, 3);
}

/// Result of a run on some ranks: by block number, whether it is allocated, its counter, and its bits.
struct Outcome {
    std::map<int, std::pair<int, std::vector<real>>> blocks;
    std::vector<int> there; ///< [blocks of the grid], after each step
};

/// Some species of different thresholds that are stirred; all are in one exchange.
std::vector<Outcome> stir(const SparseGrid &grid, const CommunicatorView &comm, int steps, int order) {
    const auto blocks = grid.on(comm);
    const auto pattern = SparsePattern::make(comm, blocks, grid.ghosts);
    std::vector<SparseField<real>> species;
    species.emplace_back(
        "dust", pattern,
        SparseFieldOptions{
            .stages = 2, .allocationThreshold = 1e-2, .deallocationThreshold = 1e-3, .deallocationCount = 3});
    species.emplace_back("ice", pattern,
                         SparseFieldOptions{.components = 2,
                                            .stages = 2,
                                            .allocationThreshold = 1e-4,
                                            .deallocationThreshold = 1e-4,
                                            .deallocationCount = 1,
                                            .sendBelowThreshold = false},
                         0.5);
    SparseFields exchange("species", {&species[0], &species[1]});
    std::vector<Outcome> outcomes(species.size());
    for (auto &field : species)
        for (int b = 0; b < field.blocks(); ++b)
            if (const int number = field.block(b).block; drawn(6, {static_cast<std::uint64_t>(number)}) == 0) {
                field.allocate(b);
                at(field.view(b), {}, 0) += 1;
            }
    for (int step = 0; step < steps; ++step) {
        if (order == 0) {
            exchange.exchangeGhosts();
        } else if (order == 1) {
            exchange.sendBoundBufs(BoundaryType::NonLocal);
            exchange.sendBoundBufs(BoundaryType::Local);
            EXPECT_TRUE(exchange.receiveBoundBufs(BoundaryType::Local));
            exchange.setBounds(BoundaryType::Local);
            while (!exchange.receiveBoundBufs(BoundaryType::NonLocal)) {
            }
            exchange.setBounds(BoundaryType::NonLocal);
        } else {
            exchange.sendBoundBufs(BoundaryType::Local);
            exchange.sendBoundBufs(BoundaryType::NonLocal);
            while (!exchange.receiveBoundBufs()) {
            }
            exchange.setBounds(BoundaryType::NonLocal);
            EXPECT_TRUE(exchange.inFlight());
            exchange.setBounds(BoundaryType::Local);
        }
        EXPECT_FALSE(exchange.inFlight());
        for (std::size_t f = 0; f < species.size(); ++f) {
            std::vector<int> there(blocks->blocks().size());
            for (const int b : species[f].allocatedBlocks()) {
                there[toSize(species[f].block(b).block)] = 1 + species[f].emptyExchanges(b);
                diffuse(std::as_const(species[f]).view(b), species[f].view(b, 1), species[f].defaultValue(),
                        grid.ghosts);
            }
            comm.allReduce(there.data(), static_cast<int>(there.size()), MPI_SUM);
            outcomes[f].there.insert(outcomes[f].there.end(), there.begin(), there.end());
            species[f].swapStages(0, 1);
        }
    }
    for (std::size_t f = 0; f < species.size(); ++f)
        for (const int b : species[f].allocatedBlocks())
            outcomes[f].blocks[species[f].block(b).block] = {species[f].emptyExchanges(b),
                                                             elementsOf(std::as_const(species[f]).view(b))};
    return outcomes;
}

TEST(SparseField, DoesNotDependOnRanksNorOnTheOrderOfSteps) {
    for (const SparseGrid &grid : sparseGrids()) {
        SCOPED_TRACE(grid.name);
        constexpr int steps = 12;
        const auto alone = stir(grid, {MPI_COMM_SELF}, steps, 0);
        for (int order = 0; order < 3; ++order) {
            SCOPED_TRACE(order);
            const auto together = stir(grid, world(), steps, order);
            for (std::size_t f = 0; f < alone.size(); ++f) {
                EXPECT_EQ(together[f].there, alone[f].there) << "other blocks came or went";
                for (const auto &[number, block] : together[f].blocks) {
                    ASSERT_TRUE(alone[f].blocks.contains(number));
                    const auto &reference = alone[f].blocks.at(number);
                    EXPECT_EQ(block.first, reference.first);
                    EXPECT_TRUE(sameBits(block.second, reference.second)) << "block " << number;
                }
            }
        }
    }
}

TEST(SparseField, AnExchangeBeginsWithItsFirstSend) {
    for (const SparseGrid &grid : sparseGrids()) {
        SCOPED_TRACE(grid.name);
        Twins<real> twins(grid, 0.5, 2);
        SparseFields &exchange = twins.sparse.exchange();
        for (std::uint64_t round = 0; round < 4; ++round) {
            SCOPED_TRACE(round);
            EXPECT_FALSE(exchange.inFlight());
            if (round > 0)
                twins.step();     // swaps
            twins.disturb(round); // allocates and frees
            exchange.sendBoundBufs(round % 2 == 0 ? BoundaryType::Any : BoundaryType::Local);
            EXPECT_TRUE(exchange.inFlight());
            EXPECT_THROW(twins.sparse.swapStages(0, 1), StateError);
            if (round % 2 == 1)
                exchange.sendBoundBufs(BoundaryType::NonLocal);
            exchange.finishExchangeGhosts();
            twins.dense.exchangeGhosts();
            twins.expectEqual();
        }
    }
}

const SparseGrid line{"line", {{"line", Box({0}, {64}), {true}}}, {4}, {1}};

TEST(SparseField, BlocksComeAheadAndGoBehind) {
    const auto pattern = SparsePattern::make(world(), line.on(world()), line.ghosts);
    SparseField<real> u("u", pattern,
                        {.allocationThreshold = 0.5, .deallocationThreshold = 0.1, .deallocationCount = 2});
    const auto has = [&](int number) {
        const int b = pattern->localOf(number);
        return world().allReduce(b >= 0 && u.isAllocated(b) ? 1 : 0, MPI_MAX) == 1;
    };
    const auto put = [&](int number, index cell, real value) {
        if (const int b = pattern->localOf(number); b >= 0)
            u.view(b)(cell) = value;
    };
    if (const int b = pattern->localOf(3); b >= 0) {
        EXPECT_TRUE(u.allocate(b));
    }
    put(3, 1, 2);
    put(3, 3, 0.4); // below the threshold
    u.exchangeGhosts();
    EXPECT_FALSE(has(4)) << "0.4 is below the threshold";
    put(3, 3, 0.6);
    u.exchangeGhosts();
    EXPECT_TRUE(has(4));
    EXPECT_FALSE(has(2));
    if (const int b = pattern->localOf(4); b >= 0) {
        EXPECT_EQ(u.view(b)(-1), 0.6);
        EXPECT_EQ(u.view(b)(0), 0);
    }
    put(3, 1, 0);
    put(3, 3, 0.05);
    u.exchangeGhosts(); // block 3 is empty; so is block 4, whose ghost is now 0.05
    EXPECT_TRUE(has(3) && has(4));
    u.exchangeGhosts();
    EXPECT_FALSE(has(3) || has(4));
}

TEST(SparseField, NanIsSomething) {
    const auto pattern = SparsePattern::make(world(), line.on(world()), line.ghosts);
    SparseField<real> u("u", pattern, {.allocationThreshold = 10, .deallocationThreshold = 10, .deallocationCount = 1});
    SparseField<real> v("v", pattern, {.deallocationCount = 1});
    for (auto *field : {&u, &v})
        if (const int b = pattern->localOf(5); b >= 0)
            field->allocate(b);
    if (const int b = pattern->localOf(5); b >= 0) {
        u.view(b)(0) = std::numeric_limits<real>::quiet_NaN();
        v.view(b)(3) = -0.0; // other bits than 0
    }
    SparseFields exchange("both", {&u, &v});
    exchange.exchangeGhosts();
    const auto here = [](const auto &field, int b) { return b < 0 || field.isAllocated(b); };
    EXPECT_TRUE(here(u, pattern->localOf(4)) && here(u, pattern->localOf(5)));
    EXPECT_TRUE(here(v, pattern->localOf(6)) && here(v, pattern->localOf(5)));
    EXPECT_FALSE(pattern->localOf(6) >= 0 && u.isAllocated(pattern->localOf(6)));
}

TEST(SparseField, AbsentBlocksCostABit) {
    const SparseGrid many{"many", {{"many", Box({0, 0}, {128, 128}), {true, true}}}, {2, 2}, {1, 1}};
    const auto pattern = SparsePattern::make(world(), many.on(world()), many.ghosts);
    SparseField<real> u("u", pattern);
    for (int k = 0; k < 3; ++k)
        u.exchangeGhosts();
    const SparseTraffic traffic = u.exchange().traffic();
    EXPECT_EQ(traffic.exchanges, 3U);
    EXPECT_EQ(traffic.messages, 3 * pattern->peers().size()) << "one a peer and exchange";
    std::size_t most = 0;
    for (const PeerChannels &peer : pattern->peers())
        most += 3 * (32 + (peer.given.size() + 63) / 64 * 8);
    EXPECT_EQ(traffic.bytes, most);
    EXPECT_EQ(u.memoryBytes(), 0U);
}

TEST(SparseField, RimsBelowTheThresholdAreWithheldOnRequest) {
    for (const bool sends : {true, false}) {
        SCOPED_TRACE(sends);
        const auto pattern = SparsePattern::make(world(), line.on(world()), line.ghosts);
        SparseField<real> u("u", pattern,
                            {.allocationThreshold = 1, .deallocationCount = 0, .sendBelowThreshold = sends});
        std::size_t given = 0;
        for (const PeerChannels &peer : pattern->peers())
            given += peer.given.size();
        for (int b = 0; b < u.blocks(); ++b) {
            u.allocate(b);
            std::fill_n(u.view(b).data(), u.view(b).size(), 0.5);
        }
        u.exchangeGhosts();
        EXPECT_EQ(u.exchange().traffic().rims, sends ? given : 0);
        EXPECT_EQ(u.exchange().traffic().withheld, sends ? 0 : given);
    }
}

TEST(SparseField, MessageBuffersShrinkWithTheMessages) {
    for (const char *transport : {"auto", "packed"}) {
        SCOPED_TRACE(transport);
        const auto pattern = SparsePattern::make(world(), line.on(world()), line.ghosts);
        SparseField<real> u("u", pattern, {.components = 10'000, .deallocationCount = 0});
        {
            const ScopedVariable carrier("DNDS_TRANSPORT", transport);
            u.exchange();
        }
        for (int b = 0; b < u.blocks(); ++b)
            u.allocate(b);
        for (int k = 0; k < 3; ++k)
            u.exchangeGhosts();
        const std::size_t peers = pattern->peers().size();
        EXPECT_GE(u.exchange().traffic().bufferBytes, peers * 2 * 80'000);
        for (int b = 0; b < u.blocks(); ++b)
            u.free(b);
        for (int k = 0; k < 2; ++k) // two buffers a peer
            u.exchangeGhosts();
        EXPECT_LE(u.exchange().traffic().bufferBytes, peers * 3 * 4096);
        pattern->pool().trim();
        EXPECT_EQ(pattern->pool().use().pooled, 0U);
    }
}

/// Parthenon's controlling variables: one field decides where another one, of another type, is allocated.
TEST(SparseField, OneFieldMayFollowAnotherOne) {
    for (const SparseGrid &grid : sparseGrids()) {
        SCOPED_TRACE(grid.name);
        const auto pattern = SparsePattern::make(world(), grid.on(world()), grid.ghosts);
        SparseField<real> dust("dust", pattern, {.stages = 2, .deallocationCount = 2});
        SparseField<std::int32_t> size("size", pattern, {.allocationThreshold = 1000, .deallocationCount = 0});
        SparseFields both("both", {&dust, &size});
        for (int b = 0; b < dust.blocks(); ++b)
            if (drawn(4, {static_cast<std::uint64_t>(dust.block(b).block)}) == 0) {
                dust.allocate(b);
                at(dust.view(b), IndexVector{}, 0) = 1;
            }
        for (int step = 0; step < 6; ++step) {
            both.exchangeGhosts();
            for (int b = 0; b < dust.blocks(); ++b) {
                (void)(dust.isAllocated(b) ? size.allocate(b) : size.free(b));
                if (size.isAllocated(b))
                    at(size.view(b), IndexVector{}, 0) = step + 1;
            }
            EXPECT_EQ(size.allocatedBlocks(), dust.allocatedBlocks());
            for (const int b : dust.allocatedBlocks())
                diffuse(std::as_const(dust).view(b), dust.view(b, 1), real{0}, grid.ghosts);
            dust.swapStages(0, 1);
        }
    }
}

} // namespace
} // namespace DNDS::test
