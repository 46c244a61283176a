#include "DNDS/Task/PlanState.hpp"

#include <algorithm>
#include <array>

namespace DNDS::Task {

/// Compares the pulls that are saved with the rows that are computed more often, in the time of the rank for which it
/// pays least. Collective.
bool Plan::State::recomputingPays(PlanModel &other) {
    std::vector<double> seconds(transfers.exchanges(), options.secondsPerPull);
    if (options.secondsPerPull <= 0) {
        seconds = transfers.measure(executor);
        for (const PullFinish &finish : graph.finishes) // these pulls were not finished
            graph.arrays[finish.array]->setPulledFrom(0, 0);
    }
    const auto pullsOf = [](const PlanModel &model) {
        std::vector<const Transfer *> pulls;
        for (const Transfer &transfer : model.transfers)
            if (transfer.direction == Direction::Pull && !transfer.conditional) // those are left out in most runs
                pulls.push_back(&transfer);
        return pulls;
    };
    const std::vector<const Transfer *> mine = pullsOf(plan), theirs = pullsOf(other);
    double all = 0;
    for (const Transfer *pull : mine)
        all += seconds[pull->exchange];
    // Those that remain are taken to cost as much as the others.
    const double saved =
        mine.empty() ? 0 : all * (1 - static_cast<double>(theirs.size()) / static_cast<double>(mine.size()));
    double extra = 0;
    double unknown = -1; // number of a task whose rows cost nobody knows how much
    for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
        const auto more = static_cast<double>(other.taskRows[t].count() - plan.taskRows[t].count());
        extra += more * graph.tasks[t].secondsPerRow.value_or(0);
        if (more > 0 && !graph.tasks[t].secondsPerRow)
            unknown = static_cast<double>(t);
    }
    std::array<double, 3> worst{extra, -saved, unknown};
    comm.allReduce(worst.data(), 3, MPI_MAX);
    const bool pays = worst[2] < 0 && worst[0] < -worst[1];
    const std::string note =
        worst[2] >= 0
            ? fmt::format("ghosts are pulled: '{}' does not say what a row of it costs (costs())",
                          graph.tasks[static_cast<std::size_t>(worst[2])].name)
            : fmt::format("computing ghosts again would save {} of {} pulls, about {:.3g} microseconds a run, and cost "
                          "{:.3g} more on some rank: {}",
                          mine.size() - theirs.size(), mine.size(), -worst[1] * 1e6, worst[0] * 1e6,
                          pays ? "it is done" : "it is not done");
    plan.notes.push_back(note);
    other.notes.push_back(note);
    return pays;
}

} // namespace DNDS::Task
