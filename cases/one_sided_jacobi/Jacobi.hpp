/// @file Jacobi.hpp
/// @brief Kernels of a Jacobi iteration that exchanges its rims by itself.
#pragma once

#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/OneSided/KernelViews.hpp"

namespace Jacobi {

using DNDS::index;
using DNDS::real;

/// The new value of a cell from its neighbours; both programs compute it in this order.
DNDS_HOST_DEVICE inline real average(real south, real north, real west, real east) {
    return 0.25 * ((south + north) + (west + east));
}

/// A strip of rows of this rank, in two windows that take turns: each has `rows` own rows between two rows of halo.
/// Signal 0 comes from the rank before, signal 1 from the rank after, and counts the steps whose rims are there.
struct Strip {
    DNDS::HeapView heap;
    DNDS::SymmetricPointer<real> windows;          ///< [2][rows + 2][columns]
    DNDS::SymmetricPointer<std::uint64_t> signals; ///< [2]
    DNDS::SymmetricPointer<std::uint64_t> arrived; ///< threads of `Iterate` that have come to its barriers, in total
    index rows;
    index columns;
    int before, after; ///< ranks

    DNDS_HOST_DEVICE DNDS::SymmetricPointer<real> row(index step, index r) const {
        return windows + ((step % 2) * (rows + 2) + r) * columns;
    }
};

/// Thread c puts column c of the rims of `step` into the neighbours' halos.
struct PutRims {
    Strip strip;
    index step;
    DNDS_HOST_DEVICE void operator()(index c) const {
        const real *first = strip.heap.local(strip.row(step, 1));
        const real *last = strip.heap.local(strip.row(step, strip.rows));
        strip.heap.putValue(strip.row(step, strip.rows + 1) + c, first[c], strip.before);
        strip.heap.putValue(strip.row(step, 0) + c, last[c], strip.after);
    }
};

/// One thread, after all of PutRims: tells both neighbours, then waits for both; whether they came.
struct Meet {
    Strip strip;
    index step;
    DNDS_HOST_DEVICE bool operator()(index /*thread*/) const {
        const auto count = static_cast<std::uint64_t>(step + 1);
        strip.heap.signal(strip.signals + 1, count, DNDS::SignalOp::Set, strip.before);
        strip.heap.signal(strip.signals, count, DNDS::SignalOp::Set, strip.after);
        return strip.heap.waitUntil(strip.signals, DNDS::Comparison::GreaterOrEqual, count) &&
               strip.heap.waitUntil(strip.signals + 1, DNDS::Comparison::GreaterOrEqual, count);
    }
};

/// Thread i computes a cell of the window of `step + 1` from that of `step`. Columns at the ends stay as they are.
struct Sweep {
    Strip strip;
    index step;
    DNDS_HOST_DEVICE void operator()(index i) const {
        const index r = 1 + i / strip.columns;
        const index c = i % strip.columns;
        const real *middle = strip.heap.local(strip.row(step, r));
        const real *south = middle - strip.columns;
        const real *north = middle + strip.columns;
        strip.heap.local(strip.row(step + 1, r))[c] =
            c == 0 || c == strip.columns - 1 ? middle[c] : average(south[c], north[c], middle[c - 1], middle[c + 1]);
    }
};

/// One of `workers` threads that do `count` steps from `first` on in one kernel. They wait for each other, so all of
/// them have to run at the same time. A worker that waits for too long ends, and then the others end, too.
struct Iterate {
    Strip strip;
    index first, count;
    index workers; ///< the same in all launches
    DNDS_HOST_DEVICE void operator()(index worker) const {
        for (index step = first; step < first + count; ++step) {
            share(worker, strip.columns, PutRims{strip, step});
            if (!barrier(3 * step + 1) || (worker == 0 && !Meet{strip, step}(0)) || !barrier(3 * step + 2))
                return;
            share(worker, strip.rows * strip.columns, Sweep{strip, step});
            if (!barrier(3 * step + 3))
                return;
        }
    }

  private:
    template <class Part>
    DNDS_HOST_DEVICE void share(index worker, index size, const Part &part) const {
        for (index i = worker; i < size; i += workers)
            part(i);
    }
    /// Of the workers; barriers are numbered from 1 on. Whether all came.
    DNDS_HOST_DEVICE bool barrier(index number) const {
        DNDS::Atomics::fenceSystem();
        strip.heap.add(strip.arrived, 1, strip.heap.rank());
        return strip.heap.waitUntil(strip.arrived, DNDS::Comparison::GreaterOrEqual,
                                    static_cast<std::uint64_t>(workers * number));
    }
};

/// Queues `count` steps from `first` on, three kernels each; on the host, runs them. No rank's host takes part in what
/// happens between.
void iterate(const DNDS::Executor &executor, const Strip &strip, index first, index count);

/// The same in one kernel of `workers` threads, on the device.
void iterateInOneKernel(DNDS::Device::StreamHandle stream, const Iterate &steps);

} // namespace Jacobi
