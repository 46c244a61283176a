/// @file Jacobi.hpp
/// @brief Kernels of a Jacobi iteration that exchanges its rims by itself.
#pragma once

#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/OneSided/HeapView.hpp"

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

/// One thread, after all of PutRims: tells both neighbours, then waits for both.
struct Meet {
    Strip strip;
    index step;
    DNDS_HOST_DEVICE void operator()(index /*thread*/) const {
        const auto count = static_cast<std::uint64_t>(step + 1);
        strip.heap.signal(strip.signals + 1, count, DNDS::SignalOp::Set, strip.before);
        strip.heap.signal(strip.signals, count, DNDS::SignalOp::Set, strip.after);
        strip.heap.waitUntil(strip.signals, DNDS::Comparison::GreaterOrEqual, count);
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

/// Queues `count` steps from `first` on; on the host, runs them. No rank's host takes part in what happens between.
void iterate(const DNDS::Executor &executor, const Strip &strip, index first, index count);

} // namespace Jacobi
