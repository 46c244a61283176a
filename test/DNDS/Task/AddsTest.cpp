// Sums that tasks make: each row gets its contributions in ascending order of the rows of the loop, then those of other
// ranks by rank. Compared with loops and pushes written by hand, to the bit.

#include "DNDS/Task/PlanFields.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace DNDS::Task {
namespace {

using namespace DNDS::test;

struct AddKernel {
    GraphWorld::Adjacency::ConstView adjacency;

    template <class In, class Sums>
    void operator()(index row, const In &in, const Sums &sums) const {
        for (const LocalIndex other : adjacency[row])
            if (other >= 0)
                sums.add(other, in(row) * (other % 2 == 0 ? 0.3 : 0.7));
    }
};

std::vector<Executor> executors() { return {Executor::host(), Executor::hostThreads(2)}; }

/// The same sums by hand, without the library.
void addByHand(const PlanWorld &world, PlanPair &flux, PlanPair &sums) {
    for (index row = 0; row < world.cells.ghosts; ++row)
        (*sums.son)(row, 0) = 0;
    const auto view = sums.view();
    const auto adjacency = world.viewOf(world.faceCells);
    for (index row = 0; row < world.faces.owned; ++row)
        for (const LocalIndex other : adjacency[row])
            if (other >= 0)
                view(other, 0) += std::as_const(flux)(row, 0) * (other % 2 == 0 ? 0.3 : 0.7);
    sums.trans.pushOnce(PushOp::Sum);
}

/// Rows whose bits differ.
index different(const PlanPair &a, const PlanPair &b) {
    index count = 0;
    for (index row = 0; row < a.father->size(); ++row) {
        const real one = a(row, 0), other = b(row, 0);
        count += std::memcmp(&one, &other, sizeof(real)) == 0 ? 0 : 1;
    }
    return count;
}

TEST(Adds, GiveTheBitsOfLoopsAndPushesByHand) {
    for (const unsigned seed : {2U, 3U, 5U, 8U, 13U})
        for (const Executor &executor : executors())
            for (const index chunk : {0, 1, 7}) {
                PlanWorld world(seed, 70);
                auto flux = PlanWorld::pair("flux", world.faces, 1), sums = PlanWorld::pair("sums", world.cells, 2),
                     other = PlanWorld::pair("other", world.cells, 2);
                Graph graph("adds", world.comm);
                graph.task("sum", world.faces)
                    .reads(*flux)
                    .adds(through(*sums, world.faceCells))
                    .run(AddKernel{world.viewOf(world.faceCells)});
                CompileOptions options;
                options.rowsPerChunk = chunk;
                Plan plan = graph.compile(executor, options);
                for (int run = 0; run < 3; ++run) {
                    plan.run();
                    addByHand(world, *flux, *other);
                    EXPECT_EQ(different(*sums, *other), 0) << "seed " << seed << ", run " << run;
                    for (index row = 0; row < world.cells.ghosts; ++row)
                        EXPECT_EQ(std::as_const(*sums->son)(row, 0), 0) << "pushed, so that nothing is added twice";
                }
            }
}

TEST(Adds, ToTwoArraysAtOnceInAnyOrderOfDeclaration) {
    for (const Executor &executor : executors()) {
        PlanWorld world(3, 70);
        auto flux = PlanWorld::pair("flux", world.faces, 1), a = PlanWorld::pair("a", world.cells, 2),
             b = PlanWorld::pair("b", world.cells, 3), handA = PlanWorld::pair("hand a", world.cells, 2),
             handB = PlanWorld::pair("hand b", world.cells, 3);
        PlanLocal factor("factor", world.comm);
        factor.resize(world.faces.owned);
        for (index row = 0; row < world.faces.owned; ++row)
            factor(row, 0) = 1;
        const auto adjacency = world.viewOf(world.faceCells);
        Graph graph("adds", world.comm);
        graph.task("sum", world.faces)
            .adds(through(*a, world.faceCells), through(*b, world.faceCells))
            .reads(*flux, factor) // declared last, and without ghosts
            .run([=](index row, const auto &first, const auto &second, const auto &in, const auto &one) {
                for (const LocalIndex other : adjacency[row])
                    if (other >= 0) {
                        first.add(other, in(row)*one(row) * (other % 2 == 0 ? 0.3 : 0.7));
                        second.add(other, 0, in(row) * (other % 2 == 0 ? 0.3 : 0.7));
                    }
            });
        Plan plan = graph.compile(executor);
        EXPECT_EQ(plan.model().transfers.size(), static_cast<std::size_t>(world.times(2)) + (world.exchanges ? 0 : 2));
        for (int run = 0; run < 3; ++run) {
            plan.run();
            addByHand(world, *flux, *handA);
            addByHand(world, *flux, *handB);
            EXPECT_EQ(different(*a, *handA), 0);
            EXPECT_EQ(different(*b, *handB), 0);
        }
    }
}

TEST(Adds, ToTheRowOfTheLoop) {
    PlanWorld world(3, 70);
    auto u = PlanWorld::pair("u", world.cells, 1), sums = PlanWorld::pair("sums", world.cells, 2);
    Graph graph("adds", world.comm);
    graph.task("sum", world.cells).reads(*u).adds(*sums).run([](index row, const auto &in, const auto &out) {
        out.add(row, in(row));
    });
    Plan plan = graph.compile();
    AllRows expected = world.all(true, 2);
    for (int run = 0; run < 3; ++run) {
        plan.run();
        for (std::size_t row = 0; row < expected.size(); ++row)
            expected[row] += fieldValue(static_cast<index>(row), 1);
        EXPECT_EQ(PlanWorld::wrong(*sums, world.cells, expected), 0);
    }
}

TEST(Adds, ToArraysWithoutGhosts) {
    // Each rank sums over all faces of its cells, ghosts included: that needs no push.
    PlanWorld world(3, 70);
    auto flux = PlanWorld::pair("flux", world.faces, 1);
    PlanLocal sums("sums", world.comm);
    sums.resize(world.cells.size());
    RowSpace faces("faces", world.faces);
    std::vector<index> mine;
    for (index row = 0; row < world.faces.size(); ++row)
        if (std::ranges::any_of(world.viewOf(world.faceCells)[row],
                                [&](LocalIndex cell) { return cell >= 0 && cell < world.cells.owned; }))
            mine.push_back(row);
    Graph graph("adds", world.comm);
    graph.task("zero", world.cells).writes(sums).run([](index row, const auto &out) { out(row) = 0; });
    graph.task("sum", faces.define("mine", mine))
        .reads(*flux)
        .adds(through(sums, world.faceCells))
        .run([adjacency = world.viewOf(world.faceCells)](index row, const auto &in, const auto &out) {
            for (const LocalIndex other : adjacency[row])
                if (other >= 0)
                    out.add(other, in(row));
        });
    Plan plan = graph.compile();
    plan.run();
    plan.run();
    for (index row = 0; row < world.cells.owned; ++row) {
        real sum = 0;
        for (const index face : world.allCellFaces[toSize(world.cells.global[toSize(row)])])
            sum += fieldValue(face, 1);
        EXPECT_NEAR(std::as_const(sums)(row, 0), sum, 1e-9 * (1 + std::abs(sum)));
    }
}

} // namespace
} // namespace DNDS::Task
