#include "DNDS/Base/Environment.hpp"
#include "DNDS/Mpi/Backoff.hpp"
#include "DNDS/Mpi/NodeTopology.hpp"
#include "DNDS/Mpi/ProgressEngine.hpp"
#include "DNDS/Task/DeviceRunner.hpp"
#include "DNDS/Task/HostRunner.hpp"
#include "DNDS/Transport/PeerFailure.hpp"

#include <algorithm>

namespace DNDS::Task {

/// This rank has no values for the reductions of a run: all ranks start equally many.
void Plan::State::reduceNothing() {
    std::vector<ReductionValue> nothing;
    for (const ReductionModel &model : graph.reductions)
        for (rowsize column = 0; column < model.columns; ++column)
            nothing.emplace_back(ReductionValue::none(model.op)).failed = true;
    awaitReductions();
    reduction->start(nothing);
    ++reducedRuns;
}

void Plan::State::checkRanks(double seconds) const {
    const NodeTopology &node = context->node();
    const std::string what = fmt::format("end its run of '{}'", graph.name);
    for (const int rank : node.members)
        checkPeer(!node.arena || node.arena->alive(node.nodeRank(rank)), rank, what, seconds, 0.0, node.arena.get());
    const double patience = readEnvironment().waitTimeout;
    DNDS_CHECK(patience <= 0.0 || seconds < patience, PeerError,
               "waited {:.3g} s for all ranks to end their run of '{}', for its reductions (DNDS_WAIT_TIMEOUT): is one "
               "of them stopped, or elsewhere?{}",
               seconds, graph.name, rollCall(node.arena.get()));
}

void Plan::State::awaitReductions() {
    if (!reduction->pending())
        return;
    const Doing doing("wait for the reductions of", graph.name);
    Backoff backoff(context->comm().handle(), context->node().crowded);
    while (!reduction->ready()) { // peers may need this rank before they end their run
        progress();
        ProgressEngine::progressAll();
        context->progressParked();
        backoff.pause();
        if (backoff.longWait())
            checkRanks(backoff.seconds());
    }
}

void Plan::State::startReductions() {
    if (!reduction)
        return;
    std::vector<ReductionValue> mine;
    for (std::size_t n = 0; n < graph.reductions.size(); ++n) {
        const ReductionModel &model = graph.reductions[n];
        const std::span<const real> elements = model.elements(executor.space());
        if (!model.lists) {
            const index all = model.columns > 0 ? static_cast<index>(elements.size()) / model.columns : 0;
            const PartRows first{nullptr, 0, model.rows.value_or(all)};
            reduceRows(executor, elements.data(), model.columns, first, model.op, mine);
            continue;
        }
        const auto columns = static_cast<rowsize>(toSize(model.columns) / model.lists->size());
        for (std::size_t k = 0; k < model.lists->size(); ++k) {
            const std::vector<LocalIndex> &list = (*model.lists)[k];
            const PartRows listed =
                device ? device->reducedRows(n, k) : PartRows{list.data(), 0, static_cast<index>(list.size())};
            reduceRows(executor, elements.data(), columns, listed, model.op, mine);
        }
    }
    reduction->start(mine);
    ++reducedRuns;
}

void Plan::State::collectReductions() {
    if (collectedRuns == reducedRuns)
        return;
    awaitReductions();
    const std::span<const ReductionValue> values = reduction->wait();
    const bool broken = std::ranges::any_of(values, &ReductionValue::failed);
    if (!broken) {
        collectedRuns = reducedRuns;
        results.swap(resultsBefore);
        results.clear();
        for (const ReductionValue &value : values)
            results.push_back(value.value());
    }
    failed = failed || broken;
    DNDS_CHECK(!broken, PeerError, "a run of '{}' has failed on some rank: see that rank's own error", graph.name);
}

void Plan::State::requireReduction(Reduction chosen) const {
    DNDS_CHECK(chosen.number < graph.reductions.size(), ArgumentError,
               "'{}' has {} reductions, not one of number {}: was it declared after the plan was compiled?", graph.name,
               graph.reductions.size(), chosen.number);
}

std::span<const real> Plan::State::valuesOf(Reduction chosen, const std::vector<real> &all) const {
    return std::span(all).subspan(firstResult[chosen.number],
                                  firstResult[chosen.number + 1] - firstResult[chosen.number]);
}

} // namespace DNDS::Task
