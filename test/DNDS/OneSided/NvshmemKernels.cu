// Kernels over NVSHMEM instead of the proxy: compiled, never run (DNDS_NVSHMEM).

#include "DNDS/OneSided/WindowView.hpp"

#include "DNDS/Device/ParallelFor.hpp"

namespace DNDS {

/// Each operation once, and types that need loops of compare-and-swap.
struct NvshmemOperations {
    HeapView heap;
    SymmetricPointer<std::int64_t> words;
    SymmetricPointer<double> reals;
    SymmetricPointer<std::uint64_t> filled;
    const std::int64_t *values;
    index count;
    int next;
    DNDS_HOST_DEVICE void operator()(index k) const {
        heap.put(words, values, count, next, Lane{k, 32});
        heap.fence();
        heap.signal(filled, 1, SignalOp::Add, next);
        heap.add(reals, 0.5, next);
        heap.max(words, 3, next);
        heap.quiet();
        heap.local(words)[k] = heap.getValue(words + k, next) + heap.compareSwap(words, 1, 2, next);
    }
};

struct NvshmemAccumulate {
    WindowView window;
    const double *values;
    int next;
    DNDS_HOST_DEVICE void operator()(index k) const {
        window.accumulate(values + k, 1, next, k, AccumulateOp::Sum);
        window.flush(next);
    }
};

void launchOverNvshmem(const Executor &executor, const NvshmemOperations &operations, const NvshmemAccumulate &sums) {
    parallelFor(executor, 32, operations);
    parallelFor(executor, 32, sums);
}

} // namespace DNDS
