#include "Arguments.hpp"
#include "Errors.hpp"
#include "PlanHandle.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <utility>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Recompute = Task::CompileOptions::Recompute;
constexpr Words<Recompute, 3> recomputeWords{{{"as-declared", Recompute::AsDeclared},
                                              {"never", Recompute::Never},
                                              {"where-possible", Recompute::WherePossible}}};

/// Tasks with Python functions. Bodies are made with each plan.
struct Graph {
    Graph(const std::string &name, CommPtr given) : comm(std::move(given)) { model.name = name; }

    CommPtr comm;
    Task::GraphModel model;
    std::vector<Field *> fields;         ///< [arrays of the model]
    std::vector<TaskFunction> functions; ///< [tasks of the model]
    std::vector<TaskFunction> finishes;  ///< [finishes of the model]
    std::vector<nb::object> kept;

    std::size_t add(const nb::object &field) {
        auto *const known = nb::cast<Field *>(field);
        DNDS_CHECK(rowKindName(known->father().shape().layout) == "fixed", LayoutError,
                   "'{}' has rows of different sizes: tasks take fields of one width", known->father().label());
        const std::size_t array = model.add(std::make_shared<FieldHandle>(*known));
        if (array == fields.size()) {
            fields.push_back(known);
            kept.push_back(field);
        }
        return array;
    }
};

int visitGraph(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    if (nb::inst_ready(self))
        for (const nb::object &object : nb::inst_ptr<Graph>(self)->kept)
            Py_VISIT(object.ptr());
    return 0;
}

int clearGraph(PyObject *self) {
    auto *graph = nb::inst_ptr<Graph>(self);
    graph->model = {};
    graph->fields.clear();
    graph->functions.clear();
    graph->finishes.clear();
    const std::vector<nb::object> kept = std::move(graph->kept); // what goes with them may look here
    graph->kept.clear();
    return 0;
}

PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(visitGraph)},
                       {Py_tp_clear, reinterpret_cast<void *>(clearGraph)},
                       {0, nullptr}};

/// Arguments of a decorator.
struct Declaration {
    nb::object reads, writes, readsWrites, adds;
    std::optional<std::string> name;
};

void declare(Graph &self, Task::TaskModel &task, TaskFunction &function, Task::AccessMode mode,
             const nb::object &given) {
    const bool one = nb::isinstance<Field>(given) || nb::isinstance<SeenRows>(given);
    for (const nb::handle each : one ? nb::object(nb::make_tuple(given)) : given) {
        SeenRows seen = seenRowsOf(each);
        if (task.kind == Task::TaskKind::Call && seen.range == Task::AccessRange::SameRow)
            seen.range = Task::AccessRange::Whole;
        const std::size_t array = self.add(seen.field);
        if (seen.table.is_valid())
            self.kept.push_back(seen.table);
        auto argument = std::ranges::find(function.arguments, self.fields[array], &TaskFunction::Argument::field);
        if (argument == function.arguments.end())
            argument = function.arguments.insert(argument, {self.fields[array], mode, {}});
        argument->accesses.push_back(task.accesses.size());
        task.accesses.push_back({array, mode, seen.range, std::move(seen.adjacency), std::move(seen.region)});
    }
}

/// Adds a task that runs `function`, which is returned unchanged.
nb::object addTask(Graph &self, Task::TaskModel task, const Declaration &given, const nb::object &function) {
    if (PyCallable_Check(function.ptr()) == 0)
        throw nb::type_error("a task is a function: put @graph.task(...) in front of its def");
    task.name =
        given.name ? *given.name : nb::cast<std::string>(nb::str(nb::getattr(function, "__name__", nb::str("task"))));
    TaskFunction body{function, {}};
    declare(self, task, body, Task::AccessMode::Reads, given.reads);
    declare(self, task, body, Task::AccessMode::Writes, given.writes);
    declare(self, task, body, Task::AccessMode::ReadsWrites, given.readsWrites);
    declare(self, task, body, Task::AccessMode::Adds, given.adds);
    self.model.add(std::move(task));
    self.functions.push_back(std::move(body));
    self.kept.push_back(function);
    return function;
}

nb::object decorator(nb::handle_t<Graph> self, Task::TaskModel task, Declaration given) {
    return nb::cpp_function(
        [graph = nb::borrow(self), task = std::move(task), given = std::move(given)](const nb::object &function) {
            return addTask(nb::cast<Graph &>(graph), task, given, function);
        });
}

nb::object finishPulls(nb::handle_t<Graph> self, const nb::object &field, const Task::Region &ghosts) {
    return nb::cpp_function([graph = nb::borrow(self), field, ghosts](const nb::object &function) {
        Graph &mine = nb::cast<Graph &>(graph);
        const std::size_t array = mine.add(field);
        mine.model.add(Task::PullFinish{array, ghosts, nullptr});
        mine.finishes.push_back({function, {{mine.fields[array], Task::AccessMode::ReadsWrites, {}}}});
        mine.kept.push_back(function);
        return function;
    });
}

void swapArrays(Graph &self, const nb::object &a, const nb::object &b) {
    Task::TaskModel task;
    task.kind = Task::TaskKind::Swap;
    Field *const one = nb::cast<Field *>(a), *const other = nb::cast<Field *>(b);
    for (const nb::object &field : {a, b})
        task.accesses.push_back({self.add(field), Task::AccessMode::ReadsWrites, Task::AccessRange::Whole, {}, {}});
    task.name = fmt::format("swap {} and {}", one->father().label(), other->father().label());
    task.call = [one, other] { one->swapData(*other); };
    self.model.add(std::move(task));
    self.functions.emplace_back();
}

std::unique_ptr<PlanHandle> compile(const Graph &self, std::string_view recompute, bool overlap, bool fuse,
                                    bool dropPulls, std::string_view transport) {
    auto made = std::make_unique<PlanHandle>();
    made->name = self.model.name;
    made->comm = self.comm;
    made->kept = self.kept;
    made->failure = std::make_shared<PythonFailure>();
    Task::CompileOptions options;
    Task::GraphModel model = self.model;
    guarded(self.comm->view, [&] { // an error on one rank throws on all
        options.recompute = chosen(recompute, "choice of recomputing", recomputeWords);
        options.exchange.transport = transportFromName(transport);
        options.overlap = overlap;
        options.fuse = fuse;
        options.dropPulls = dropPulls;
        for (std::size_t t = 0; t < model.tasks.size(); ++t) {
            Task::TaskModel &task = model.tasks[t];
            if (task.kind == Task::TaskKind::Loop)
                task.body = loopBody(self.functions[t], made->failure);
            if (task.kind == Task::TaskKind::Call)
                task.call = callBody(self.functions[t], made->failure);
        }
        for (std::size_t k = 0; k < model.finishes.size(); ++k)
            model.finishes[k].body = loopBody(self.finishes[k], made->failure);
        for (Field *const field : self.fields) {
            field->requireLanded("be used by a plan");
            made->fields.push_back({field, field->pair().pattern()});
        }
    });
    {
        const nb::gil_scoped_release others;
        made->plan.emplace(Task::Plan::compile(std::move(model), self.comm->view, Executor::host(), options));
        made->context = CommunicatorContext::of(self.comm->view);
        made->written = std::make_unique<MessageReduction>(*made->context, fmt::format("plan '{}'", made->name));
    }
    for (const Task::Transfer &transfer : made->plan->model().transfers)
        for (const std::size_t array : transfer.arrays)
            made->fields[array].entered = made->fields[array].entered || transfer.conditional;
    for (const Task::PullFinish &finish : self.model.finishes)
        made->fields[finish.array].finished = true;
    return made;
}

#define DNDS_ACCESSES                                                                                                  \
    "reads: collections.abc.Sequence[Field | SeenRows] | Field | SeenRows = (), "                                      \
    "writes: collections.abc.Sequence[Field] | Field = (), "                                                           \
    "reads_writes: collections.abc.Sequence[Field] | Field = (), "
#define DNDS_DECORATOR                                                                                                 \
    "-> collections.abc.Callable[[collections.abc.Callable[..., typing.Any]], "                                        \
    "collections.abc.Callable[..., typing.Any]]"

const char *const taskText =
    R"(A decorator: the function below becomes a task that loops over `rows`, the cells, nodes or faces of a mesh, a
Region, or the rows of a Field. It is called as function(numbers, *reads, *writes, *reads_writes, *adds): `numbers` are
some of the rows, ascending, an integer array; of each field declared, in that order and once, it gets owned rows and
ghosts as one NumPy array, read-only where it is in `reads`, and an AddedRows where it is in `adds`.

`reads`: fields whose rows `numbers` it reads, or rows seen by Field.through, whole, without_ghosts, within; both where
it reads both, as in reads=[u, u.through(mesh.cell_cells)]. `writes`: fields whose rows `numbers` it sets without reading
them. `reads_writes`: fields whose rows it changes. `adds`: fields to whose rows it adds, as in
residual.through(mesh.face_cells); what is added to ghosts goes to their owners. Such a function may be called more than
once for a row, and must write nothing else.

The function is called for one part of the rows after another, so what it computes for a row must depend on no others
than those declared. `recompute_ghosts`: it computes ghosts, too, where that saves pulling what it writes. Local.
Raises ArgumentError for contradictions.)";

void bindTasks(nb::class_<Graph> &type) {
    type.def(
            "task",
            [](nb::handle_t<Graph> self, nb::handle rows, nb::object reads, nb::object writes, nb::object readsWrites,
               nb::object adds, bool recomputeGhosts, std::optional<std::string> name) {
                Task::TaskModel task;
                task.loop = loopOf(rows);
                task.recomputesGhosts = recomputeGhosts;
                return decorator(
                    self, std::move(task),
                    {std::move(reads), std::move(writes), std::move(readsWrites), std::move(adds), std::move(name)});
            },
            "rows"_a, nb::kw_only(), "reads"_a = nb::make_tuple(), "writes"_a = nb::make_tuple(),
            "reads_writes"_a = nb::make_tuple(), "adds"_a = nb::make_tuple(), "recompute_ghosts"_a = false,
            "name"_a.none() = nb::none(),
            nb::sig("def task(self, rows: Entities | Region | Field, *, " DNDS_ACCESSES
                    "adds: collections.abc.Sequence[Field | SeenRows] | Field | SeenRows = (), "
                    "recompute_ghosts: bool = False, name: str | None = None) " DNDS_DECORATOR),
            taskText)
        .def(
            "call",
            [](nb::handle_t<Graph> self, nb::object reads, nb::object writes, nb::object readsWrites,
               std::optional<std::string> name) {
                Task::TaskModel task;
                task.kind = Task::TaskKind::Call;
                return decorator(
                    self, std::move(task),
                    {std::move(reads), std::move(writes), std::move(readsWrites), nb::make_tuple(), std::move(name)});
            },
            nb::kw_only(), "reads"_a = nb::make_tuple(), "writes"_a = nb::make_tuple(),
            "reads_writes"_a = nb::make_tuple(), "name"_a.none() = nb::none(),
            nb::sig("def call(self, *, " DNDS_ACCESSES "name: str | None = None) " DNDS_DECORATOR),
            R"(A decorator for a task that is no loop: output, a library call. The function is called once a run, on all ranks, as
function(*reads, *writes, *reads_writes), with the whole of each field unless rows are named. It may use MPI, on a
communicator of its own. Local.)")
        .def("swap", &swapArrays, "a"_a, "b"_a, nb::sig("def swap(self, a: Field, b: Field) -> None"),
             "Swaps the contents of two fields with the same ghosts, such as old and new states. Local.")
        .def(
            "finish_pulls", &finishPulls, "field"_a, "ghosts"_a,
            nb::sig("def finish_pulls(self, field: Field, ghosts: Region) " DNDS_DECORATOR),
            R"(A decorator for what pulled ghosts of a field need before they are read, such as rotation: function(numbers, field)
is called for a region of ghosts after each pull that the plan makes, and not after one that it drops. Local.)");
}

} // namespace

void bindGraph(nb::module_ &module) {
    nb::class_<Graph> type(module, "Graph", nb::type_slots(slots),
                           R"(A solver's step: functions in program order, each with what it reads and writes.

The library finds out which ghosts have to be pulled when, computes meanwhile what needs none, and runs all as a Plan.

    graph = dnds.Graph("step", mesh.comm)

    @graph.task(mesh.faces, reads=[u.through(mesh.face_cells)], writes=[flux])
    def fluxes(faces, u, flux):
        left, right = mesh.face_cells[faces].T
        flux[faces] = speed[faces] * np.where(speed[faces] > 0, u[left], u[right])

    plan = graph.compile()
    plan.run()

What one gets is, to the bit, what one gets by running the tasks one after another over the owned rows, with a pull of
everything before each. Fields are of rows of one width.
)");
    type.def(
        "__init__", [](Graph *self, const std::string &name, nb::handle comm) { new (self) Graph(name, commOf(comm)); },
        "name"_a, "comm"_a.none() = nb::none(),
        nb::sig("def __init__(self, name: str, comm: mpi4py.MPI.Comm | None = None) -> None"),
        "Ranks of `comm`, MPI.COMM_WORLD unless given, declare the same tasks in the same order. Local.");
    bindTasks(type);
    type.def(
            "compile", &compile, nb::kw_only(), "recompute"_a = "as-declared", "overlap"_a = true, "fuse"_a = true,
            "drop_pulls"_a = true, "transport"_a = "auto",
            R"(Makes a plan, which runs functions in the thread that runs it. The graph may be changed and compiled again.

`recompute` is "as-declared" (by recompute_ghosts), "never" or "where-possible". `overlap` splits tasks so
that pulls run beside rows that need none; `fuse` moves several fields in one message; `drop_pulls` leaves out pulls of
ghosts that are current. None of this changes results. Collective. Raises on all ranks: StateError where ranks declare
different tasks, ArgumentError, IndexError.)")
        .def_prop_ro(
            "name", [](const Graph &self) { return self.model.name; }, "The name in messages.")
        .def("__repr__", [](const Graph &self) {
            return fmt::format("<dnds.Graph '{}' of {} tasks>", self.model.name, self.model.tasks.size());
        });
    module.def(
        "changed", [](Field &field) { field.father().markWritten(); }, "field"_a,
        R"(Tells plans that a field was written through an array that was kept, so that the next run pulls it. Needed on the
ranks that wrote it. Local.)");
}

#undef DNDS_ACCESSES
#undef DNDS_DECORATOR

} // namespace DNDS::Python
