#include "PlanHandle.hpp"

#include "DNDS/Base/Error.hpp"
#include "Errors.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace DNDS::Python {

namespace nb = nanobind;

Task::Plan &PlanHandle::get() {
    DNDS_CHECK(plan.has_value(), StateError, "plan '{}' is gone: the garbage collector has taken it", name);
    return *plan;
}

void PlanHandle::requireReady() {
    for (const Used &used : fields) {
        used.field->requireLanded("be used by a plan");
        DNDS_CHECK(used.field->pair().pattern() == used.pattern, StateError,
                   "'{}' has got other ghosts since plan '{}' was compiled: compile it again",
                   used.field->father().label(), name);
    }
}

/// Whether the field was not written here since all ranks knew that their copies match. In Python merely
/// looking at `owned` counts as writing.
bool PlanHandle::isCurrent(const Used &used) const {
    const Field &field = *used.field;
    return field.known() == field.versions() ||
           (!used.finished && field.son().pulledFrom() == field.father().version());
}

void PlanHandle::meet() {
    if (comm->view.size() == 1)
        return;
    std::vector<unsigned char> found;
    for (const Used &used : fields)
        found.push_back(used.entered && !isCurrent(used) ? 1 : 0);
    constexpr auto either = [](unsigned char a, unsigned char b) noexcept { return std::max(a, b); };
    {
        const nb::gil_scoped_release others;
        written->reduce(std::span(found), combineEach<unsigned char, either>);
    }
    for (std::size_t k = 0; k < fields.size(); ++k)
        if (found[k] != 0)
            fields[k].field->father().markWritten();
}

void PlanHandle::run() {
    (void)get();
    DNDS_CHECK(!running, StateError, "plan '{}' is running: neither its own tasks nor other threads can run it", name);
    running = true;
    const std::exception_ptr thrown = attempt([&] { runOnce(); });
    running = false;
    if (thrown)
        std::rethrow_exception(thrown);
    for (const Used &used : fields)
        used.field->setKnown();
}

void PlanHandle::runOnce() {
    context->running("run of", name, [&] {
        requireReady();
        meet();
    });
    failure->raised = nullptr;
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
}

void PlanHandle::recover() {
    Task::Plan &mine = get();
    DNDS_CHECK(!running, StateError, "plan '{}' is running: its own tasks cannot recover it", name);
    const nb::gil_scoped_release others;
    mine.recover();
}

} // namespace DNDS::Python
