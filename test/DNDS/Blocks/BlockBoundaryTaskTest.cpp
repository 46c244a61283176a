// Rules beyond walls in task graphs: their time, and their sources; and walls beside connections.

#include "DNDS/Blocks/BlockBoundary.hpp"
#include "DNDS/Blocks/BlockTasks.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <thread>

namespace DNDS {
namespace {

struct BoundaryTime {
    real operator()(const BoundaryGhost &ghost) const { return ghost.time; }
};

TEST(BlockBoundaryTasks, ANewTimeFillsGhostsOfUnchangedFields) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const IndexSpace line{"line", Box({0}, {8}), {}};
    const auto pattern = BlockPattern::make(comm, BlockGrid::cut(comm, line), {1});
    BlockField<real> u("u", comm, pattern), v("v", comm, pattern);
    BlockBoundary walls(u, BoundaryTime{});
    walls.function(lowFace(0));
    walls.function(highFace(0));
    const BlockRows cells("cells", pattern);
    Task::Graph step("step", comm);
    step.task("add", cells.cells())
        .reads(stencil(step, u, {1}, walls))
        .writes(v)
        .run([](const BlockCell &cell, const BlockView<const real> &from, const BlockView<real> &to) {
            to(cell[0]) = from(cell[0] - 1) + from(cell[0] + 1);
        });
    Task::Plan plan = step.compile();
    for (const real time : {1.0, 2.0, 2.0, 3.0}) {
        walls.setTime(time);
        plan.run();
        for (int b = 0; b < v.blocks(); ++b)
            for (index i = v.block(b).cells.lower[0]; i < v.block(b).cells.upper[0]; ++i)
                EXPECT_EQ(std::as_const(v).view(b)(i - v.block(b).cells.lower[0]), i == 0 || i == 7 ? time : 0);
    }
}

/// Two blocks; the one at the wall takes long to compute.
TEST(BlockBoundaryTasks, RulesReadCellsThatAreComputed) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const IndexSpace line{"line", Box({0}, {4}), {}};
    const auto grid = BlockGrid::make({line}, {{Box({2}, {4}), comm.size() - 1, 0}, {Box({0}, {2}), 0, 0}});
    const auto pattern = BlockPattern::make(comm, grid, GhostWidths::of({0}, {1}));
    BlockField<real> u("u", comm, pattern), v("v", comm, pattern);
    BlockBoundary walls(u);
    walls.mirror(highFace(0), 1);
    const BlockRows cells("cells", pattern);
    Task::Graph step("step", comm);
    step.task("add", cells.cells()).readsWrites(u).run([](const BlockCell &cell, const BlockView<real> &values) {
        if (cell[0] == 1)
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        values(cell[0]) += 1;
    });
    step.task("copy", cells.region("rim"))
        .reads(stencil(step, u, GhostWidths::of({0}, {1}), walls))
        .writes(v)
        .run([](const BlockCell &cell, const BlockView<const real> &from, const BlockView<real> &to) {
            to(cell[0]) = from(cell[0] + 1);
        });
    Task::Plan plan = step.compile(Executor::hostThreads(2));
    for (int run = 1; run <= 3; ++run) {
        plan.run();
        for (int b = 0; b < v.blocks(); ++b)
            EXPECT_EQ(std::as_const(v).view(b)(1), run) << plan.describe();
    }
}

/// A space on a wider one: ghosts beside the neighbour have no rules, however the neighbour is cut.
TEST(BlockBoundary, LeavesWhatLiesBesideANeighbour) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const std::vector<IndexSpace> zones{{"narrow", Box({0, 0}, {4, 4}), {}}, {"wide", Box({0, 0}, {4, 6}), {}}};
    const Connection side{
        .space = 0, .begin = {4, 0}, .end = {4, 4}, .other = 1, .otherBegin = {0, 1}, .transform = {1, 2}};
    const int last = comm.size() - 1;
    const std::vector<Block> whole{{zones[0].cells, 0, 0}, {zones[1].cells, last, 1}};
    const std::vector<Block> cut{
        {zones[0].cells, 0, 0}, {Box({0, 0}, {4, 1}), last, 1}, {Box({0, 1}, {4, 6}), last, 1}};
    for (const std::vector<Block> &blocks : {whole, cut}) {
        BlockField<real> u("u", comm, BlockGrid::make(zones, blocks, {side}), {.ghosts = {2, 2}});
        BlockBoundary walls(u);
        walls.constant(highFace(0), 7); // none in the other dimension
        exchangeAndFill(u, walls);
        if (comm.rank() == 0) {
            EXPECT_EQ(u.view(0)(4, -2), 0);
            EXPECT_EQ(u.view(0)(4, 5), 0);
        }
    }
}

} // namespace
} // namespace DNDS
