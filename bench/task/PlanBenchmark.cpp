// Overhead of a plan's task: small tasks in a chain and in a fan, compared with oneTBB and StarPU.

#include "Benchmarks.hpp"
#include "Statistics.hpp"

#include "DNDS/Array/ParArray.hpp"
#include "DNDS/Task/Graph.hpp"

#include <fmt/format.h>

#include <deque>
#include <utility>

namespace DNDS::Bench {
namespace {

/// Task k makes array k + 1 from array k (a chain), or from array 0 (a fan).
struct Arrays {
    std::deque<ParArray<real, 1>> all;
    bool chain;

    Arrays(CommunicatorView comm, int tasks, index rows, bool inChain) : chain(inChain) {
        for (int k = 0; k <= tasks; k++) {
            all.emplace_back(fmt::format("array {}", k), comm);
            all.back().resize(rows);
        }
        reset();
    }
    std::size_t sourceOf(int task) const { return chain ? toSize(task) : 0; }
    static void runTask(void *context, int number) {
        auto &arrays = *static_cast<Arrays *>(context);
        const auto from = std::as_const(arrays.all[arrays.sourceOf(number)]).view();
        const auto to = arrays.all[toSize(number) + 1].view();
        for (index row = 0; row < to.size(); row++)
            to(row, 0) = from(row, 0) + 1;
    }
    Task::Plan compile(CommunicatorView comm, int threads) {
        Task::Graph graph("small tasks", comm);
        const Task::RowSpace rows("rows", all.front().size());
        for (int k = 0; k + 1 < static_cast<int>(all.size()); k++)
            graph.task(fmt::format("task {}", k), rows)
                .reads(all[sourceOf(k)])
                .writes(all[toSize(k) + 1])
                .run([](index row, const auto &from, const auto &to) { to(row) = from(row) + 1; });
        return graph.compile(threads == 1 ? Executor::host() : Executor::hostThreads(threads));
    }
    void check(const std::string &method) {
        for (std::size_t k = 1; k < all.size(); k++)
            for (index row = 0; row < all[k].size(); row++) {
                const real expected = chain ? static_cast<real>(k) : 1;
                DNDS_CHECK(all[k](row, 0) == expected, DataError, "{}: row {} of array {} is {} instead of {}", method,
                           row, k, all[k](row, 0), expected);
            }
        reset();
    }
    void reset() {
        for (auto &array : all)
            for (index row = 0; row < array.size(); row++)
                array(row, 0) = 0;
    }
};

struct Case {
    int threads;
    index rows;
    bool chain;
    int tasks;
};

void measure(const Setting &setting, const Case &what, Table &table) {
    Arrays arrays(setting.comm, what.tasks, what.rows, what.chain);
    Task::Plan plan = arrays.compile(setting.comm, what.threads);
    const SmallTasks tasks{what.tasks, what.chain, Arrays::runTask, &arrays};
    std::vector<Contestant> all{{"plain loop",
                                 {},
                                 [&] {
                                     for (int k = 0; k < tasks.tasks; k++)
                                         tasks.task(tasks.context, k);
                                 },
                                 {}},
                                {"plan", {}, [&] { plan.run(); }, {}}};
    for (Contestant &other : flowContestants(tasks, what.threads))
        all.push_back(std::move(other));
    if (setting.comm.size() == 1) // workers of several ranks would be bound to the same cores
        for (Contestant &other : starpuContestants(tasks, what.threads))
            all.push_back(std::move(other));
    for (Contestant &contestant : all)
        contestant.finish = [&arrays, name = contestant.name] { arrays.check(name); };
    const auto blocks = interleave(setting.comm, setting.sync, all, setting.common.plan);
    std::vector<double> medians;
    for (const std::vector<Block> &each : blocks) {
        std::vector<double> times;
        for (const Block &block : each)
            times.push_back(block.microseconds);
        medians.push_back(median(std::move(times)));
    }
    const std::string shape = what.tasks == 1 ? "one task" : what.chain ? "chain" : "fan";
    for (std::size_t k = 0; k < all.size(); k++) {
        const double added = (medians[k] - medians[0]) / what.tasks;
        const double ratio = k == 0 ? NotMeasured : added / ((medians[1] - medians[0]) / what.tasks);
        table.add({all[k].name, fmt::to_string(what.threads), shape, fmt::to_string(what.rows),
                   numberOrDash(medians[k] / what.tasks), k == 0 ? "-" : numberOrDash(added), numberOrDash(ratio)});
        setting.report.add({{"benchmark", "plans"},
                            {"method", all[k].name},
                            {"ranks", setting.comm.size()},
                            {"threads", what.threads},
                            {"shape", shape},
                            {"tasks", what.tasks},
                            {"rows", what.rows},
                            {"us_per_task", numberOrNull(medians[k] / what.tasks)},
                            {"us_added_per_task", numberOrNull(added)},
                            {"ratio_to_plan", numberOrNull(ratio)}});
    }
}

} // namespace

void benchmarkPlans(const Setting &setting) {
    Table table({"method", "threads", "shape", "rows", "us a task", "beside the loop", "of the plan's"});
    for (const int threads : setting.threads) {
        measure(setting, {threads, 1, true, 1}, table);
        for (const bool chain : {true, false})
            for (const index rows : setting.taskRows)
                measure(setting, {threads, rows, chain, setting.parts}, table);
    }
    if (!hasStarPu())
        say(setting.comm, "built without StarPU (package libstarpu-dev): not compared\n");
    else if (setting.comm.size() > 1)
        say(setting.comm, "StarPU is compared on one rank only\n");
    say(setting.comm, fmt::format("{} tasks a run, of 1 number a row\n{}", setting.parts, table.text()));
}

} // namespace DNDS::Bench
