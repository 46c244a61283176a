#include "DNDS/Base/Table.hpp"
#include "DNDS/Task/PlanState.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace DNDS::Task {

namespace {

std::string namesOf(const GraphModel &graph, const Transfer &transfer) {
    std::vector<std::string> names;
    for (const std::size_t array : transfer.arrays)
        names.push_back(fmt::format("'{}'", graph.arrays[array]->name()));
    return fmt::format("{}", fmt::join(names, " and "));
}

const char *wordFor(const Transfer &transfer) { return transfer.direction == Direction::Pull ? "pull" : "push"; }

std::string nameOf(const GraphModel &graph, const PlanModel &plan, const Operation &operation) {
    switch (operation.kind) {
    case OperationKind::Part: {
        const Part &part = plan.parts[operation.what];
        const char *which = part.adds   ? (part.toGhosts ? ", sums of ghosts" : ", sums of owned rows")
                            : part.late ? (part.urgent ? ", after the pull, sent next" : ", after the pull")
                                        : (part.urgent ? ", sent next" : "");
        return fmt::format("{}{}", graph.tasks[part.task].name, which);
    }
    case OperationKind::Start:
        return fmt::format("start {} of {}", wordFor(plan.transfers[operation.what]),
                           namesOf(graph, plan.transfers[operation.what]));
    case OperationKind::Wait:
        return fmt::format("wait for {} of {}", wordFor(plan.transfers[operation.what]),
                           namesOf(graph, plan.transfers[operation.what]));
    case OperationKind::Call:
    case OperationKind::Swap:
        break;
    }
    const TaskModel &task = graph.tasks[operation.what];
    return fmt::format("{}{}{}", task.name, task.aside ? ", aside" : "",
                       task.every > 1 ? fmt::format(", every {} runs", task.every) : "");
}

const char *wordFor(ReduceOp op) { return op == ReduceOp::Sum ? "sum" : op == ReduceOp::Min ? "smallest" : "largest"; }

std::string rowsOf(const PlanModel &plan, const Operation &operation) {
    return operation.kind == OperationKind::Part ? fmt::format("{}", plan.parts[operation.what].rows.count) : "";
}

} // namespace

std::string Plan::describe() const {
    const GraphModel &graph = state().graph;
    const PlanModel &plan = state().plan;
    std::size_t longest = 0;
    for (const Operation &operation : plan.operations)
        longest = std::max(longest, nameOf(graph, plan, operation).size());
    Table table({4, -static_cast<int>(longest), 9, 0});
    std::string &text = table.text;
    text = fmt::format("plan '{}' on the {}: {} tasks, {} parts, {} transfers by {} exchanges\n", graph.name,
                       state_->executor.onDevice() ? "device" : "host", graph.tasks.size(), plan.parts.size(),
                       plan.transfers.size(), state_->transfers.exchanges());
    table.add({"", "operation", "rows", "after"});
    for (std::size_t k = 0; k < plan.operations.size(); ++k) {
        const Operation &operation = plan.operations[k];
        table.add({fmt::to_string(k), nameOf(graph, plan, operation), rowsOf(plan, operation),
                   fmt::format("{}", fmt::join(operation.after, " "))});
    }
    for (const Transfer &transfer : plan.transfers) {
        const bool pull = transfer.direction == Direction::Pull;
        text += fmt::format("{} of {}: {} '{}' {}{}{}\n", wordFor(transfer), namesOf(graph, transfer),
                            pull ? "for" : "after", graph.tasks[transfer.task].name,
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

std::string Plan::dot() const {
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
    for (std::size_t k = 0; k < plan.operations.size(); ++k) {
        const Operation &operation = plan.operations[k];
        const bool transfer = operation.kind == OperationKind::Start || operation.kind == OperationKind::Wait;
        const std::string rows = rowsOf(plan, operation);
        text += fmt::format("  o{} [label=\"{}{}\"{}];\n", k, quoted(nameOf(graph, plan, operation)),
                            rows.empty() ? "" : "\\n" + rows + " rows",
                            transfer ? ", style=filled, fillcolor=\"#dce6f2\"" : "");
        for (const std::size_t before : operation.after)
            text += fmt::format("  o{} -> o{};\n", before, k);
    }
    return text + "}\n";
}

} // namespace DNDS::Task
