#include "PlanHandle.hpp"

#include <nanobind/stl/string.h>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/// For the garbage collector: functions often hold the plan that runs them.
int visitPlan(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    if (nb::inst_ready(self))
        for (const nb::object &object : nb::inst_ptr<PlanHandle>(self)->kept)
            Py_VISIT(object.ptr());
    return 0;
}

int clearPlan(PyObject *self) {
    auto *plan = nb::inst_ptr<PlanHandle>(self);
    plan->plan.reset();
    plan->fields.clear();
    const std::vector<nb::object> kept = std::move(plan->kept); // what goes with them may look here
    plan->kept.clear();
    return 0;
}

PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(visitPlan)},
                       {Py_tp_clear, reinterpret_cast<void *>(clearPlan)},
                       {0, nullptr}};

nb::dict statisticsOf(PlanHandle &self) {
    const Task::PlanStatistics &done = self.get().statistics();
    nb::dict result;
    result["runs"] = done.runs;
    result["parts"] = done.parts;
    result["transfers"] = done.transfers;
    result["dropped"] = done.dropped;
    result["seconds"] = done.seconds;
    result["seconds_starting"] = done.secondsStarting;
    result["seconds_waiting"] = done.secondsWaiting;
    result["bytes_sent"] = done.bytesSent;
    result["bytes_received"] = done.bytesReceived;
    return result;
}

} // namespace

void bindPlan(nb::module_ &module) {
    nb::class_<PlanHandle>(
        module, "Plan", nb::type_slots(slots),
        R"(A graph's tasks, split into parts, with the pulls and pushes that they need: see Graph.compile.

Keeps the fields and functions of its tasks alive.)")
        .def("run", &PlanHandle::run,
             R"(Runs the tasks once. On all ranks, which agree first on what was written since the last run.

Pulls of ghosts that are current then are left out. Looking at `owned`, `ghosts` or `data` of a field counts as
writing it, on any rank; what is written through an array that was kept is not seen: call `dnds.changed`.

What a task function raises comes out on its rank, with a note that names the task; other ranks raise RevokedError, in
this run or the next. Then call `recover` on all ranks, and write anew what the failed tasks were writing.)")
        .def("recover", &PlanHandle::recover,
             "After `run` raised on any rank: recovers the communicator, as dnds.recover does. Collective.")
        .def(
            "describe", [](PlanHandle &self) { return self.get().describe(); },
            "A table of parts, rows, what waits for what, and which pulls are made or dropped and why. Local.")
        .def(
            "dot", [](PlanHandle &self) { return self.get().dot(); },
            "The parts and what waits for what, in the language of Graphviz. Local.")
        .def_prop_ro("statistics", &statisticsOf, nb::sig("def statistics(self) -> dict[str, int | float]"),
                     "What this rank has done in all runs: runs, parts, transfers, dropped pulls, seconds, bytes.")
        .def("__repr__", [](const PlanHandle &self) { return fmt::format("<dnds.Plan of '{}'>", self.name); });
}

} // namespace DNDS::Python
