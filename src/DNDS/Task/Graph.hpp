/// @file Graph.hpp
/// @brief A solver's step as tasks with declared reads and writes.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Task/Plan.hpp"
#include "DNDS/Task/TaskBodies.hpp"
#include "DNDS/Task/Value.hpp"

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace DNDS::Task {

/// Rows of an array, as a task sees them.
template <class TArray>
struct RowSelection {
    TArray *array;
    AccessRange range = AccessRange::SameRow;
    Adjacency adjacency{};
    std::optional<Region> region{};
};

/// The rows of `array` that `adjacency` names in the row of the loop: `through(state, mesh.faceCells)` in a loop over
/// faces. The array is a pair (ArrayPair, ArrayDof), or one without ghosts. Local.
template <class TArray, class TAdjacency>
RowSelection<TArray> through(TArray &array, const TAdjacency &adjacency) {
    if constexpr (std::same_as<TAdjacency, Adjacency>)
        return {&array, AccessRange::Through, adjacency};
    else
        return {&array, AccessRange::Through, adjacencyOf(adjacency)};
}
/// The row of the loop itself and the rows that `adjacency` names: `around(u, mesh.cellCells)` in a loop over cells, to
/// which the array belongs, too. Local.
template <class TArray, class TAdjacency>
RowSelection<TArray> around(TArray &array, const TAdjacency &adjacency) {
    return {&array, AccessRange::Through, withItself(through(array, adjacency).adjacency)};
}
/// All owned rows and ghosts. Local.
template <class TArray>
RowSelection<TArray> whole(TArray &array) {
    return {&array, AccessRange::Whole};
}
/// All owned rows and no ghosts: nothing is pulled for it. Local.
template <class TArray>
RowSelection<TArray> owned(TArray &array) {
    return {&array, AccessRange::Owned};
}
/// The rows of a region of the array's own rows. Local.
template <class TArray>
RowSelection<TArray> rowsOf(TArray &array, const Region &region) {
    return {&array, AccessRange::Region, {}, region};
}

/// Result of `Graph::task`: names accesses, then takes the functor. Used once, in one expression.
template <class... Arguments>
class [[nodiscard("a task without run() is not in the graph")]] TaskBuilder {
  public:
    /// Arrays that the functor reads: each an array (its row of the same number; in calls, all of it), rows seen by
    /// `through`, `around`, `whole`, `owned`, `rowsOf`, or a `Value`. The functor gets a `ReadRows` or `ReadValue` of
    /// each, in the order of declaration.
    template <class... Accesses>
    auto reads(Accesses && ...accesses) && {
        return std::move(*this).template with<AccessMode::Reads>(selection(accesses)...);
    }
    /// Arrays whose row of the same number the functor sets (all elements) without reading it; the view is WriteRows.
    template <class... Accesses>
    auto writes(Accesses && ...accesses) && {
        return std::move(*this).template with<AccessMode::Writes>(selection(accesses)...);
    }
    /// Arrays whose row of the same number the functor changes, or sets in part; the view is WriteRows.
    template <class... Accesses>
    auto readsWrites(Accesses && ...accesses) && {
        return std::move(*this).template with<AccessMode::ReadsWrites>(selection(accesses)...);
    }
    /// Arrays to whose rows it adds: `adds(through(residual, mesh.faceCells))`; AddRows. Sums in ghosts are sent
    /// to their owners afterwards. See AddedRows for the order of sums.
    template <class... Accesses>
    auto adds(Accesses && ...accesses) && {
        return std::move(*this).template with<AccessMode::Adds>(selection(accesses)...);
    }

    /// Also computes ghosts, if all their inputs are on this rank: later tasks then need no pull of the results.
    /// Rows equal their owner's, to the bit, if the functor depends only on its declared
    /// reads. See CompileOptions::recompute.
    TaskBuilder recomputeGhosts() && {
        model_.recomputesGhosts = true;
        return std::move(*this);
    }

    /// Ends the declaration. A loop calls `functor(row, views...)`, a call `functor(views...)`, with one view for each
    /// array named above, in that order, by value or const reference. In loops `functor` must be callable by several
    /// threads at once; on the device it is trivially copyable, with DNDS_HOST_DEVICE on its operator, and this call is
    /// in a source for kernels (see parallelFor).
    ///
    /// If it has a function `prefetch(row, views...)`, loops on the host call that some rows ahead: there `prefetchRow`
    /// fetches rows that `functor` will read through an adjacency, whose addresses no processor predicts. It pays for
    /// arrays larger than the caches.
    ///
    /// Local. Throws ArgumentError for contradictions, naming task and array.
    template <class Functor>
    void run(Functor functor) && {
        if (model_.kind == TaskKind::Loop)
            runLoop(std::move(functor));
        else
            runCall(std::move(functor));
    }

    /// Ends the declaration of a call that starts kernels, such as loops over a BlockPack or those of a library: calls
    /// `functor(executor)` with the host or a stream of the device, where the plan runs. It queues all work there, and
    /// takes views of the arrays named above itself; a plan on the device has brought them there, except sparse fields,
    /// which the program brings. Local. Throws ArgumentError as `run`, and for tasks that are no calls.
    template <std::invocable<const Executor &> Functor>
    void launch(Functor functor) && {
        DNDS_CHECK(model_.kind == TaskKind::Call && !model_.async, ArgumentError,
                   "task '{}' launches kernels, but loops or runs asynchronously: use Graph::call", model_.name);
        model_.launch = std::move(functor);
        graph_->add(std::move(model_));
    }

    /// For graphs: use Graph::task.
    TaskBuilder(GraphModel & graph, TaskModel model, std::tuple<Arguments...> arguments)
        : graph_(&graph), model_(std::move(model)), arguments_(std::move(arguments)) {}

  private:
    template <class Functor>
    void runLoop(Functor functor) {
        using Loop = LoopOf<Functor, Arguments...>;
        if constexpr (std::invocable<const Functor &, typename Loop::Row, const typename Arguments::View &...>) {
            model_.body = std::apply(
                [&](const Arguments &...arguments) {
                    return std::make_shared<typename Loop::Body>(std::move(functor), arguments...);
                },
                arguments_);
            graph_->add(std::move(model_));
        } else {
            requireCallable<Functor, false>();
        }
    }
    template <class Functor>
    void runCall(Functor functor) {
        if constexpr (std::invocable<Functor &, const typename Arguments::CallView &...>) {
            if (model_.async)
                return runAsync(std::move(functor));
            model_.call = [functor = std::move(functor), arguments = arguments_]() mutable {
                std::apply([&](const Arguments &...each) { functor(each.callView()...); }, arguments);
            };
            graph_->add(std::move(model_));
        } else {
            requireCallable<Functor, true>();
        }
    }
    /// The copies belong to the work in its own thread, except while it waits for the next ones.
    template <class Functor>
    void runAsync(Functor functor) {
        if constexpr (((Arguments::mode == AccessMode::Reads) && ...)) {
            struct Work {
                Functor functor;
                std::tuple<Arguments...> arguments;
                std::tuple<Snapshot<typename Arguments::Array>...> copies{};
            };
            auto work = std::make_shared<Work>(Work{std::move(functor), arguments_});
            model_.call = [work, async = model_.async] {
                finishAsync(*async);
                [&]<std::size_t... k>(std::index_sequence<k...>) {
                    (std::get<k>(work->copies).take(*std::get<k>(work->arguments).array), ...);
                }
                (std::index_sequence_for<Arguments...>{});
                *async = std::async(std::launch::async, [work] {
                    std::apply([&](const auto &...copies) { work->functor(copies.view()...); }, work->copies);
                });
            };
            graph_->add(std::move(model_));
        } else {
            graph_->add(std::move(model_)); // throws: it only reads
        }
    }
    template <class Functor, bool call>
    void requireCallable() {
        using Row = typename LoopOf<Functor, Arguments...>::Row;
        constexpr bool either = std::invocable<const Functor &, Row, const typename Arguments::View &...> ||
                                std::invocable<Functor &, const typename Arguments::CallView &...>;
        static_assert(either, "the functor of a task is called with the row (not in calls) and one view for each array "
                              "that the task declared, in that order");
        throw ArgumentError(fmt::format("the functor of '{}' {}", model_.name,
                                        call ? "takes a row, but a call loops over none"
                                             : "takes no row, but the task loops over rows"));
    }

    template <class TArray>
    static RowSelection<TArray> selection(TArray & array) {
        return {&array, IsValue<TArray> ? AccessRange::Whole : AccessRange::SameRow};
    }
    template <class TArray>
    static RowSelection<TArray> selection(const RowSelection<TArray> &rows) {
        return rows;
    }
    template <class TArray>
    static RowSelection<TArray> selection(RowSelection<TArray> & rows) {
        return rows;
    }

    template <AccessMode mode, class... TArrays>
    auto with(RowSelection<TArrays>... rows) && {
        (declare(mode, rows), ...);
        auto arguments =
            std::tuple_cat(std::move(arguments_),
                           std::tuple<TaskArgument<TArrays, mode>...>{TaskArgument<TArrays, mode>{rows.array}...});
        return TaskBuilder<Arguments..., TaskArgument<TArrays, mode>...>(*graph_, std::move(model_),
                                                                         std::move(arguments));
    }
    template <class TArray>
    void declare(AccessMode mode, RowSelection<TArray> & rows) {
        if (model_.kind == TaskKind::Call && rows.range == AccessRange::SameRow)
            rows.range = model_.async ? AccessRange::Owned : AccessRange::Whole;
        model_.accesses.push_back({graph_->add(std::make_shared<HandleOf<TArray>>(*rows.array)), mode, rows.range,
                                   std::move(rows.adjacency), std::move(rows.region)});
    }

    GraphModel *graph_;
    TaskModel model_;
    std::tuple<Arguments...> arguments_;
};

/// Tasks in program order, each with its reads and writes. The library finds out which ghosts have to be pulled
/// when, overlaps pulls with independent rows, and runs the whole as a `Plan`:
///
///     Task::Graph stage("stage", mesh.comm);
///     stage.task("gradient", mesh.cells).reads(around(u, mesh.cellCells)).writes(g).run(GradientKernel{...});
///     stage.task("flux", mesh.faces).reads(through(u, mesh.faceCells), through(g, mesh.faceCells)).writes(f).run(...);
///     stage.task("update", mesh.cells).reads(through(f, mesh.cellFaces)).readsWrites(u).run(...);
///     Task::Plan plan = stage.compile();
///     for (int i = 0; i < steps; ++i)
///         plan.run();
///
/// Results are, to the bit, those of running the tasks one after another over the owned rows, each
/// for all rows in ascending order, with a pull of everything before each. Arrays, meshes and adjacencies must outlive
/// graph and plans.
class Graph {
  public:
    /// Local. Ranks of `comm` declare the same tasks in the same order.
    Graph(std::string name, CommunicatorView comm) : comm_(comm) { model_->name = std::move(name); }

    /// A task that loops over a space, or over a region of one. Local.
    TaskBuilder<> task(std::string name, const Region &rows) { return begin(std::move(name), TaskKind::Loop, rows); }
    TaskBuilder<> task(std::string name, const RowSpace &rows) { return task(std::move(name), rows.rows()); }
    /// The same over the rows of a mesh's cells, nodes or faces.
    template <HasRows Entities>
    TaskBuilder<> task(std::string name, const Entities &entities) {
        RowSpace rows("rows of " + name, entities);
        return task(std::move(name), rows);
    }
    /// A task without a loop: a library call, output. Its functor runs once, on the host, in the thread that runs the
    /// plan, with views of its declared arrays (`run`), or queues kernels (`launch`). It may use MPI, on a communicator
    /// of its own: then a run that fails on one rank before the call leaves the others in it, unless they wait for rows
    /// of that rank first. Local. It runs in the first run of the plan, and then in every `every`-th one.
    TaskBuilder<> call(std::string name, index every = 1) {
        return begin(std::move(name), TaskKind::Call, std::nullopt, every);
    }
    /// The same beside the steps that follow, in its own thread, with copies of the arrays read (owned rows, unless
    /// `whole` asks for ghosts): writing a file or a picture. It writes no arrays of the graph, and uses MPI
    /// only if MPI_THREAD_MULTIPLE was granted, on a communicator of its own. The next one waits for this one, and
    /// throws its exception; so does Plan::finish. Local.
    TaskBuilder<> asyncCall(std::string name, index every = 1) {
        return begin(std::move(name), TaskKind::Call, std::nullopt, every, std::make_shared<std::future<void>>());
    }

    /// Exchanges the contents of two pairs of one pattern, or of two arrays: old and new state. Local.
    template <class TArray>
    void swap(TArray &a, TArray &b) {
        TaskModel model;
        model.kind = TaskKind::Swap;
        for (TArray *array : {&a, &b})
            model.accesses.push_back({model_->add(std::make_shared<HandleOf<TArray>>(*array)),
                                      AccessMode::ReadsWrites,
                                      AccessRange::Whole,
                                      {},
                                      {}});
        model.name = fmt::format("swap {} and {}", model_->arrays[model.accesses[0].array]->name(),
                                 model_->arrays[model.accesses[1].array]->name());
        model.call = [&a, &b] { a.swapData(b); };
        model_->add(std::move(model));
    }

    /// Finishes pulled ghosts of `pair` before they are read: `functor(row, view)` runs for the ghosts of a region
    /// after each pull that the plan makes, and not after one that it drops. Rotated periodic images, say. Local.
    /// Throws ArgumentError for regions with owned rows or with the ghosts of another mapping.
    template <class TArray, class Functor>
    void finishPulls(TArray &pair, const Region &ghosts, Functor functor) {
        using Changed = TaskArgument<TArray, AccessMode::ReadsWrites>;
        const std::size_t array = model_->add(std::make_shared<HandleOf<TArray>>(pair));
        model_->add(PullFinish{array, ghosts,
                               std::make_shared<LoopBody<Functor, Changed>>(std::move(functor), Changed{&pair})});
    }

    /// Each run ends with the smallest, largest or summed value of each column of the owned rows of `array` on all
    /// ranks, or of each component of the cells of a field on blocks. An array without ghosts may have copies of other
    /// ranks' rows after its own: its first `rows` rows count, or the number of own rows of the graph's loops over it;
    /// if neither is known, `compile` throws. Sums are those of ExactAccumulator: the same bits on any number of
    /// ranks, in any number of threads, on the device. A NaN makes the result NaN, as does an infinite term of a sum.
    /// Local; see Plan::result.
    template <class TArray>
    Reduction reduce(std::string name, ReduceOp op, TArray &array, std::optional<index> rows = {}) {
        ReductionModel model = reductionOf(std::move(name), op, array);
        model.rows = rows;
        model.lists = ReducedOf<TArray>::lists(array, nullptr);
        return add(std::move(model));
    }
    /// The same over owned rows of a region: `reduce("lift", ReduceOp::Sum, rowsOf(forces, wall))`. The array may have
    /// rows for ghosts, which do not count. Throws ArgumentError for regions with ghosts, or of other rows.
    template <class TArray>
    Reduction reduce(std::string name, ReduceOp op, const RowSelection<TArray> &rows) {
        DNDS_CHECK(rows.range == AccessRange::Region || rows.range == AccessRange::Owned, ArgumentError,
                   "reduction '{}' is over rows that nobody named: write rowsOf(array, region)", name);
        ReductionModel model = reductionOf(std::move(name), op, *rows.array);
        if (rows.region) {
            model_->requireReducible(model, *rows.region);
            model.region = rows.region->name();
            if (!rows.region->rows())
                model.rows = rows.region->space().owned();
        }
        model.lists = ReducedOf<TArray>::lists(*rows.array, rows.region ? rows.region->rows().get() : nullptr);
        return add(std::move(model));
    }

    /// Makes a plan. The graph may be changed and compiled again afterwards; plans keep their own copies.
    /// Collective. Costs about one step per task for the sets of rows, the set-up of exchanges, and some
    /// reductions a task. Throws on all ranks: StateError if ranks declare different tasks, naming the first;
    /// ArgumentError or IndexError for regions and adjacencies that contradict each other; the errors of setting up
    /// exchanges.
    Plan compile(const Executor &executor = Executor::host(), const CompileOptions &options = {}) const {
        return Plan::compile(*model_, comm_, executor, options);
    }

    /// The name for messages and traces.
    const std::string &name() const noexcept { return model_->name; }

    /// For bindings: the graph without types.
    GraphModel &model() noexcept { return *model_; }

  private:
    template <class TArray>
    ReductionModel reductionOf(std::string name, ReduceOp op, TArray &array) {
        using Of = ReducedOf<TArray>;
        using Father = std::remove_cvref_t<decltype(Of::father(array))>;
        static_assert(std::is_same_v<typename Father::Element, real> && isFixedLayout(Father::layout),
                      "reductions are of arrays of real numbers whose rows have one width");
        ReductionModel model{std::move(name),
                             model_->add(std::make_shared<HandleOf<TArray>>(array)),
                             op,
                             Of::columns(array),
                             {},
                             {},
                             {},
                             {},
                             {}};
        model.width = [&array] { return Of::columns(array); };
        model.elements = [&array](MemorySpace space) -> std::span<const real> {
            const auto &all = Of::father(array);
            const std::size_t count = toSize(all.size()) * static_cast<std::size_t>(all.rowSize());
            const auto view = [&](const auto &taken) { return std::span<const real>(taken.data(), count); };
            return space == MemorySpace::Host ? view(all.template deviceView<DeviceBackend::Host>())
                                              : view(all.template deviceView<DeviceBackend::CUDA>());
        };
        return model;
    }
    Reduction add(ReductionModel model) {
        model_->requireFits(model);
        model_->reductions.push_back(std::move(model));
        return Reduction{model_->reductions.size() - 1};
    }
    TaskBuilder<> begin(std::string name, TaskKind kind, std::optional<Region> rows, index every = 1,
                        std::shared_ptr<std::future<void>> async = nullptr) {
        TaskModel model;
        model.every = every;
        model.async = std::move(async);
        model.name = std::move(name);
        model.kind = kind;
        model.loop = std::move(rows);
        return {*model_, std::move(model), {}};
    }

    std::unique_ptr<GraphModel> model_ = std::make_unique<GraphModel>();
    CommunicatorView comm_;
};

} // namespace DNDS::Task
