#include "DNDS/Task/Plan.hpp"

#include "DNDS/Mpi/FailTogether.hpp"

namespace DNDS::Task {

namespace {

/// The facts of a task that ranks have to agree about, in a line. Numbers of rows are left out, as ranks differ in
/// them; so are functors, which have no comparable names.
std::string canonical(const GraphModel &graph, const TaskModel &task) {
    std::string text = fmt::format("{} '{}'",
                                   task.async                    ? "async call"
                                   : task.kind == TaskKind::Call ? "call"
                                                                 : "task",
                                   task.name);
    // Left out where it is the default, so that errors quote short lines.
    if (task.every != 1)
        text += fmt::format(" every {} runs", task.every);
    if (task.loop)
        text += fmt::format(" over '{}'{}", task.loop->name(), task.loop->rows() ? " (a region)" : "");
    for (const ArrayAccess &access : task.accesses) {
        text += fmt::format(", {} '{}' (array {})", accessModeName(access.mode), graph.arrays[access.array]->name(),
                            access.array);
        if (access.range == AccessRange::Through)
            text += fmt::format(" through '{}'", access.adjacency.name);
        else if (access.range == AccessRange::Region)
            text += fmt::format(" in '{}'", access.region->name());
        else
            text += access.range == AccessRange::SameRow ? " row by row"
                    : access.range == AccessRange::Whole ? " whole"
                                                         : " owned rows";
    }
    if (task.recomputesGhosts)
        text += ", recomputes ghosts";
    return text;
}

/// Every rank describes its graph in lines of text and compares them with rank 0's: the first difference is an error
/// that quotes both. Without it, ranks with different graphs would wait for each other in reductions or exchanges.
/// Order and numbers of arrays, tasks and reductions then agree, which is what later stages rely on: masks and row
/// counts differ between ranks, indices never do.
void agreeOnTasks(const GraphModel &graph, const CommunicatorView &comm, const CompileOptions &options) {
    std::vector<std::string> lines;
    comm.guarded([&] {
        lines.push_back(fmt::format("graph '{}', recompute {}, overlap {}, fuse {}, drop {}", graph.name,
                                    static_cast<int>(options.recompute), options.overlap, options.fuse,
                                    options.dropPulls));
        for (const TaskModel &task : graph.tasks)
            lines.push_back(canonical(graph, task));
        for (const ReductionModel &model : graph.reductions)
            lines.push_back(fmt::format("reduction '{}' {} of {} columns of '{}', region '{}'", model.name,
                                        static_cast<int>(model.op), model.columns, graph.arrays[model.array]->name(),
                                        model.region));
        for (const PullFinish &finish : graph.finishes)
            lines.push_back(fmt::format("pulls of '{}' finished on '{}'", graph.arrays[finish.array]->name(),
                                        finish.ghosts.name()));
    });
    requireSame(comm, lines, [&](std::size_t k, const std::string *first) {
        throw StateError(fmt::format("ranks declare different graphs: '{}' has {} here, but {} on rank 0", graph.name,
                                     k < lines.size() ? lines[k] : std::string("no more tasks"),
                                     first != nullptr ? *first : std::string("no more tasks")));
    });
}

} // namespace

/// Three stages, each on the results of the one before: which rows each task computes and where pulls and pushes are
/// needed (collective), parts, order (both local). Equal graphs give equal transfers on all ranks, and so the same
/// collective calls in the same order.
/// Cost: the text of the graph compared once, some reductions a task in placeTransfers, and no message afterwards.
/// Memory while compiling: O(arrays x rows) words for the numbers of exchanges in SplitTasks, a bit a row for all other
/// sets.
PlanModel compileGraph(const GraphModel &graph, const CommunicatorView &comm, const CompileOptions &options) {
    agreeOnTasks(graph, comm, options);
    comm.guarded([&] {
        DNDS_CHECK(options.rowsPerChunk >= 0, ArgumentError,
                   "'{}': rowsPerChunk is {}; it is a number of rows, or 0 to have it chosen", graph.name,
                   options.rowsPerChunk);
        // arrays may have changed since their declaration
        for (const TaskModel &task : graph.tasks) {
            graph.requireFits(task);
            graph.requireOwnTerms(task);
        }
        for (const ReductionModel &reduction : graph.reductions)
            graph.requireFits(reduction);
    });
    PlanModel plan;
    placeTransfers(graph, comm, options, plan);
    comm.guarded([&] {
        splitTasks(graph, options, plan);
        orderSteps(graph, plan);
    });
    return plan;
}

} // namespace DNDS::Task
