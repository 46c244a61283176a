#include "Kernels.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Storage/ForRows.hpp"

#include <span>

namespace DNDS::Bench {

namespace {

struct Nothing {
    DNDS_HOST_DEVICE void operator()(index /*thread*/) const {}
};

struct CopyRow {
    const real *from;
    const LocalIndex *rows;
    real *to;
    int width;
    DNDS_HOST_DEVICE void operator()(index r) const {
        const index source = index{rows[r]} * width;
        for (int k = 0; k < width; ++k)
            to[r * width + k] = from[source + k];
    }
};

struct CopyElement {
    const real *from;
    const LocalIndex *rows;
    real *to;
    unsigned width;
    DNDS_HOST_DEVICE void operator()(index i) const {
        const auto element = static_cast<unsigned>(i);
        const unsigned row = element / width;
        to[i] = from[static_cast<index>(rows[row]) * width + (element - row * width)];
    }
};

/// One row of a sweep, from wherever the rows come.
template <std::size_t width>
struct AddRow {
    real a;
    DNDS_HOST_DEVICE void operator()(index /*row*/, std::span<const real, width> x, std::span<real, width> y) const {
        for (std::size_t k = 0; k < width; ++k)
            y[k] += a * x[k];
    }
};

/// One row of a stencil: the row itself is given, those of its neighbours are read in place.
template <std::size_t width>
struct SumOfNeighbours {
    ArrayView<const LocalIndex, 4> neighbours;
    ArrayView<const real, static_cast<rowsize>(width)> all;
    DNDS_HOST_DEVICE void operator()(index row, std::span<const real, width> x, std::span<real, width> y) const {
        real sum[width] = {}; // NOLINT: plain arrays, for kernels
        for (rowsize n = 0; n < 4; ++n) {
            const real *there = all[neighbours(row, n)];
            for (std::size_t k = 0; k < width; ++k)
                sum[k] += there[k] - x[k];
        }
        for (std::size_t k = 0; k < width; ++k)
            y[k] = sum[k];
    }
};

/// The same kernel with a thread's rows read and written in place.
template <class Functor, class X, class Y>
struct InPlace {
    Functor functor;
    X x;
    Y y;
    DNDS_HOST_DEVICE void operator()(index row) const { functor(row, x.row(row), y.row(row)); }
};

template <class Functor, class X, class Y>
void overRows(OwnRows how, index count, const Functor &functor, const X &x, const Y &y, Device::StreamHandle stream) {
    if (how == OwnRows::InPlace)
        parallelFor(Executor::device(stream), count, InPlace<Functor, X, Y>{functor, x, y});
    else
        forRows(Executor::device(stream), count, functor, x, y);
}

/// Calls `work` with the width as a constant.
template <class Work>
void withWidth(int width, const Work &work) {
    switch (width) {
    case 3:
        return work(std::integral_constant<rowsize, 3>());
    case 5:
        return work(std::integral_constant<rowsize, 5>());
    case 8:
        return work(std::integral_constant<rowsize, 8>());
    default:
        throw ArgumentError("there are kernels for rows of 3, 5 and 8 doubles");
    }
}

struct Axpy {
    real a;
    const real *x;
    real *y;
    DNDS_HOST_DEVICE void operator()(index i) const { y[i] += a * x[i]; }
};

} // namespace

void emptyKernel(Device::StreamHandle stream) { parallelFor(Executor::device(stream), 1, Nothing{}); }

void threadPerRow(const real *from, const LocalIndex *rows, real *to, index count, int width,
                  Device::StreamHandle stream) {
    parallelFor(Executor::device(stream), count, CopyRow{from, rows, to, width});
}

void threadPerElement(const real *from, const LocalIndex *rows, real *to, index count, int width,
                      Device::StreamHandle stream) {
    parallelFor(Executor::device(stream), count * width, CopyElement{from, rows, to, static_cast<unsigned>(width)});
}

void sweepRows(OwnRows how, int width, real a, const real *x, real *y, index count, Device::StreamHandle stream) {
    withWidth(width, [&](auto constant) {
        constexpr rowsize w = decltype(constant)::value;
        overRows(how, count, AddRow<static_cast<std::size_t>(w)>{a}, readRows(ArrayView<const real, w>(x, count, {})),
                 updateRows(ArrayView<real, w>(y, count, {})), stream);
    });
}

void sumNeighbours(OwnRows how, int width, const LocalIndex *neighbours, const real *x, real *y, index count,
                   Device::StreamHandle stream) {
    withWidth(width, [&](auto constant) {
        constexpr rowsize w = decltype(constant)::value;
        const ArrayView<const real, w> rows(x, count, {});
        overRows(
            how, count,
            SumOfNeighbours<static_cast<std::size_t>(w)>{ArrayView<const LocalIndex, 4>(neighbours, count, {}), rows},
            readRows(rows), writeRows(ArrayView<real, w>(y, count, {})), stream);
    });
}

void axpy(real a, const real *x, real *y, index count, Device::StreamHandle stream) {
    parallelFor(Executor::device(stream), count, Axpy{a, x, y});
}

} // namespace DNDS::Bench
