#include "PlanHandle.hpp"

#include "Errors.hpp"

#include <utility>

namespace DNDS::Python {

namespace nb = nanobind;

Task::Plan &PlanHandle::get() {
    DNDS_CHECK(plan.has_value(), StateError, "plan '{}' is gone: the garbage collector has taken it", name);
    return *plan;
}

void PlanHandle::requireReady() {
    DNDS_CHECK(!failed, StateError, "a run of '{}' has failed: call recover() on all ranks before the next one", name);
    for (const Used &used : fields) {
        used.field->needLanded("be used by a plan");
        DNDS_CHECK(used.field->pair().pattern() == used.pattern, StateError,
                   "'{}' has got other ghosts since plan '{}' was compiled: compile it again",
                   used.field->father().label(), name);
    }
}

/// Whether nobody has written the field here since all ranks knew that their copies belong together. In Python merely
/// looking at `owned` counts as writing.
bool PlanHandle::isCurrent(const Used &used) const {
    const Field &field = *used.field;
    return field.known() == field.versions() ||
           (!used.finished && field.son().pulledFrom() == field.father().version());
}

bool PlanHandle::meet(bool recovers, bool fails) {
    if (comm->view.size() == 1)
        return recovers;
    std::vector<int> found{recovers, !recovers, fails};
    for (const Used &used : fields)
        found.push_back(used.entered && !isCurrent(used));
    {
        const nb::gil_scoped_release others;
        comm->view.allReduce(found.data(), static_cast<int>(found.size()), MPI_MAX);
    }
    if (!recovers) {
        DNDS_CHECK(fails || found[0] == 0, PeerError,
                   "a run of '{}' has failed on another rank: call recover() on all ranks before the next one", name);
        DNDS_CHECK(fails || found[2] == 0, PeerError, "'{}' cannot be run on another rank", name);
    }
    for (std::size_t k = 0; k < fields.size(); ++k)
        if (found[k + 3] != 0)
            fields[k].field->father().markWritten();
    return found[1] == 0;
}

void PlanHandle::run() {
    (void)get();
    DNDS_CHECK(!running, StateError, "plan '{}' is running: neither its own tasks nor other threads can run it", name);
    running = true;
    try {
        runOnce();
    } catch (...) {
        running = false;
        throw;
    }
    running = false;
    for (const Used &used : fields)
        used.field->setKnown();
}

void PlanHandle::runOnce() {
    std::exception_ptr unready;
    try {
        requireReady();
    } catch (...) {
        unready = std::current_exception();
    }
    (void)meet(false, unready != nullptr);
    if (unready)
        std::rethrow_exception(unready);
    failure->raised = nullptr;
    failed = true;
    try {
        const nb::gil_scoped_release others;
        plan->run();
    } catch (const Error &error) {
        const std::exception_ptr raised = std::exchange(failure->raised, nullptr);
        if (!raised)
            throw;
        const std::size_t place = error.message().find(raisedText); // after "in task ...: "
        rethrowWithNote(raised, place < 2 ? "while pulled ghosts were finished" : error.message().substr(0, place - 2));
    }
    failed = false;
}

void PlanHandle::recover() {
    Task::Plan &mine = get();
    DNDS_CHECK(!running, StateError, "plan '{}' is running: its own tasks cannot recover it", name);
    while (!meet(true, false)) // others come here once they know
        ;
    const nb::gil_scoped_release others;
    mine.recover();
    failed = false;
}

} // namespace DNDS::Python
