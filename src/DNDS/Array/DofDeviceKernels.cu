#include "DNDS/Array/DofPartition.hpp"

#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/Device/ParallelFor.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace DNDS::DofDeviceKernels {

namespace {

using namespace DofKernels::Partition;

// Queues a kernel. Sums have one thread for each partial result, not for each element.
template <class Kernel>
void launch(StreamHandle stream, std::size_t threads, const Kernel &kernel) {
    parallelFor(Executor::device(stream), static_cast<index>(threads), kernel);
}

// ---------------------------------------------------------------------------------------------------------------------
// Element by element

/// Each row with a number of its own.
template <class Apply>
struct WithScalars {
    Apply apply;
    real *x;
    const real *scalars;
    index width;
    DNDS_HOST_DEVICE void operator()(index i) const { x[i] = apply(x[i], scalars[i / width]); }
};

/// Some columns of a row, passed in a kernel's arguments.
constexpr std::size_t columnsAtOnce = 32;
/// Thread i is element i of a matrix of these columns alone.
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

// Rows wider than that take several launches. The values travel in the kernel's arguments, since the row is on the
// host and may change before the kernel runs.
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

/// Neighbouring threads read neighbouring elements.
/// One thread a lane of a chunk, with the host's order of additions: sums have the host's bits.
template <class TTerm>
struct LaneSums {
    BoxBatch<VectorBox> batch;
    real *sums; ///< [chunks x lanes]
    DNDS_HOST_DEVICE void operator()(index thread) const {
        index part = thread / lanes;
        const VectorBox &box = batch.boxOf(part);
        const Chunk chunk = chunkOf(box, part);
        const TTerm term(box);
        real sum = 0;
        for (index i = thread % lanes; i < chunk.count / lanes * lanes; i += lanes)
            sum += term(chunk.first + i * chunk.stride);
        sums[thread] = sum;
    }
};
/// Adds up the lanes of a chunk by halves and then the elements after the last whole set of lanes, in the order of
/// `chunkSum` on the host.
template <class TTerm>
struct ChunkSums {
    BoxBatch<VectorBox> batch;
    const real *ofLanes;
    real *sums; ///< [chunks]
    DNDS_HOST_DEVICE void operator()(index number) const {
        index part = number;
        const VectorBox &box = batch.boxOf(part);
        const Chunk chunk = chunkOf(box, part);
        const TTerm term(box);
        real rest = 0;
        for (index i = chunk.count / lanes * lanes; i < chunk.count; ++i)
            rest += term(chunk.first + i * chunk.stride);
        real ofLane[lanes];
        for (index lane = 0; lane < lanes; ++lane)
            ofLane[lane] = ofLanes[number * lanes + lane];
        for (index half = lanes / 2; half > 0; half /= 2)
            for (index lane = 0; lane < half; ++lane)
                ofLane[lane] += ofLane[lane + half];
        sums[number] = ofLane[0] + rest;
    }
};

/// Threads of an exact sum that share a chunk. Exact sums need no fixed order, so these are not the lanes of rounded
/// ones, and chunks are dealt out in turns: the number of accumulators is bounded, whatever the boxes.
constexpr index exactLanes = 32;
constexpr index mostGroups = 2048;

/// The exact sum of one lane of every `groups`-th chunk. Accumulators stay in registers.
template <class TTerm>
struct ExactLaneSums {
    BoxBatch<VectorBox> batch;
    index groups;
    WideExactAccumulator *sums; ///< [groups x exactLanes]
    DNDS_HOST_DEVICE void operator()(index thread) const {
        WideExactAccumulator sum;
        for (index number = thread / exactLanes; number < batch.parts; number += groups) {
            index part = number;
            const VectorBox &box = batch.boxOf(part);
            const Chunk chunk = chunkOf(box, part);
            const TTerm term(box);
            for (index i = thread % exactLanes; i < chunk.count; i += exactLanes)
                sum += term(chunk.first + i * chunk.stride);
        }
        sums[thread] = sum;
    }
};

/// Adds every `results`-th of `count` sums, in place. No two threads touch the same sum.
struct ExactFold {
    WideExactAccumulator *sums;
    index count;
    index results;
    DNDS_HOST_DEVICE void operator()(index thread) const {
        for (index i = thread + results; i < count; i += results)
            sums[thread] += sums[i];
    }
};

/// Queues kernels that leave the sum of the terms of `batch` in the returned memory, first. Each fold leaves a 32nd of
/// the accumulators, so that 65536 of them take four kernels and nothing but the result travels to the host.
template <class TTerm>
Device::DeviceBuffer<WideExactAccumulator> exactSum(StreamHandle stream, const BoxBatch<VectorBox> &batch) {
    const index groups = std::min(batch.parts, mostGroups);
    index count = groups * exactLanes;
    Device::DeviceBuffer<WideExactAccumulator> sums(toSize(count));
    launch(stream, sums.size(), ExactLaneSums<TTerm>{batch, groups, sums.data()});
    while (count > 1) {
        const index results = (count + 31) / 32;
        launch(stream, toSize(results), ExactFold{sums.data(), count, results});
        count = results;
    }
    return sums;
}

// Waits for the stream.
template <class T>
std::vector<T> fetched(StreamHandle stream, const T *values, std::size_t count) {
    // Copies a few results to the host.
    std::vector<T> result(count);
    Device::copy(result.data(), MemorySpace::Host, values, MemorySpace::Device, count * sizeof(T), stream);
    Device::synchronize(stream);
    return result;
}

/// The extremes of one lane of each chunk; the host combines them.
struct LaneExtremes {
    BoxBatch<VectorBox> batch;
    Extremes *found; ///< [chunks x lanes]
    DNDS_HOST_DEVICE void operator()(index thread) const {
        index part = thread / lanes;
        const VectorBox &box = batch.boxOf(part);
        const Chunk chunk = chunkOf(box, part);
        const Term<Terms::Elements> term(box);
        Extremes extremes{std::numeric_limits<real>::infinity(), -std::numeric_limits<real>::infinity()};
        for (index i = thread % lanes; i < chunk.count; i += lanes) {
            const real value = term(chunk.first + i * chunk.stride); // NaN is kept: comparisons with it are false
            extremes.min = value < extremes.min || value != value ? value : extremes.min;
            extremes.max = value > extremes.max || value != value ? value : extremes.max;
        }
        found[thread] = extremes;
    }
};

/// Calls `work(batch)` for all boxes, some at a time.
/// One kernel a batch: boxes travel in its arguments, and no table is uploaded.
template <class Work>
void forBatches(Boxes boxes, const Work &work) {
    Device::requireDevice("add up the elements of an array");
    for (BoxBatch<VectorBox> batch; !boxes.empty();) {
        batch.take(boxes, [](const VectorBox &box) { return chunksOf(box); });
        if (batch.parts > 0)
            work(batch);
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Sums for each element of a row, in the tiles of the host

/// Thread: one element of a tile, summed over the tiles of a block.
/// Order of additions as in `accumulateRows` of the host, hence its bits.
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

// The host adds up the blocks, in order: few, since each covers 64 tiles.
template <class How>
void accumulateRows(StreamHandle stream, std::span<const real> x, std::span<const real> y, std::span<real> result,
                    How how) {
    const std::size_t tile = rowsPerTile(result.size()) * result.size();
    const std::size_t blocks = (x.size() + tile * tilesPerBlock - 1) / (tile * tilesPerBlock);
    const Device::DeviceBuffer<real> sums(blocks * tile);
    launch(stream, blocks * tile, TileSums<How>{x.data(), y.empty() ? nullptr : y.data(), x.size(), tile, sums.data()});
    const std::vector<real> ofTiles = fetched(stream, sums.data(), blocks * tile);
    for (std::size_t i = 0; i < ofTiles.size(); ++i) {
        // A tile has whole rows, so the column follows from the position.
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

// Two kernels for each batch of boxes. The host adds the chunks in order, as its own loop does.
real sum(StreamHandle stream, Terms terms, Boxes boxes) {
    return withTerms(terms, [&](auto term) {
        real total = 0;
        forBatches(boxes, [&](const BoxBatch<VectorBox> &batch) {
            const Device::DeviceBuffer<real> ofLanes(toSize(batch.parts * lanes));
            const Device::DeviceBuffer<real> ofChunks(toSize(batch.parts));
            launch(stream, ofLanes.size(), LaneSums<decltype(term)>{batch, ofLanes.data()});
            launch(stream, ofChunks.size(), ChunkSums<decltype(term)>{batch, ofLanes.data(), ofChunks.data()});
            for (const real chunk : fetched(stream, ofChunks.data(), ofChunks.size()))
                total += chunk;
        });
        return total;
    });
}

void addExactly(StreamHandle stream, Terms terms, Boxes boxes, WideExactAccumulator &sum) {
    withTerms(terms, [&](auto term) {
        forBatches(boxes, [&](const BoxBatch<VectorBox> &batch) {
            sum += fetched(stream, exactSum<decltype(term)>(stream, batch).data(), 1)[0];
        });
    });
}

Extremes extremes(StreamHandle stream, Boxes boxes) {
    Extremes result{std::numeric_limits<real>::infinity(), -std::numeric_limits<real>::infinity()};
    forBatches(boxes, [&](const BoxBatch<VectorBox> &batch) {
        const Device::DeviceBuffer<Extremes> found(toSize(batch.parts * lanes));
        launch(stream, found.size(), LaneExtremes{batch, found.data()});
        for (const Extremes &one : fetched(stream, found.data(), found.size())) {
            result.min = one.min < result.min || std::isnan(one.min) ? one.min : result.min;
            result.max = one.max > result.max || std::isnan(one.max) ? one.max : result.max;
        }
    });
    return result;
}

// Results start at zero on the host and are joined block by block.
void accumulate(StreamHandle stream, Component component, std::span<const real> x, std::span<const real> y,
                std::span<real> result) {
    std::fill(result.begin(), result.end(), 0.0);
    if (x.empty())
        return;
    withComponent(component, [&](auto how) { accumulateRows(stream, x, y, result, how); });
}

} // namespace DNDS::DofDeviceKernels
