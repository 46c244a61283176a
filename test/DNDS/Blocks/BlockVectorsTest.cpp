// Vector operations on block fields against loops over all elements.

#include "DNDS/Blocks/BlockField.hpp"

#include "DNDS/Blocks/BlockCase.hpp"
#include "DNDS/Blocks/BlockTasks.hpp"
#include "DNDS/Device/Stream.hpp"

#include "../Mpi/ThrowsOnAll.hpp"

#include <cmath>
#include <limits>
#include <random>

namespace DNDS {
namespace {

using test::expectContains;
using test::messageOnAll;

real uneven(const IndexVector &cell, rowsize c, int salt) {
    return std::sin(static_cast<real>(test::contents<index>({0, cell}, c, salt) % 100000)) * 1e3;
}

/// Two fields on a random grid.
struct RandomPair {
    CommunicatorView comm{MPI_COMM_WORLD};
    BlockField<real> u, v;

    RandomPair(int round, std::mt19937 &random) {
        const auto below = [&](index n) { return static_cast<index>(random() % static_cast<unsigned>(n)); };
        std::vector<index> shape, blocks, low, high;
        for (int d = 0; d <= round % 4; ++d) {
            const bool isLong = d == round % 4 && d < 2 && round % 3 == 0; // several chunks a line
            shape.push_back(isLong ? 2100 : 1 + below(7));
            blocks.push_back(isLong ? 2100 : 1 + below(5));
            low.push_back(below(3));
            high.push_back(below(3));
        }
        const IndexSpace space{"box", Box::ofShape(shape), {true, false, true, false}};
        const auto grid = round % 2 == 0 ? BlockGrid::blocksOf(comm, space, blocks) : BlockGrid::cut(comm, space);
        const rowsize components = 1 + static_cast<rowsize>(below(3));
        const auto pattern =
            BlockPattern::make(comm, grid, GhostWidths::of(low, high), round % 3 == 0 ? components : 0);
        u = BlockField<real>("u", comm, pattern, components);
        v = BlockField<real>("v", comm, pattern, components);
        for (BlockField<real> *field : {&u, &v})
            for (int b = 0; b < field->blocks(); ++b)
                for (rowsize c = 0; c < components; ++c)
                    test::forEachIn(field->block(b), field->block(b).extent,
                                    [&](const IndexVector &local, const IndexVector &cell) {
                                        test::at(field->view(b), local, c) = uneven(cell, c, field == &u ? 1 : 2);
                                    });
    }
    /// Calls `visit(element of u, element of v, whether it is selected)` for cells and ghosts.
    template <class Visit>
    void forAll(rowsize component, bool ghosts, const Visit &visit) {
        for (int b = 0; b < u.blocks(); ++b)
            for (rowsize c = 0; c < u.components(); ++c)
                test::forEachIn(u.block(b), u.block(b).extent, [&](const IndexVector &local, const IndexVector &cell) {
                    const bool selected =
                        (component < 0 || component == c) && (ghosts || u.block(b).cells.contains(cell));
                    visit(test::at(u.view(b), local, c), test::at(v.view(b), local, c), selected);
                });
    }
    void toDevice(const Executor &on) {
        if (on.onDevice()) {
            u.toDevice();
            v.toDevice();
        }
    }
    void toHost(const Executor &on) {
        on.synchronize();
        u.toHost();
        v.toHost();
    }
};

struct Expected {
    WideExactAccumulator sum, norm1, square, dot;
    real least = std::numeric_limits<real>::infinity();
    real most = -least;
};

Expected expectedOf(RandomPair &pair, rowsize component, bool ghosts) {
    Expected mine;
    pair.forAll(component, ghosts, [&](real u, real v, bool selected) {
        if (!selected)
            return;
        mine.sum += u;
        mine.norm1 += std::abs(u);
        mine.square += u * u;
        mine.dot += u * v;
        mine.least = std::min(mine.least, u);
        mine.most = std::max(mine.most, u);
    });
    Expected all;
    for (const Expected &one : pair.comm.allGatherV(std::span<const Expected>(&mine, 1))) {
        all.sum += one.sum;
        all.norm1 += one.norm1;
        all.square += one.square;
        all.dot += one.dot;
        all.least = std::min(all.least, one.least);
        all.most = std::max(all.most, one.most);
    }
    return all;
}

void expectReductions(RandomPair &pair, const BlockElements &elements) {
    const Expected all = expectedOf(pair, elements.component, elements.ghosts.value_or(false));
    pair.toDevice(elements.on);
    const BlockField<real> &u = pair.u;
    const BlockField<real> &v = pair.v;
    EXPECT_EQ(min(u, elements), all.least);
    EXPECT_EQ(max(u, elements), all.most);
    EXPECT_EQ(normInf(u, elements), std::max(-all.least, all.most));
    if (elements.exact) {
        EXPECT_EQ(sum(u, elements), all.sum.value());
        EXPECT_EQ(norm1(u, elements), all.norm1.value());
        EXPECT_EQ(norm2(u, elements), std::sqrt(all.square.value()));
        EXPECT_EQ(dot(u, v, elements), all.dot.value());
    } else {
        const real near = 1e-13 * all.norm1.value();
        EXPECT_NEAR(sum(u, elements), all.sum.value(), near);
        EXPECT_NEAR(norm1(u, elements), all.norm1.value(), near);
        EXPECT_NEAR(norm2(u, elements), std::sqrt(all.square.value()), near);
        EXPECT_NEAR(dot(u, v, elements), all.dot.value(), 1e3 * near);
    }
    if (elements.on.onDevice()) { // the bits of the host, which is current, too
        BlockElements there = elements;
        there.on = Executor::host();
        EXPECT_EQ(sum(u, elements), sum(u, there));
        EXPECT_EQ(dot(u, v, elements), dot(u, v, there));
    }
    pair.toHost(elements.on);
}

/// Changes `u`, and expects each element to be what `change` makes of it.
template <class Run, class Change>
void expectChange(RandomPair &pair, const BlockElements &elements, const Run &run, const Change &change) {
    std::vector<real> expected;
    pair.forAll(elements.component, elements.ghosts.value_or(true),
                [&](real u, real v, bool selected) { expected.push_back(selected ? change(u, v) : u); });
    pair.toDevice(elements.on);
    run();
    pair.toHost(elements.on);
    std::size_t at = 0;
    index wrong = 0;
    pair.forAll(-1, true, [&](real u, real, bool) { wrong += u != expected[at++] ? 1 : 0; });
    EXPECT_EQ(wrong, 0);
}

void operate(const Executor &on) {
    std::mt19937 random(static_cast<unsigned>(test::seed()));
    for (int round = 0; round < 12; ++round) {
        RandomPair pair(round, random);
        SCOPED_TRACE(fmt::format("round {}, {} components, {}", round, pair.u.components(), pair.u.grid()->describe()));
        for (const std::optional<bool> ghosts : {std::optional<bool>{}, std::optional<bool>{false}, {true}}) {
            BlockElements elements{.component = static_cast<rowsize>(random() % 4) - 1, .ghosts = ghosts, .on = on};
            elements.component = std::min(elements.component, pair.u.components() - 1);
            elements.exact = random() % 2 == 0;
            BlockField<real> &u = pair.u;
            const BlockField<real> &v = pair.v;
            expectReductions(pair, elements);
            expectChange(
                pair, elements, [&] { scale(u, 0.75, elements); }, [](real a, real) { return a * 0.75; });
            expectChange(
                pair, elements, [&] { axpy(u, 0.5, v, elements); }, [](real a, real b) { return a + 0.5 * b; });
            expectReductions(pair, elements);
            expectChange(
                pair, elements, [&] { copy(u, v, elements); }, [](real, real b) { return b; });
            expectChange(
                pair, elements, [&] { setConstant(u, 4, elements); }, [](real, real) { return 4; });
        }
    }
}

TEST(BlockVectors, AreLoopsOverAllElements) { operate(Executor::host()); }

TEST(BlockVectors, InThreads) { operate(Executor::hostThreads(3)); }

TEST(BlockVectorsOnDevice, AreLoopsOverAllElements) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const Device::Stream stream;
    operate(Executor::device(stream));
}

TEST(BlockVectors, ExactSumsAreThoseOfGraphs) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const IndexSpace space{"box", Box({0, 0}, {23, 17}), {}};
    real before = 0;
    for (const index size : {3, 5, 23}) {
        BlockField<real> u("u", comm, BlockGrid::blocksOf(comm, space, {size, size}), {.ghosts = {1, 1}});
        for (int b = 0; b < u.blocks(); ++b)
            test::forEachIn(u.block(b), u.block(b).cells, [&](const IndexVector &local, const IndexVector &cell) {
                test::at(u.view(b), local, 0) = uneven(cell, 0, 3);
            });
        Task::Graph graph("sum", comm);
        const Task::Reduction total = graph.reduce("total", ReduceOp::Sum, u);
        Task::Plan plan = graph.compile();
        plan.run();
        const real exact = sum(u, {.exact = true});
        EXPECT_EQ(exact, plan.result(total)[0]);
        if (before != 0) {
            EXPECT_EQ(exact, before) << "other blocks";
        }
        before = exact;
    }
}

TEST(BlockVectors, NanAndErrorsAreSeenOnAllRanks) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const IndexSpace space{"line", Box({0}, {30}), {}};
    BlockField<real> u("u", comm, BlockGrid::cut(comm, space), {.ghosts = {1}});
    BlockField<real> none("none", comm, BlockGrid::cut(comm, {"nothing", Box({0}, {0}), {}}), {});
    EXPECT_EQ(normInf(none), 0);
    EXPECT_EQ(max(none), -std::numeric_limits<real>::infinity());
    EXPECT_EQ(sum(none, {.exact = true}), 0);
    expectContains(messageOnAll<ArgumentError>([&] { (void)dot(u, none); }), "differ in their grid");
    expectContains(messageOnAll<ArgumentError>([&] { (void)sum(u, {.component = 1}); }), "component 1 of 'u'");
    if (comm.rank() == comm.size() - 1)
        u.view(0)(0) = std::numeric_limits<real>::quiet_NaN();
    for (const bool exact : {false, true}) {
        EXPECT_TRUE(std::isnan(sum(u, {.exact = exact})));
        EXPECT_TRUE(std::isnan(norm2(u, {.exact = exact})));
    }
    EXPECT_TRUE(std::isnan(normInf(u)));
    EXPECT_TRUE(std::isnan(min(u)));
    EXPECT_TRUE(std::isnan(max(u)));
}

} // namespace
} // namespace DNDS
