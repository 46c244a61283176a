#include "DNDS/Array/DofPartition.hpp"

#include "DNDS/Device/DeviceBuffer.hpp"
#include "DNDS/Device/ParallelFor.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <vector>

namespace DNDS::DofDeviceKernels {

namespace {

using namespace DofKernels::Partition;

struct Second {
    DNDS_HOST_DEVICE real operator()(real /*a*/, real b) const { return b; }
};

template <class Kernel>
void launch(StreamHandle stream, std::size_t threads, const Kernel &kernel) {
    parallelFor(Executor::device(stream), static_cast<index>(threads), kernel);
}

// ---------------------------------------------------------------------------------------------------------------------
// Element by element

template <class Apply>
struct WithNumber {
    Apply apply;
    real *x;
    real a;
    DNDS_HOST_DEVICE void operator()(index i) const { x[i] = apply(x[i], a); }
};

template <class Apply>
struct WithElements {
    Apply apply;
    real *x;
    const real *y;
    DNDS_HOST_DEVICE void operator()(index i) const { x[i] = apply(x[i], y[i]); }
};

template <class Apply>
struct WithScalars {
    Apply apply;
    real *x;
    const real *scalars;
    index width;
    DNDS_HOST_DEVICE void operator()(index i) const { x[i] = apply(x[i], scalars[i / width]); }
};

struct AddScaled {
    real *y;
    real a;
    const real *x;
    DNDS_HOST_DEVICE void operator()(index i) const { y[i] += a * x[i]; }
};

/// Some columns of a row, passed in a kernel's arguments.
constexpr std::size_t columnsAtOnce = 32;
template <class Apply>
struct WithColumns {
    Apply apply;
    real *x; ///< from the first of these columns
    index width;
    index columns;
    real values[columnsAtOnce];
    DNDS_HOST_DEVICE void operator()(index i) const {
        real &element = x[i / columns * width + i % columns];
        element = apply(element, values[i % columns]);
    }
};

template <class Apply>
void withRow(StreamHandle stream, Apply apply, std::span<real> x, std::span<const real> row) {
    if (x.empty())
        return;
    const std::size_t rows = x.size() / row.size();
    for (std::size_t first = 0; first < row.size(); first += columnsAtOnce) {
        const std::size_t columns = std::min(columnsAtOnce, row.size() - first);
        WithColumns<Apply> kernel{
            apply, x.data() + first, static_cast<index>(row.size()), static_cast<index>(columns), {}};
        std::copy_n(row.data() + first, columns, kernel.values);
        launch(stream, rows * columns, kernel);
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Sums, in the blocks and lanes of the host

struct Product {
    const real *a;
    const real *b;
    DNDS_HOST_DEVICE real operator()(std::size_t i) const { return a[i] * b[i]; }
};
struct SquaredDifference {
    const real *a;
    const real *b;
    DNDS_HOST_DEVICE real operator()(std::size_t i) const { return (a[i] - b[i]) * (a[i] - b[i]); }
};
struct Element {
    const real *a;
    DNDS_HOST_DEVICE real operator()(std::size_t i) const { return a[i]; }
};

/// Neighbouring threads read neighbouring elements.
template <class Term>
struct LaneSums {
    Term term;
    std::size_t count;
    real *sums; ///< [blocks x lanes]
    DNDS_HOST_DEVICE void operator()(index thread) const {
        const std::size_t begin = static_cast<std::size_t>(thread) / lanes * blockSize;
        const std::size_t size = count - begin < blockSize ? count - begin : blockSize;
        const std::size_t end = begin + size / lanes * lanes;
        real sum = 0;
        for (std::size_t i = begin + static_cast<std::size_t>(thread) % lanes; i < end; i += lanes)
            sum += term(i);
        sums[thread] = sum;
    }
};
template <class Term>
struct BlockSums {
    Term term;
    std::size_t count;
    const real *ofLanes;
    real *sums; ///< [blocks]
    DNDS_HOST_DEVICE void operator()(index block) const {
        const std::size_t begin = static_cast<std::size_t>(block) * blockSize;
        const std::size_t size = count - begin < blockSize ? count - begin : blockSize;
        real rest = 0;
        for (std::size_t i = begin + size / lanes * lanes; i < begin + size; ++i)
            rest += term(i);
        real ofLane[lanes];
        for (std::size_t lane = 0; lane < lanes; ++lane)
            ofLane[lane] = ofLanes[static_cast<std::size_t>(block) * lanes + lane];
        for (std::size_t half = lanes / 2; half > 0; half /= 2)
            for (std::size_t lane = 0; lane < half; ++lane)
                ofLane[lane] += ofLane[lane + half];
        sums[block] = ofLane[0] + rest;
    }
};

template <class T>
std::vector<T> fetched(StreamHandle stream, const T *values, std::size_t count) {
    std::vector<T> result(count);
    Device::copy(result.data(), MemorySpace::Host, values, MemorySpace::Device, count * sizeof(T), stream);
    Device::synchronize(stream);
    return result;
}

template <class Term>
real sumOf(StreamHandle stream, std::size_t count, const Term &term) {
    Device::requireDevice("add up the elements of an array");
    if (count == 0)
        return 0;
    const std::size_t blocks = (count + blockSize - 1) / blockSize;
    const Device::DeviceBuffer<real> ofLanes(blocks * lanes);
    const Device::DeviceBuffer<real> ofBlocks(blocks);
    launch(stream, blocks * lanes, LaneSums<Term>{term, count, ofLanes.data()});
    launch(stream, blocks, BlockSums<Term>{term, count, ofLanes.data(), ofBlocks.data()});
    real total = 0;
    for (const real block : fetched(stream, ofBlocks.data(), blocks))
        total += block;
    return total;
}

struct LaneExtremes {
    const real *x;
    std::size_t count;
    Extremes *found; ///< [blocks x lanes]
    DNDS_HOST_DEVICE void operator()(index thread) const {
        const std::size_t begin = static_cast<std::size_t>(thread) / lanes * blockSize;
        const std::size_t end = count - begin < blockSize ? count : begin + blockSize;
        Extremes extremes{std::numeric_limits<real>::infinity(), -std::numeric_limits<real>::infinity()};
        for (std::size_t i = begin + static_cast<std::size_t>(thread) % lanes; i < end; i += lanes) {
            const real value = x[i]; // NaN is kept: comparisons with it are false
            extremes.min = value < extremes.min || value != value ? value : extremes.min;
            extremes.max = value > extremes.max || value != value ? value : extremes.max;
        }
        found[thread] = extremes;
    }
};

// ---------------------------------------------------------------------------------------------------------------------
// Sums for each element of a row, in the tiles of the host

template <class How>
struct TileSums {
    const real *x;
    const real *y; ///< null, or the subtrahend
    std::size_t count;
    std::size_t tile;
    real *sums; ///< [blocks of tiles x elements of a tile]
    DNDS_HOST_DEVICE void operator()(index thread) const {
        const std::size_t block = static_cast<std::size_t>(thread) / tile;
        std::size_t i = block * tilesPerBlock * tile + static_cast<std::size_t>(thread) % tile;
        real sum = 0;
        for (std::size_t k = 0; k < tilesPerBlock && i < count; ++k, i += tile)
            sum = How::add(sum, y == nullptr ? x[i] : x[i] - y[i]);
        sums[thread] = sum;
    }
};

template <class How>
void accumulateRows(StreamHandle stream, std::span<const real> x, std::span<const real> y, std::span<real> result,
                    How how) {
    const std::size_t tile = rowsPerTile(result.size()) * result.size();
    const std::size_t blocks = (x.size() + tile * tilesPerBlock - 1) / (tile * tilesPerBlock);
    const Device::DeviceBuffer<real> sums(blocks * tile);
    launch(stream, blocks * tile, TileSums<How>{x.data(), y.empty() ? nullptr : y.data(), x.size(), tile, sums.data()});
    const std::vector<real> ofTiles = fetched(stream, sums.data(), blocks * tile);
    for (std::size_t i = 0; i < ofTiles.size(); ++i) {
        real &to = result[i % tile % result.size()];
        to = how.join(to, ofTiles[i]);
    }
}

} // namespace

void combineRows(StreamHandle stream, Operation operation, std::span<real> x, std::span<const real> row) {
    withOperation(operation, [&](auto apply) { withRow(stream, apply, x, row); });
}

void combineScalars(StreamHandle stream, Operation operation, std::span<real> x, std::span<const real> scalars) {
    if (x.empty())
        return;
    withOperation(operation, [&](auto apply) {
        launch(stream, x.size(),
               WithScalars<decltype(apply)>{apply, x.data(), scalars.data(),
                                            static_cast<index>(x.size() / scalars.size())});
    });
}

void fillRows(StreamHandle stream, std::span<real> x, std::span<const real> row) { withRow(stream, Second{}, x, row); }

real dot(StreamHandle stream, std::span<const real> x, std::span<const real> y) {
    return sumOf(stream, x.size(), Product{x.data(), y.data()});
}

real squaredDistance(StreamHandle stream, std::span<const real> x, std::span<const real> y) {
    return sumOf(stream, x.size(), SquaredDifference{x.data(), y.data()});
}

real sum(StreamHandle stream, std::span<const real> x) { return sumOf(stream, x.size(), Element{x.data()}); }

Extremes extremes(StreamHandle stream, std::span<const real> x) {
    Extremes result{std::numeric_limits<real>::infinity(), -std::numeric_limits<real>::infinity()};
    if (x.empty())
        return result;
    const std::size_t threads = (x.size() + blockSize - 1) / blockSize * lanes;
    const Device::DeviceBuffer<Extremes> found(threads);
    launch(stream, threads, LaneExtremes{x.data(), x.size(), found.data()});
    for (const Extremes &one : fetched(stream, found.data(), threads)) {
        if (std::isnan(one.min))
            return one;
        result.min = std::min(result.min, one.min);
        result.max = std::max(result.max, one.max);
    }
    return result;
}

void accumulate(StreamHandle stream, Component component, std::span<const real> x, std::span<const real> y,
                std::span<real> result) {
    std::fill(result.begin(), result.end(), 0.0);
    if (x.empty())
        return;
    withComponent(component, [&](auto how) { accumulateRows(stream, x, y, result, how); });
}

} // namespace DNDS::DofDeviceKernels

namespace DNDS::DofKernels { // on the host, too

using namespace DofDeviceKernels;

void combine(Operation operation, std::span<real> x, real a, const Executor &on) {
    withOperation(operation, [&](auto apply) {
        parallelFor(on, std::ssize(x), WithNumber<decltype(apply)>{apply, x.data(), a});
    });
}

void combine(Operation operation, std::span<real> x, std::span<const real> y, const Executor &on) {
    withOperation(operation, [&](auto apply) {
        parallelFor(on, std::ssize(x), WithElements<decltype(apply)>{apply, x.data(), y.data()});
    });
}

void fill(std::span<real> x, real value, const Executor &on) {
    parallelFor(on, std::ssize(x), WithNumber<Second>{{}, x.data(), value});
}

void addTo(std::span<real> y, real a, std::span<const real> x, const Executor &on) {
    parallelFor(on, std::ssize(y), AddScaled{y.data(), a, x.data()});
}

} // namespace DNDS::DofKernels
