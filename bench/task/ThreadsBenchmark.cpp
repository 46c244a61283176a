// One rank with two threads beside two ranks, on the same mesh.

#include "Benchmarks.hpp"
#include "MeshStep.hpp"
#include "Statistics.hpp"
#include "Turns.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>

namespace DNDS::Bench {
namespace {

/// The field of all cells in the order of the source, on rank 0. Collective.
std::vector<real> gather(const SquareMesh &square, const MeshStep &fields, CommunicatorView comm) {
    std::vector<real> whole(toSize(comm.allReduce(square.mesh.cells.owned, MPI_SUM)));
    const std::vector<real> state = fields.state();
    for (std::size_t cell = 0; cell < state.size(); cell++)
        whole[toSize(square.mesh.cells.fileNumbers[cell])] = state[cell];
    comm.allReduce(whole.data(), static_cast<int>(whole.size()), MPI_SUM);
    return whole;
}

void measure(const Setting &setting, index cells, Table &table) {
    const int steps = static_cast<int>(std::max<index>(2, (setting.common.quick ? 20000 : 2000000) / cells));
    const SquareMesh shared(setting.comm, cells);
    MeshStep ofRanks(shared);
    Task::Plan inRanks = ofRanks.compile(Executor::host(), {});
    std::optional<SquareMesh> whole;
    std::optional<MeshStep> alone;
    std::vector<Task::Plan> plans; // of rank 0: one thread, two threads
    if (setting.comm.rank() == 0) {
        const CommunicatorView self(MPI_COMM_SELF);
        whole.emplace(self, cells);
        alone.emplace(*whole);
        for (const int threads : {1, 2})
            plans.push_back(alone->compile(threads == 1 ? Executor::host() : Executor::hostThreads(threads), {}));
    }
    const auto run = [&](Task::Plan *plan) {
        for (int step = 0; plan != nullptr && step < steps; step++)
            plan->run();
    };
    const std::vector<real> before = gather(shared, ofRanks, setting.comm);
    run(&inRanks);
    const std::vector<real> after = gather(shared, ofRanks, setting.comm);
    int wrong = 0;
    for (std::size_t k = 0; k < plans.size(); k++) {
        alone->reset();
        run(&plans[k]);
        wrong += gather(*whole, *alone, CommunicatorView(MPI_COMM_SELF)) == after && after != before ? 0 : 1;
    }
    DNDS_CHECK(setting.comm.allReduce(wrong, MPI_SUM) == 0, DataError, "threads and ranks come to different bits");

    const std::vector<Way> ways{{"2 ranks", [&] { run(&inRanks); }},
                                {"1 rank", [&] { run(plans.empty() ? nullptr : &plans[0]); }},
                                {"1 rank, 2 threads", [&] { run(plans.empty() ? nullptr : &plans[1]); }}};
    const std::vector<TurnTimes> times = takeTurns(setting.comm, ways, setting.common.quick ? 2 : 9);
    for (std::size_t k = 0; k < ways.size(); k++) {
        const double us = 1e6 * times[k].medianWall() / steps;
        const double speed = times[0].medianWall() / times[k].medianWall();
        table.add({ways[k].name, fmt::to_string(cells), numberOrDash(us), numberOrDash(speed)});
        setting.report.add({{"benchmark", "threads"},
                            {"method", ways[k].name},
                            {"cells", cells},
                            {"us_per_step", numberOrNull(us)},
                            {"speed_to_ranks", numberOrNull(speed)}});
    }
}

} // namespace

void benchmarkThreads(const Setting &setting) {
    if (setting.comm.size() != 2) {
        say(setting.comm, "threads beside ranks: needs 2 ranks\n");
        return;
    }
    Table table({"method", "cells", "us a step", "speed, of 2 ranks"});
    for (const index cells : setting.sharedCells)
        measure(setting, cells, table);
    say(setting.comm, fmt::format("the same mesh in 2 ranks and in threads of one\n{}", table.text()));
}

} // namespace DNDS::Bench
