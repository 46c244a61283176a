#include "DNDS/Blocks/BlockTasks.hpp"

#include "DNDS/Base/ExactAccumulator.hpp"
#include "DNDS/Device/Stream.hpp"

#include "../Mpi/ThrowsOnAll.hpp"
#include "BlockCase.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace DNDS {
namespace {

using test::expectContains;
using test::messageOnAll;

constexpr index rows = 13, columns = 10;

real start(index i, index j) { return static_cast<real>((7 * i + 3 * j) % 11); }

/// A cell from itself and its neighbours, of which those at a corner count differently.
template <class Read>
DNDS_HOST_DEVICE real mixed(const Read &read) {
    return 0.5 * read(0, 0) + 0.125 * read(-1, 0) + 0.25 * read(1, 0) - 0.0625 * read(0, -1) + 0.03125 * read(0, 1) +
           0.015625 * read(1, 1);
}

struct Mix {
    DNDS_HOST_DEVICE void operator()(const BlockCell &c, const BlockView<const real> &old,
                                     const BlockView<real> &now) const {
        now(c[0], c[1]) = mixed([&](index i, index j) { return old(c[0] + i, c[1] + j); });
    }
};

/// Sums up two fields, cell by cell.
struct Accumulate {
    DNDS_HOST_DEVICE void operator()(const BlockCell &c, const BlockView<const real> &u,
                                     const BlockView<real> &sum) const {
        sum(c[0], c[1]) += u(c[0], c[1]);
    }
};

/// All cells of all ranks; periodic along columns, walls of zero along rows.
struct Dense {
    std::vector<real> values = std::vector<real>(rows * columns);

    real &at(index i, index j) { return values[toSize(i * columns + (j + columns) % columns)]; }
    void mix() {
        Dense now;
        for (index i = 0; i < rows; ++i)
            for (index j = 0; j < columns; ++j)
                now.at(i, j) =
                    mixed([&](index a, index b) { return i + a < 0 || i + a >= rows ? 0.0 : at(i + a, j + b); });
        values = now.values;
    }
};

struct World {
    CommunicatorView comm{MPI_COMM_WORLD};
    BlockField<real> u, v, sum;

    explicit World(bool many) {
        const IndexSpace space{"box", Box({0, 0}, {rows, columns}), {false, true}};
        const auto grid = many ? BlockGrid::blocksOf(comm, space, {4, 3}) : BlockGrid::cut(comm, space);
        const auto pattern = BlockPattern::make(comm, grid, {1, 1});
        u = BlockField<real>("u", comm, pattern);
        v = BlockField<real>("v", comm, pattern);
        sum = BlockField<real>("sum", comm, pattern);
        for (int b = 0; b < u.blocks(); ++b) {
            const auto view = u.view(b);
            for (index i = 0; i < view.extent(0); ++i)
                for (index j = 0; j < view.extent(1); ++j)
                    view(i, j) = start(view.global(i, 0), view.global(j, 1));
        }
    }

    void expect(Dense &all, BlockField<real> &field, const std::string &what) const {
        field.toHost();
        for (int b = 0; b < field.blocks(); ++b) {
            const auto view = std::as_const(field).view(b);
            for (index i = 0; i < view.extent(0); ++i)
                for (index j = 0; j < view.extent(1); ++j)
                    ASSERT_EQ(view(i, j), all.at(view.global(i, 0), view.global(j, 1)))
                        << what << ", cell " << i << " " << j;
        }
    }
};

void runAsDense(const Executor &executor) {
    for (const bool many : {false, true}) {
        World world(many);
        Dense all, sum;
        for (index i = 0; i < rows; ++i)
            for (index j = 0; j < columns; ++j)
                all.at(i, j) = start(i, j);
        const BlockRows cells("cells", world.u.blockPattern());
        Task::Graph graph("mix", world.comm);
        graph.task("mix", cells.cells()).reads(stencil(world.u, {1, 1})).writes(world.v).run(Mix{});
        graph.task("mix back", cells.cells()).reads(stencil(world.v, {1, 1})).writes(world.u).run(Mix{});
        graph.task("sum", cells.cells()).reads(world.u).readsWrites(world.sum).run(Accumulate{});
        graph.swap(world.u, world.v);
        Task::Plan plan = graph.compile(executor);
        for (int run = 0; run < 4; ++run) {
            plan.run();
            Dense other = all; // u and v change places
            all.mix();
            other = all;
            all.mix();
            for (std::size_t k = 0; k < all.values.size(); ++k)
                sum.values[k] += all.values[k];
            std::swap(all, other);
            const std::string what =
                fmt::format("{} run {}\n{}", many ? "many blocks," : "a block a rank,", run, plan.describe());
            world.expect(all, world.u, "u, " + what);
            world.expect(other, world.v, "v, " + what);
            world.expect(sum, world.sum, "sum, " + what);
            if (testing::Test::HasFatalFailure())
                return;
        }
    }
}

TEST(BlockTasks, AreAsOnOneArray) { runAsDense(Executor::host()); }

/// A cell from its neighbours across faces.
struct MixFaces {
    DNDS_HOST_DEVICE void operator()(const BlockCell &c, const BlockView<const real> &old,
                                     const BlockView<real> &now) const {
        const index i = c[0], j = c[1];
        now(i, j) = 0.5 * old(i, j) + 0.125 * old(i - 1, j) + 0.25 * old(i + 1, j) - 0.0625 * old(i, j - 1) +
                    0.03125 * old(i, j + 1);
    }
};

TEST(BlockTasks, StarsAreAsBoxesForStencilsWithoutCorners) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const GhostWidths box{1, 1};
    const auto grid = BlockGrid::blocksOf(comm, {"box", Box({0, 0}, {rows, columns}), {false, true}}, {4, 3});
    const auto mixed = [&](const GhostWidths &ghosts, const GhostWidths &reads) {
        const auto pattern = BlockPattern::make(comm, grid, ghosts);
        BlockField<real> u("u", comm, pattern), v("v", comm, pattern);
        BlockBoundary walls(u);
        walls.nearest(lowFace(0));
        walls.constant(highFace(0), 7);
        for (int b = 0; b < u.blocks(); ++b)
            test::forEachIn(u.block(b), u.block(b).cells, [&](const IndexVector &at, const IndexVector &cell) {
                u.view(b)(at[0], at[1]) = start(cell[0], cell[1]);
            });
        const BlockRows cells("cells", pattern);
        Task::Graph graph("mix", comm);
        graph.task("mix", cells.cells()).reads(stencil(graph, u, reads, walls)).writes(v).run(MixFaces{});
        graph.task("mix back", cells.cells()).reads(stencil(graph, v, reads, walls)).writes(u).run(MixFaces{});
        Task::Plan plan = graph.compile(Executor::host());
        plan.run();
        plan.run();
        std::vector<real> values;
        for (int b = 0; b < u.blocks(); ++b)
            test::forEachIn(u.block(b), u.block(b).cells, [&](const IndexVector &at, const IndexVector &) {
                values.push_back(std::as_const(u).view(b)(at[0], at[1]));
            });
        return values;
    };
    const std::vector<real> all = mixed(box, box);
    EXPECT_EQ(mixed(box, box.star()), all);
    EXPECT_EQ(mixed(box.star(), box.star()), all);
    BlockField<real> u("u", comm, grid, {.ghosts = box.star()});
    EXPECT_NO_THROW((void)stencil(u, {1, 0}));
    expectContains(messageOnAll<ArgumentError>([&] { (void)stencil(u, box); }),
                   "needs ghosts there, which a star lacks");
}

TEST(BlockTasks, InThreads) { runAsDense(Executor::hostThreads(3)); }

TEST(BlockTasksOnDevice, AreAsOnOneArray) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const Device::Stream stream;
    runAsDense(Executor::device(stream));
}

/// Sets `u` to what its cells deposit into themselves and two neighbours; nothing beyond the walls.
void depositInto(const Task::BlockViews<real> &all) {
    for (int b = 0; b < all.blocks(); ++b) {
        const auto u = all.view(b);
        for (index i = -1; i <= u.extent(0); ++i)
            for (index j = -1; j <= u.extent(1); ++j)
                u(i, j) = 0;
        for (index i = 0; i < u.extent(0); ++i)
            for (index j = 0; j < u.extent(1); ++j) {
                const real part = start(u.global(i, 0), u.global(j, 1));
                u(i, j) += part;
                u(i, j - 1) += 2 * part;
                if (u.global(i, 0) + 1 < rows)
                    u(i + 1, j + 1) += 4 * part;
            }
    }
}

void runDeposits(const Executor &executor) {
    for (const bool many : {false, true}) {
        World world(many);
        const BlockRows cells("cells", world.u.blockPattern());
        Task::Graph graph("deposits", world.comm);
        graph.call("deposit").readsWrites(Task::owned(world.u)).run(depositInto);
        if (many) {
            pushGhosts(graph, world.u);
        } else {
            startPushGhosts(graph, world.u);
            graph.task("beside", cells.cells()).reads(world.u).readsWrites(world.sum).run(Accumulate{});
            finishPushGhosts(graph, world.u);
        }
        graph.task("mix", cells.cells()).reads(stencil(world.u, {1, 1})).writes(world.v).run(Mix{});
        Task::Plan plan = graph.compile(executor);
        Dense deposited;
        for (index i = 0; i < rows; ++i)
            for (index j = 0; j < columns; ++j) {
                deposited.at(i, j) += start(i, j);
                deposited.at(i, j - 1) += 2 * start(i, j);
                if (i + 1 < rows)
                    deposited.at(i + 1, j + 1) += 4 * start(i, j);
            }
        Dense mixed = deposited;
        mixed.mix();
        for (int run = 0; run < 3; ++run) {
            plan.run();
            world.expect(deposited, world.u, "deposits\n" + plan.describe());
            world.expect(mixed, world.v, "mixed\n" + plan.describe());
        }
    }
}

TEST(BlockTasks, NothingPullsOrWritesWhileGhostsArePushed) {
    World world(false);
    const BlockRows cells("cells", world.u.blockPattern());
    for (const bool writes : {false, true}) {
        Task::Graph graph("deposits", world.comm);
        startPushGhosts(graph, world.u);
        if (writes)
            graph.task("between", cells.cells()).reads(world.v).readsWrites(world.u).run(Accumulate{});
        else
            graph.task("between", cells.cells()).reads(stencil(world.u, {1, 1})).writes(world.v).run(Mix{});
        expectContains(messageOnAll<ArgumentError>([&] { finishPushGhosts(graph, world.u); }),
                       "task 'between' writes 'u' or reads its ghosts");
    }
}

TEST(BlockTasks, PushDeposits) { runDeposits(Executor::host()); }

TEST(BlockTasks, PushDepositsInThreads) { runDeposits(Executor::hostThreads(3)); }

TEST(BlockTasksOnDevice, PushDeposits) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const Device::Stream stream;
    runDeposits(Executor::device(stream));
}

struct Grow {
    DNDS_HOST_DEVICE void operator()(const BlockCell &c, const BlockView<real> &u) const {
        for (rowsize k = 0; k < 2; ++k)
            u(c[0], c[1], k) *= 1.5;
    }
};

real uneven(index i, index j, rowsize k) { return std::sin(static_cast<real>(13 * i + 5 * j + 2 * k)) * 1e3; }

void reduceComponents(const Executor &executor, ComponentOrder order) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const auto grid = BlockGrid::blocksOf(comm, {"box", Box({0, 0}, {rows, columns}), {false, true}}, {4, 3});
    BlockField<real> u("u", comm, grid, {.ghosts = {1, 1}, .components = 2, .order = order});
    for (int b = 0; b < u.blocks(); ++b) {
        const auto view = u.view(b);
        for (index i = -1; i <= view.extent(0); ++i) // ghosts do not count
            for (index j = -1; j <= view.extent(1); ++j)
                for (rowsize k = 0; k < 2; ++k)
                    view(i, j, k) = uneven(view.global(i, 0), view.global(j, 1), k);
    }
    const BlockRows cells("cells", u.blockPattern());
    Task::Graph graph("grow", comm);
    graph.task("grow", cells.cells()).readsWrites(u).run(Grow{});
    const Task::Reduction sum = graph.reduce("sum", ReduceOp::Sum, u);
    const Task::Reduction most = graph.reduce("most", ReduceOp::Max, u);
    const Task::Reduction inner = graph.reduce("inner", ReduceOp::Sum, rowsOf(u, cells.region("inner")));
    const Task::Reduction rim = graph.reduce("rim", ReduceOp::Sum, rowsOf(u, cells.region("rim")));
    Task::Plan plan = graph.compile(executor);
    expectContains(plan.describe(), "ends with 'rim': the sum of 'u' in 'rim cells' over all ranks");
    plan.run();
    plan.run();
    for (rowsize k = 0; k < 2; ++k) {
        WideExactAccumulator all;
        real largest = -1e9;
        for (index i = 0; i < rows; ++i)
            for (index j = 0; j < columns; ++j) {
                all += uneven(i, j, k) * 1.5 * 1.5;
                largest = std::max(largest, uneven(i, j, k) * 1.5 * 1.5);
            }
        EXPECT_EQ(plan.result(sum)[toSize(k)], all.value());
        EXPECT_EQ(plan.result(most)[toSize(k)], largest);
        EXPECT_NEAR(plan.result(inner)[toSize(k)] + plan.result(rim)[toSize(k)], all.value(), 1e-9);
        EXPECT_NE(plan.result(rim)[toSize(k)], 0);
    }
}

TEST(BlockTasks, ReduceComponentsOfCells) {
    reduceComponents(Executor::host(), ComponentOrder::Inside);
    reduceComponents(Executor::host(), ComponentOrder::Outside);
}

TEST(BlockTasksOnDevice, ReduceComponentsOfCells) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const Device::Stream stream;
    reduceComponents(Executor::device(stream), ComponentOrder::Inside);
    reduceComponents(Executor::device(stream), ComponentOrder::Outside);
}

TEST(BlockTasks, GhostsThatAreCurrentAreNotExchanged) {
    World world(true);
    const BlockRows cells("cells", world.u.blockPattern());
    Task::Graph graph("read", world.comm);
    graph.task("mix", cells.cells()).reads(stencil(world.u, {1, 1})).writes(world.v).run(Mix{});
    Task::Plan plan = graph.compile();
    for (int run = 0; run < 3; ++run)
        plan.run();
    EXPECT_EQ(plan.statistics().transfers, 1);
    EXPECT_EQ(plan.statistics().dropped, 2);
    for (int b = 0; b < world.u.blocks(); ++b)
        static_cast<void>(world.u.view(b)); // may write
    world.u.array().markWritten();          // on ranks without blocks, too
    plan.run();
    EXPECT_EQ(plan.statistics().transfers, 2);
}

TEST(BlockTasks, CellsThatReadNoGhostsDoNotWaitForThem) {
    World world(false);
    const BlockRows cells("cells", world.u.blockPattern());
    Task::Graph graph("read", world.comm);
    graph.task("mix", cells.cells()).reads(stencil(world.u, {1, 1})).writes(world.v).run(Mix{});
    graph.task("cell by cell", cells.cells()).reads(world.v).readsWrites(world.sum).run(Accumulate{});
    Task::Plan plan = graph.compile();
    index early = 0, late = 0, inner = 0, all = 0;
    for (const Task::Part &part : plan.model().parts)
        if (part.task == 0)
            (part.late ? late : early) += part.rows.count;
    cells.region("inner").rows()->forEach([&](index) { ++inner; });
    cells.cells().rows()->forEach([&](index) { ++all; });
    EXPECT_EQ(early + late, all);
    EXPECT_GE(early, inner); // cells at walls wait for no ghosts, either
    EXPECT_EQ(late > 0, world.u.blocks() > 0) << plan.describe();
}

/// Fields on one grid may have as many rows, but other ones.
TEST(BlockTasks, ReductionsAreOverTheRowsOfTheField) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const auto grid = BlockGrid::blocksOf(comm, {"box", Box({0, 0}, {8, 8}), {true, true}}, {4, 4});
    const BlockField<real> low("low", comm, grid, {.ghosts = GhostWidths::of({1, 1}, {0, 0})});
    BlockField<real> high("high", comm, grid, {.ghosts = GhostWidths::of({0, 0}, {1, 1})});
    const BlockRows cells("cells", low.blockPattern());
    Task::Graph graph("sum", comm);
    expectContains(
        messageOnAll<ArgumentError>([&] { graph.reduce("sum", ReduceOp::Sum, rowsOf(high, cells.region("inner"))); }),
        "other ghosts or points");
}

TEST(BlockTasks, CallsGetTheBlocks) {
    World world(true);
    index seen = 0;
    Task::Graph graph("call", world.comm);
    graph.call("count").reads(world.u).run([&](const Task::BlockViews<const real> &u) {
        for (int b = 0; b < u.blocks(); ++b)
            seen += u.view(b).size();
    });
    real copied = 0, own = 0;
    graph.task("cell by cell", BlockRows("cells", world.u.blockPattern()).cells())
        .reads(world.u)
        .readsWrites(world.sum)
        .run(Accumulate{});
    const auto firstCell = [](const auto &blocks) { return blocks.blocks() > 0 ? blocks.view(0)(0, 0) : 0.0; };
    graph.asyncCall("copy").reads(world.sum).run(
        [&](const Task::BlockViews<const real> &sum) { copied = firstCell(sum); });
    Task::Plan plan = graph.compile();
    for (int run = 0; run < 3; ++run)
        plan.run();
    plan.finish();
    own = world.sum.blocks() > 0 ? std::as_const(world.sum).view(0)(0, 0) : 0.0;
    EXPECT_EQ(copied, own);
    EXPECT_EQ(world.comm.allReduce(seen, MPI_SUM), 3 * rows * columns);
}

TEST(BlockTasks, StencilsWiderThanGhosts) {
    World world(false);
    expectContains(messageOnAll<ArgumentError>([&] { (void)stencil(world.u, {2, 1}); }), "needs as many ghosts");
    const BlockRows cells("cells", world.u.blockPattern());
    expectContains(messageOnAll<ArgumentError>([&] { (void)cells.region("outer"); }), "cells, inner and rim");
}

} // namespace
} // namespace DNDS
