#include "Kernels.hpp"

#include "DNDS/Device/ParallelFor.hpp"

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

void axpy(real a, const real *x, real *y, index count, Device::StreamHandle stream) {
    parallelFor(Executor::device(stream), count, Axpy{a, x, y});
}

} // namespace DNDS::Bench
