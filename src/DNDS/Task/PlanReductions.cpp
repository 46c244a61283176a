#include "DNDS/Task/PlanReductions.hpp"

#include "DNDS/Task/Plan.hpp"
#include "DNDS/Task/ReduceRows.hpp"

#include <algorithm>

namespace DNDS::Task {

// `first_` is the prefix sum of the columns: values of reduction n are [first_[n], first_[n + 1]) of all values.
PlanReductions::PlanReductions(const GraphModel &graph, const std::shared_ptr<CommunicatorContext> &context)
    : graph_(graph) {
    for (const ReductionModel &model : graph.reductions)
        first_.push_back(first_.back() + static_cast<std::size_t>(model.columns));
    if (!graph.reductions.empty())
        pending_ = std::make_unique<PendingReduction>(
            context, fmt::format("plan '{}' (call its result on all ranks)", graph.name));
}

/// All reductions of the plan are one reduction: O(columns) values a message. Each value is an exact sum or an extreme,
/// so neither the order of rows nor that of ranks changes its bits.
void PlanReductions::start(const Executor &executor, const ListedRows &listed) {
    if (!pending_)
        return;
    std::vector<ReductionValue> mine;
    for (std::size_t n = 0; n < graph_.reductions.size(); ++n) {
        const ReductionModel &model = graph_.reductions[n];
        const std::span<const real> elements = model.elements(executor.space());
        const ArrayBase &father = graph_.arrays[model.array]->father();
        const index stride = father.dataSize() / std::max<index>(father.size(), 1); // padding included
        if (!model.lists) {
            const PartRows first{nullptr, 0, model.rows.value_or(father.size())};
            reduceRows(executor, elements.data(), stride, model.columns, first, model.op, mine);
            continue;
        }
        // With one list a column group, each list reduces its own group; groups are equally wide.
        const auto columns = static_cast<rowsize>(toSize(model.columns) / model.lists->size());
        for (std::size_t k = 0; k < model.lists->size(); ++k)
            reduceRows(executor, elements.data(), stride, columns, listed(n, k), model.op, mine);
    }
    pending_->start(mine);
    ++started_;
}

/// Two generations are kept, so that `previous` never waits. `collected_` follows `started_`; they differ while a
/// reduction is in flight.
/// Runs call it before their next `start`, since PendingReduction holds one reduction at a time.
void PlanReductions::collect() {
    if (collected_ == started_)
        return;
    const std::span<const ReductionValue> values = pending_->wait();
    collected_ = started_;
    last_.swap(before_);
    last_.clear();
    for (const ReductionValue &value : values)
        last_.push_back(value.value());
}

// Numbers are given in the order of declaration.
void PlanReductions::require(Reduction chosen) const {
    DNDS_CHECK(chosen.number < graph_.reductions.size(), ArgumentError,
               "'{}' has {} reductions, not one of number {}: was it declared after the plan was compiled?",
               graph_.name, graph_.reductions.size(), chosen.number);
}

std::span<const real> PlanReductions::valuesOf(Reduction chosen, const std::vector<real> &all) const {
    return std::span(all).subspan(first_[chosen.number], first_[chosen.number + 1] - first_[chosen.number]);
}

void PlanReductions::requireResult(Reduction chosen) const {
    require(chosen);
    DNDS_CHECK(started_ > 0, StateError, "'{}' has no results before its first run", graph_.name);
}

std::span<const real> PlanReductions::result(Reduction chosen) const { return valuesOf(chosen, last_); }

/// While the last run's reduction is in flight, `last_` still holds the run before it.
std::span<const real> PlanReductions::previous(Reduction chosen) const {
    require(chosen);
    DNDS_CHECK(started_ > 1, StateError, "'{}' has no results of the run before the last yet", graph_.name);
    return valuesOf(chosen, collected_ == started_ ? before_ : last_);
}

} // namespace DNDS::Task
