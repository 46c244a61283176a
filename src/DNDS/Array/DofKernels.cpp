#include "DNDS/Array/DofKernels.hpp"

#include "DNDS/Array/DofPartition.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

// The loops of the host, and the choice between host and device. Element-wise loops that both compile from one functor
// are in DofElementKernels.cu.
namespace DNDS::DofKernels {

namespace {

using namespace Partition;

// Eight partial sums, combined by halves: independent of vector width, and the order that the device follows.
// Compilers may not reorder floating-point additions, so the source fixes the order: lanes, then halves of the lanes,
// then the rest. O(count).
template <class Term>
real chunkSum(index count, const Term &term) {
    std::array<real, lanes> sums{};
    index i = 0;
    for (; i + lanes <= count; i += lanes)
        for (index lane = 0; lane < lanes; ++lane)
            sums[toSize(lane)] += term(i + lane);
    real rest = 0;
    for (; i < count; ++i)
        rest += term(i);
    for (std::size_t half = lanes / 2; half > 0; half /= 2)
        for (std::size_t lane = 0; lane < half; ++lane)
            sums[lane] += sums[lane + half];
    return sums[0] + rest;
}

/// Calls `visit(count, term)` for all chunks: `term(i)` is that of its i-th element.
/// Blocked summation: the error bound grows with the length of a chunk plus the number of chunks, not with the number
/// of elements.
template <class TTerm, class Visit>
void forChunks(Boxes boxes, const Visit &visit) {
    for (const VectorBox &box : boxes) {
        const TTerm term(box);
        for (index n = 0; n < chunksOf(box); ++n) {
            const auto [first, count, stride] = chunkOf(box, n);
            if (stride == 1) // vectorises
                visit(count, [term, first = first](index i) { return term(first + i); });
            else
                visit(count, [term, first = first, stride = stride](index i) { return term(first + i * stride); });
        }
    }
}

/// The smallest and the largest element so far, and whether there was a NaN.
struct ExtremesInLanes {
    std::array<real, lanes> least;
    std::array<real, lanes> most;
    bool nan = false;

    ExtremesInLanes() {
        least.fill(std::numeric_limits<real>::infinity());
        most.fill(-std::numeric_limits<real>::infinity());
    }
    void take(std::size_t lane, real value) {
        least[lane] = value < least[lane] ? value : least[lane];
        most[lane] = value > most[lane] ? value : most[lane];
        nan |= value != value;
    }
};

/// All elements of a span, as a box.
std::array<VectorBox, 1> allOf(std::span<const real> x, const real *y = nullptr) {
    return {VectorBox{ElementBox::run(std::ssize(x)), x.data(), y}};
}

/// Accumulates the rows of `x`, or of `x - y`, in `result`.
/// A tile holds several rows, so that narrow rows still make a long inner loop, which vectorises. Order of additions:
/// tiles of a block, then blocks in sequence, as on the device.
template <class How>
void accumulateRows(std::span<const real> x, std::span<const real> y, std::span<real> result, How how) {
    std::vector<real> tile(rowsPerTile(result.size()) * result.size());
    for (std::size_t begin = 0; begin < x.size();) {
        std::fill(tile.begin(), tile.end(), 0.0);
        for (std::size_t k = 0; k < tilesPerBlock && begin < x.size(); ++k) {
            const std::size_t count = std::min(tile.size(), x.size() - begin);
            const real *from = x.data() + begin;
            const real *less = y.empty() ? nullptr : y.data() + begin;
            real *to = tile.data();
            if (y.empty())
                for (std::size_t i = 0; i < count; ++i)
                    to[i] = how.add(to[i], from[i]);
            else
                for (std::size_t i = 0; i < count; ++i)
                    to[i] = how.add(to[i], from[i] - less[i]);
            begin += count;
        }
        // One addition a block for each element of a tile: errors of rounding grow slowly.
        for (std::size_t i = 0; i < tile.size(); ++i)
            result[i % result.size()] = how.join(result[i % result.size()], tile[i]);
    }
}

} // namespace

// A tile of repeated rows makes one long loop of short rows.
void combineRows(Operation operation, std::span<real> x, std::span<const real> row, const Executor &on) {
    if (on.onDevice())
        return DofDeviceKernels::combineRows(on.stream(), operation, x, row);
    if (x.empty())
        return;
    std::vector<real> tile(rowsPerTile(row.size()) * row.size());
    fillRows(tile, row);
    while (!x.empty()) {
        const std::size_t count = std::min(tile.size(), x.size());
        combine(operation, x.first(count), std::span<const real>(tile).first(count));
        x = x.subspan(count);
    }
}

// The inner loop has the width of a row: the operation is chosen once, outside.
void combineScalars(Operation operation, std::span<real> x, std::span<const real> scalars, const Executor &on) {
    if (on.onDevice())
        return DofDeviceKernels::combineScalars(on.stream(), operation, x, scalars);
    if (x.empty())
        return;
    withOperation(operation, [to = x.data(), scalars, width = x.size() / scalars.size()](auto apply) {
        real *at = to;
        for (const real scalar : scalars) {
            for (std::size_t j = 0; j < width; ++j)
                at[j] = apply(at[j], scalar);
            at += width;
        }
    });
}

// Queued on the device; complete at return on the host.
void copy(std::span<real> to, std::span<const real> from, const Executor &on) {
    if (on.onDevice())
        return Device::copy(to.data(), MemorySpace::Device, from.data(), MemorySpace::Device, to.size_bytes(),
                            on.stream());
    std::copy(from.begin(), from.end(), to.begin());
}

// Rows of one width without gaps.
void fillRows(std::span<real> x, std::span<const real> row, const Executor &on) {
    if (on.onDevice())
        return DofDeviceKernels::fillRows(on.stream(), x, row);
    for (std::size_t begin = 0; begin < x.size(); begin += row.size())
        std::copy(row.begin(), row.end(), x.begin() + static_cast<std::ptrdiff_t>(begin));
}

real dot(std::span<const real> x, std::span<const real> y, const Executor &on) {
    return sum(Terms::Products, allOf(x, y.data()), on);
}

real squaredDistance(std::span<const real> x, std::span<const real> y, const Executor &on) {
    return sum(Terms::SquaredDifferences, allOf(x, y.data()), on);
}

real sum(std::span<const real> x, const Executor &on) { return sum(Terms::Elements, allOf(x), on); }

// Chunks are added in the order of the boxes, so that the bits depend on the boxes alone.
real sum(Terms terms, Boxes boxes, const Executor &on) {
    if (on.onDevice())
        return DofDeviceKernels::sum(on.stream(), terms, boxes);
    return withTerms(terms, [&](auto kind) {
        real total = 0;
        forChunks<decltype(kind)>(boxes, [&](index count, auto term) { total += chunkSum(count, term); });
        return total;
    });
}

// Some thousand terms at once, of short lines, too: exact sums need no fixed order.
void addExactly(Terms terms, Boxes boxes, WideExactAccumulator &sum, const Executor &on) {
    if (on.onDevice())
        return DofDeviceKernels::addExactly(on.stream(), terms, boxes, sum);
    withTerms(terms, [&](auto kind) {
        std::array<real, toSize(2 * blockSize)> some; // NOLINT
        std::size_t used = 0;
        const auto add = [&] { sum.addAll(std::span(some).first(std::exchange(used, 0))); };
        forChunks<decltype(kind)>(boxes, [&](index count, auto term) {
            if (used + toSize(count) > some.size())
                add();
            for (index i = 0; i < count; ++i)
                some[used++] = term(i);
        });
        add();
    });
}

// Equal bits on both sides, although the host adds terms two at a time and the device one at a time in many threads:
// accumulators do not depend on order or grouping.
void addColumns(std::span<const FixedPoint::Column> columns, std::span<WideExactAccumulator> sums, const Executor &on) {
    if (!on.onDevice())
        return FixedPoint::addColumns(columns, sums);
    DNDS_CHECK(columns.size() == sums.size(), ArgumentError, "{} columns are given for {} sums", columns.size(),
               sums.size());
    for (std::size_t k = 0; k < columns.size(); ++k) {
        const auto &[values, size, stride, factors] = columns[k];
        VectorBox box{ElementBox::run(size), values, factors};
        box.strides[3] = stride;
        addExactly(factors != nullptr ? Terms::Products : Terms::Elements, {&box, 1}, sums[k], on);
    }
}

Extremes extremes(std::span<const real> x, const Executor &on) { return extremes(allOf(x), on); }

// A local copy in each chunk: the compiler keeps it in registers. Comparisons skip NaN, which is noted apart.
Extremes extremes(Boxes boxes, const Executor &on) {
    if (on.onDevice())
        return DofDeviceKernels::extremes(on.stream(), boxes);
    ExtremesInLanes found;
    forChunks<Term<Terms::Elements>>(boxes, [&](index count, auto term) {
        ExtremesInLanes here = found;
        index i = 0;
        for (; i + lanes <= count; i += lanes)
            for (index lane = 0; lane < lanes; ++lane)
                here.take(toSize(lane), term(i + lane));
        for (; i < count; ++i)
            here.take(0, term(i));
        found = here;
    });
    if (found.nan)
        return {std::numeric_limits<real>::quiet_NaN(), std::numeric_limits<real>::quiet_NaN()};
    return {*std::ranges::min_element(found.least), *std::ranges::max_element(found.most)};
}

void accumulate(Component component, std::span<const real> x, std::span<const real> y, std::span<real> result,
                const Executor &on) {
    if (on.onDevice())
        return DofDeviceKernels::accumulate(on.stream(), component, x, y, result);
    std::fill(result.begin(), result.end(), 0.0);
    if (x.empty())
        return;
    withComponent(component, [&](auto how) { accumulateRows(x, y, result, how); });
}

// Cost: one reduction. A rank that failed takes part with zeros, so that the others do not hang, and all throw.
// Fixed number of values, count + 1 or 2 count + 1: all ranks make the same reduction whatever happened on them.
void reduceOrThrow(const CommunicatorView &comm, std::span<real> values, Reduction reduction,
                   const std::exception_ptr &failure) {
    // MPI_MAX is undefined for NaN, so it is encoded as a number of its own; the last number carries failures.
    const std::size_t count = values.size();
    const bool max = reduction == Reduction::Max;
    std::vector<real> all((max ? 2 : 1) * count + 1, 0.0);
    if (failure) {
        all.back() = 1;
    } else {
        for (std::size_t i = 0; i < count; ++i) {
            const bool nan = max && std::isnan(values[i]);
            all[i] = nan ? -std::numeric_limits<real>::infinity() : values[i];
            if (max)
                all[count + i] = nan ? 1 : 0;
        }
    }
    comm.allReduce(all.data(), static_cast<int>(all.size()), max ? MPI_MAX : MPI_SUM);
    // Some rank has failed: all throw its error.
    if (all.back() > 0) [[unlikely]]
        comm.agree(failure);
    for (std::size_t i = 0; i < count; ++i)
        values[i] = max && all[count + i] > 0 ? std::numeric_limits<real>::quiet_NaN() : all[i];
}

} // namespace DNDS::DofKernels
