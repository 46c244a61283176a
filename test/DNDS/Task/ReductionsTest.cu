#include "DNDS/Task/Graph.hpp"

#include "DNDS/Device/Stream.hpp"
#include "DNDS/Task/GraphWorld.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace DNDS::Task {
namespace {

using namespace DNDS::test;
using Pair = ArrayPair<ParArray<real, 2>>;

struct Advance {
    template <class U>
    DNDS_HOST_DEVICE void operator()(index row, const U &u) const {
        u(row, 0) += 0.1;
        u(row, 1) *= -1.5;
    }
};

real start(index global, rowsize k) {
    return std::sin(static_cast<real>(global * 7 + k)) * std::exp(static_cast<real>(global % 50) - 25);
}

void compareReductions(const Executor &executor) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    GraphWorld world(comm, 5, 300, 1);
    Pair u;
    u.initPair("u", comm);
    u.father->resize(world.cells.owned);
    u.transAttach();
    u.trans.usePattern(world.cells.pattern);
    u.trans.createMPITypes();
    std::vector<real> all(600);
    for (index cell = 0; cell < 300; ++cell)
        for (rowsize k = 0; k < 2; ++k)
            all[toSize(2 * cell + k)] = start(cell, k);
    for (index row = 0; row < world.cells.owned; ++row)
        for (rowsize k = 0; k < 2; ++k)
            (*u.father)(row, k) = start(world.cells.global[toSize(row)], k);

    Graph graph("reductions", comm);
    graph.task("advance", world.cells).readsWrites(u).run(Advance{});
    const Reduction least = graph.reduce("least", ReduceOp::Min, u);
    const Reduction most = graph.reduce("most", ReduceOp::Max, u);
    const Reduction sum = graph.reduce("sum", ReduceOp::Sum, u);
    std::vector<index> even;
    for (index row = 0; row < world.cells.owned; ++row)
        if (world.cells.global[toSize(row)] % 2 == 0)
            even.push_back(row);
    RowSpace rows("cells", world.cells);
    const Reduction sumOfEven = graph.reduce("even", ReduceOp::Sum, rowsOf(u, rows.define("even cells", even)));
    EXPECT_THROW((void)graph.reduce("whole", ReduceOp::Sum, whole(u)), ArgumentError);
    if (world.cells.ghosts > 0) {
        EXPECT_THROW((void)graph.reduce("ghosts", ReduceOp::Sum, rowsOf(u, rows.region("all"))), ArgumentError);
    }
    Plan plan = graph.compile(executor);
    for (const char *line :
         {"ends with 'least': the smallest of 'u' over all ranks", "ends with 'sum': the sum of 'u'"})
        EXPECT_NE(plan.describe().find(line), std::string::npos) << plan.describe();
    EXPECT_THROW((void)plan.result(sum), StateError);
    EXPECT_THROW((void)plan.previous(sum), StateError);
    std::vector<real> before;
    for (int run = 0; run < 4; ++run) {
        plan.run();
        for (index cell = 0; cell < 300; ++cell) {
            all[toSize(2 * cell)] += 0.1;
            all[toSize(2 * cell + 1)] *= -1.5;
        }
        if (run > 0) {
            const auto older = plan.previous(sum);
            EXPECT_EQ(std::vector<real>(older.begin(), older.end()), before) << "run " << run;
        }
        std::vector<real> sums;
        for (std::size_t k = 0; k < 2; ++k) {
            WideExactAccumulator exact, exactOfEven;
            real smallest = std::numeric_limits<real>::infinity(), largest = -smallest;
            for (std::size_t cell = 300; cell-- > 0;) { // any order
                exact += all[2 * cell + k];
                if (cell % 2 == 0)
                    exactOfEven += all[2 * cell + k];
                smallest = std::min(smallest, all[2 * cell + k]);
                largest = std::max(largest, all[2 * cell + k]);
            }
            sums.push_back(exact.value());
            if (run % 2 == 0) { // the other runs read no result
                EXPECT_EQ(plan.result(least)[k], smallest);
                EXPECT_EQ(plan.result(most)[k], largest);
                EXPECT_EQ(plan.result(sum)[k], sums[k]);
                EXPECT_EQ(plan.result(sumOfEven)[k], exactOfEven.value());
            }
        }
        before = sums;
    }
}

struct Count {
    template <class U>
    DNDS_HOST_DEVICE void operator()(index row, const U &u) const {
        for (rowsize k = 0; k < 5; ++k)
            u(row, k) += static_cast<real>(row + 10 * k);
    }
};

/// Rows of 5 elements that are 8 apart: the padding does not count.
void compareOfPadded(const Executor &executor) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    constexpr index count = 7;
    const index rows = comm.rank() == 1 ? 0 : count; // a rank without rows
    ParArray<real, 5, 5, 64> u("u", comm);
    u.resize(rows);
    const RowSpace space("rows", rows);
    std::vector<index> odd;
    for (index row = 1; row < rows; row += 2)
        odd.push_back(row);
    Graph graph("padded", comm);
    graph.task("count", space).readsWrites(u).run(Count{});
    const Reduction least = graph.reduce("least", ReduceOp::Min, u), most = graph.reduce("most", ReduceOp::Max, u),
                    sum = graph.reduce("sum", ReduceOp::Sum, u),
                    sumOfOdd = graph.reduce("odd", ReduceOp::Sum, rowsOf(u, RowSpace(space).define("odd", odd)));
    Plan plan = graph.compile(executor);
    plan.run();
    const auto ranks = static_cast<real>(comm.size() > 1 ? comm.size() - 1 : 1);
    for (std::size_t k = 0; k < 5; ++k) {
        const auto first = static_cast<real>(10 * k);
        EXPECT_EQ(plan.result(least)[k], first);
        EXPECT_EQ(plan.result(most)[k], first + 6);
        EXPECT_EQ(plan.result(sum)[k], ranks * (7 * first + 21));
        EXPECT_EQ(plan.result(sumOfOdd)[k], ranks * (3 * first + 9));
    }
}

TEST(PlanReductions, OfPaddedRows) { compareOfPadded(Executor::host()); }

TEST(PlanReductionsOnDevice, OfPaddedRows) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const Device::Stream stream;
    compareOfPadded(Executor::device(stream));
}

TEST(PlanReductions, AreThoseOfAllRanks) { compareReductions(Executor::host()); }

TEST(PlanReductionsOnDevice, AreThoseOfAllRanks) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const Device::Stream stream;
    compareReductions(Executor::device(stream));
}

} // namespace
} // namespace DNDS::Task
