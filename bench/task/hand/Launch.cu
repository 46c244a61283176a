#include "Launch.hpp"

#include "DNDS/Task/TaskBodies.hpp"

namespace HandWritten {

namespace {

template <class Kernel, class... Rows>
struct OfList {
    RowList list;
    Kernel kernel;
    DNDS::Task::KernelTuple<Rows...> rows;
    DNDS_HOST_DEVICE void operator()(DNDS::index i) const { rows.call(kernel, list(i)); }
};

template <class Kernel, class... Rows>
void start(const DNDS::Executor &executor, RowList list, const Kernel &kernel, const Rows &...rows) {
    DNDS::parallelFor(executor, list.size(), OfList<Kernel, Rows...>{list, kernel, {rows...}});
}

} // namespace

void launch(const DNDS::Executor &executor, RowList rows, const Euler::GradientKernel &kernel, const Views &views) {
    start(executor, rows, kernel, views.state, views.newGradient);
}
void launch(const DNDS::Executor &executor, RowList rows, const Euler::FluxKernel &kernel, const Views &views) {
    start(executor, rows, kernel, views.state, views.gradient, views.newFlux);
}
void launch(const DNDS::Executor &executor, RowList rows, const Euler::FirstUpdateKernel &kernel, const Views &views) {
    start(executor, rows, kernel, views.flux, views.longest, views.length, views.newStart, views.conserved,
          views.newState);
}
void launch(const DNDS::Executor &executor, RowList rows, const Euler::UpdateKernel &kernel, const Views &views) {
    start(executor, rows, kernel, views.flux, views.longest, views.length, views.start, views.conserved,
          views.newState);
}
void launch(const DNDS::Executor &executor, RowList rows, const Euler::TimeStepKernel &kernel, const Views &views) {
    start(executor, rows, kernel, views.state, views.newLongest);
}
void launch(const DNDS::Executor &executor, RowList rows, const Euler::TurnStateKernel &kernel, const Views &views) {
    start(executor, rows, kernel, views.newState);
}
void launch(const DNDS::Executor &executor, RowList rows, const Euler::TurnGradientKernel &kernel, const Views &views) {
    start(executor, rows, kernel, views.newGradient);
}

} // namespace HandWritten
