// Whether ghosts are computed again instead of pulled, as programs say or by an estimate.

#include "DNDS/Task/PlanFields.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>

namespace DNDS::Task {
namespace {

using namespace DNDS::test;

/// Three means in a row, on a mesh with three layers of ghosts.
struct RecomputeEstimate : testing::Test {
    PlanWorld world{7, 90, 3};
    std::unique_ptr<PlanPair> u = PlanWorld::pair("u", world.cells, 1), v = PlanWorld::pair("v", world.cells, 2),
                              w = PlanWorld::pair("w", world.cells, 3);

    using Recompute = CompileOptions::Recompute;

    Plan compile(double secondsPerPull, std::optional<double> secondsPerRow, Recompute recompute = Recompute::IfItPays,
                 bool declared = false) {
        Graph graph("deep", world.comm);
        const auto mean = [&](const std::string &name, PlanPair &in, PlanPair &out) {
            auto task = graph.task(name, world.cells).reads(through(in, world.cellCells)).writes(out);
            if (secondsPerRow)
                task = std::move(task).costs(*secondsPerRow);
            if (declared)
                task = std::move(task).recomputeGhosts();
            std::move(task).run(MeanKernel{world.viewOf(world.cellCells)});
        };
        mean("one", *u, *v);
        mean("two", *v, *w);
        mean("three", *w, *u);
        CompileOptions options;
        options.recompute = recompute;
        options.secondsPerPull = secondsPerPull;
        return graph.compile(Executor::host(), options);
    }
    void expect(Plan plan, int pulls, const std::string &reason) {
        const auto found = std::ranges::count(plan.model().transfers, Direction::Pull, &Transfer::direction);
        EXPECT_EQ(found, world.times(pulls)) << plan.describe();
        if (world.times(pulls) > 0) {
            EXPECT_NE(plan.describe().find(reason), std::string::npos) << plan.describe();
        }
        PlanWorld::set(*u, world.cells, 1);
        AllRows all = world.all(true, 1);
        for (int run = 0; run < 2; ++run) {
            for (PlanPair *pair : {u.get(), v.get(), w.get()}) // whatever ghosts hold
                for (index row = 0; row < pair->son->size(); ++row)
                    (*pair->son)(row, 0) = std::numeric_limits<real>::quiet_NaN();
            plan.run();
            for (int times = 0; times < 3; ++times)
                all = meanOf(world.allCellCells, all);
            EXPECT_EQ(PlanWorld::wrong(*u, world.cells, all), 0) << plan.describe();
        }
    }
};

TEST_F(RecomputeEstimate, IsNotAskedWhereTheProgramSays) {
    for (const bool declared : {true, false}) {
        expect(compile(0, std::nullopt, Recompute::AsDeclared, declared), declared ? 1 : 3, "");
        expect(compile(0, std::nullopt, Recompute::Never, declared), 3, "");
        expect(compile(0, std::nullopt, Recompute::WherePossible, declared), 1, "");
    }
}

TEST_F(RecomputeEstimate, ChoosesWhatCostsLess) {
    expect(compile(1.0, 1e-9), 1, "it is done");
    expect(compile(1e-9, 1.0), 3, "it is not done");
}

TEST_F(RecomputeEstimate, PullsWhereATaskDoesNotSayWhatItCosts) {
    expect(compile(1.0, std::nullopt), 3, "does not say what a row of it costs");
}

TEST_F(RecomputeEstimate, MeasuresPulls) {
    expect(compile(0, 1.0), 3, "it is not done"); // no pull here takes seconds
    expect(compile(0, 0.0), 1, "it is done");
}

} // namespace
} // namespace DNDS::Task
