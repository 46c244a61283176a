#include "Launch.hpp"

#include "DNDS/Device/ParallelFor.hpp"

namespace Euler {

namespace {

template <class Kernel>
struct OfRows {
    RowList rows;
    Kernel kernel;
    DNDS_HOST_DEVICE void operator()(index i) const { kernel(rows(i)); }
};

template <class Kernel>
void start(const DNDS::Executor &executor, RowList rows, const Kernel &kernel) {
    DNDS::parallelFor(executor, rows.size(), OfRows<Kernel>{rows, kernel});
}

} // namespace

void launch(const DNDS::Executor &executor, RowList rows, const GradientKernel &kernel) {
    start(executor, rows, kernel);
}
void launch(const DNDS::Executor &executor, RowList rows, const FluxKernel &kernel) { start(executor, rows, kernel); }
void launch(const DNDS::Executor &executor, RowList rows, const UpdateKernel &kernel) { start(executor, rows, kernel); }
void launch(const DNDS::Executor &executor, RowList rows, const TimeStepKernel &kernel) {
    start(executor, rows, kernel);
}
void launch(const DNDS::Executor &executor, RowList rows, const ResidualKernel &kernel) {
    start(executor, rows, kernel);
}
void launch(const DNDS::Executor &executor, RowList rows, const SetTimeStepKernel &kernel) {
    start(executor, rows, kernel);
}
void launch(const DNDS::Executor &executor, RowList rows, const AmountKernel &kernel) { start(executor, rows, kernel); }
void launch(const DNDS::Executor &executor, RowList rows, const TurnStateKernel &kernel) {
    start(executor, rows, kernel);
}
void launch(const DNDS::Executor &executor, RowList rows, const TurnGradientKernel &kernel) {
    start(executor, rows, kernel);
}
void launch(const DNDS::Executor &executor, const ForceKernel &kernel) {
    DNDS::parallelFor(executor, kernel.faces.size(), kernel);
}

} // namespace Euler
