#include "Jacobi.hpp"

namespace Jacobi {

void iterate(const DNDS::Executor &executor, const Strip &strip, index first, index count) {
    for (index step = first; step < first + count; ++step) {
        DNDS::parallelFor(executor, strip.columns, PutRims{strip, step});
        DNDS::parallelFor(executor, 1, Meet{strip, step});
        DNDS::parallelFor(executor, strip.rows * strip.columns, Sweep{strip, step});
    }
}

void iterateInOneKernel(DNDS::Device::StreamHandle stream, const Iterate &steps) {
    DNDS::parallelFor(DNDS::Executor::device(stream), steps.workers, steps);
}

} // namespace Jacobi
