#include "DNDS/Base/Table.hpp"
#include "DNDS/Task/PlanState.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace DNDS::Task {

namespace {

/// A step as tables and pictures show it.
std::string nameOf(const GraphModel &graph, const PlanModel &plan, const PlanStep &step) {
    switch (step.kind) {
    case StepKind::Part: {
        const Part &part = plan.parts[step.what];
        const char *which = part.adds   ? (part.toGhosts ? ", sums of ghosts" : ", sums of owned rows")
                            : part.late ? (part.urgent ? ", after the pull, sent next" : ", after the pull")
                                        : (part.urgent ? ", sent next" : "");
        return fmt::format("{}{}", graph.tasks[part.task].name, which);
    }
    case StepKind::Start:
        return fmt::format("start {}", nameOf(graph, plan.transfers[step.what]));
    case StepKind::Wait:
        return fmt::format("wait for {}", nameOf(graph, plan.transfers[step.what]));
    case StepKind::Call:
    case StepKind::Swap:
        break;
    }
    const TaskModel &task = graph.tasks[step.what];
    return fmt::format("{}{}{}", task.name, task.async ? ", async" : "",
                       task.every > 1 ? fmt::format(", every {} runs", task.every) : "");
}

/// As in "the sum of 'x'".
const char *wordFor(ReduceOp op) { return op == ReduceOp::Sum ? "sum" : op == ReduceOp::Min ? "smallest" : "largest"; }

// The number of rows of a part; empty for other steps.
std::string rowsOf(const PlanModel &plan, const PlanStep &step) {
    return step.kind == StepKind::Part ? fmt::format("{}", plan.parts[step.what].rows.count) : "";
}

} // namespace

// Steps in the order in which this rank runs them; "after" has the numbers of steps that must be complete.
std::string Plan::describe() const {
    const GraphModel &graph = state().graph;
    const PlanModel &plan = state().plan;
    // The widest name sets the width of its column.
    std::size_t longest = 0;
    for (const PlanStep &step : plan.steps)
        longest = std::max(longest, nameOf(graph, plan, step).size());
    Table table({4, -static_cast<int>(longest), 9, 0});
    std::string &text = table.text;
    text = fmt::format("plan '{}' on the {}: {} tasks, {} parts, {} transfers by {} exchanges\n", graph.name,
                       state_->executor.onDevice() ? "device" : "host", graph.tasks.size(), plan.parts.size(),
                       plan.transfers.size(), state_->transfers.exchanges());
    table.add({"", "operation", "rows", "after"});
    for (std::size_t k = 0; k < plan.steps.size(); ++k) {
        const PlanStep &step = plan.steps[k];
        table.add({fmt::to_string(k), nameOf(graph, plan, step), rowsOf(plan, step),
                   fmt::format("{}", fmt::join(step.after, " "))});
    }
    for (const Transfer &transfer : plan.transfers) {
        const bool pull = transfer.direction == Direction::Pull;
        text += fmt::format("{}: {} '{}' {}{}{}\n", nameOf(graph, transfer), pull ? "for" : "after",
                            graph.tasks[transfer.task].name,
                            pull ? "reads ghosts older than their owners' rows" : "has added to ghosts",
                            transfer.arrays.size() > 1 ? "; together in one message a peer" : "",
                            transfer.conditional ? "; left out in runs that begin with current ghosts" : "");
    }
    for (std::size_t t = 0; t < plan.recomputes.size(); ++t)
        if (plan.recomputes[t] && plan.taskRows[t].count() > graph.tasks[t].loop->space().owned())
            text += fmt::format("'{}' computes {} ghosts again instead of having them pulled\n", graph.tasks[t].name,
                                plan.taskRows[t].count() - graph.tasks[t].loop->space().owned());
    for (const ReductionModel &model : graph.reductions)
        text += fmt::format("ends with '{}': the {} of '{}'{} over all ranks\n", model.name, wordFor(model.op),
                            graph.arrays[model.array]->name(),
                            model.region.empty() ? "" : fmt::format(" in '{}'", model.region));
    for (const std::string &note : plan.notes)
        text += note + "\n";
    if (state_->statistics.runs > 0)
        text += fmt::format("{} runs: {} transfers, {} left out\n", state_->statistics.runs,
                            state_->statistics.transfers, state_->statistics.dropped);
    return text;
}

// Graphviz' DOT language; transfers are filled. Edges are dependences, so that overlap shows as parallel paths.
std::string Plan::dot() const {
    // As in Graphviz, where a backslash escapes quotes and itself.
    const auto quoted = [](const std::string &name) {
        std::string text;
        for (const char c : name)
            text += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
        return text;
    };
    const GraphModel &graph = state().graph;
    const PlanModel &plan = state().plan;
    std::string text = fmt::format("digraph \"{}\" {{\n  rankdir=LR; node [shape=box, fontname=\"sans-serif\"];\n",
                                   quoted(graph.name));
    for (std::size_t k = 0; k < plan.steps.size(); ++k) {
        const PlanStep &step = plan.steps[k];
        const bool transfer = step.kind == StepKind::Start || step.kind == StepKind::Wait;
        const std::string rows = rowsOf(plan, step);
        text += fmt::format("  o{} [label=\"{}{}\"{}];\n", k, quoted(nameOf(graph, plan, step)),
                            rows.empty() ? "" : "\\n" + rows + " rows",
                            transfer ? ", style=filled, fillcolor=\"#dce6f2\"" : "");
        for (const std::size_t before : step.after)
            text += fmt::format("  o{} -> o{};\n", before, k);
    }
    return text + "}\n";
}

} // namespace DNDS::Task
