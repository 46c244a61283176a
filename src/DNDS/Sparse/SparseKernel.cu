#include "DNDS/Sparse/SparseDevice.hpp"

#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/Device/RowKernelBodies.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace DNDS::Detail {

namespace {

/// Whether a value is above the threshold: the decision of SparseElementsOf::firstAbove, to the bit, as blocks must be
/// allocated and freed alike on host and device.
template <class T>
DNDS_HOST_DEVICE bool isAbove(T value, T background, real threshold) {
    if constexpr (std::is_floating_point_v<T>) {
        if (threshold == 0) {
            std::uint64_t bits[2] = {};
            memcpy(&bits[0], &value, sizeof value);
            memcpy(&bits[1], &background, sizeof background);
            return bits[0] != bits[1];
        }
        return !(std::fabs(static_cast<real>(value) - static_cast<real>(background)) <= threshold);
    } else {
        const T larger = value < background ? background : value;
        const T smaller = value < background ? value : background;
        // Both are extended with their sign: the difference is right modulo 2^64.
        const auto distance = static_cast<std::uint64_t>(larger) - // NOLINT(bugprone-signed-char-misuse)
                              static_cast<std::uint64_t>(smaller); // NOLINT(bugprone-signed-char-misuse)
        constexpr real beyondAll = 18446744073709551616.0;         // 2^64
        return threshold < beyondAll && distance > static_cast<std::uint64_t>(threshold);
    }
}

/// A thread an element: finds its job by its tile, then copies, compares or combines that element.
/// Threads of one tile share a job and touch adjacent elements, so that loads and stores coalesce where rows do.
struct SparseJobsKernel {
    const SparseJob *jobs;
    const SparseTile *tiles;
    std::uint32_t *flags;

    DNDS_HOST_DEVICE void operator()(index thread) const {
        const SparseTile tile = tiles[thread / sparseTileElements];
        const SparseJob &job = jobs[tile.job];
        visitNumber(
            job.elements.kind,
            [&](auto zero) {
                move<decltype(zero)>(job, tile.first + static_cast<std::uint64_t>(thread % sparseTileElements));
            },
            [] {});
    }

    template <class T>
    DNDS_HOST_DEVICE void move(const SparseJob &job, std::uint64_t element) const {
        const std::uint64_t components = job.elements.components;
        const std::uint64_t cell = element / components;
        if (cell >= job.cells)
            return;
        const auto place = [&](const std::uint32_t *rows) {
            return (rows == nullptr ? element : element + (rows[cell] - cell) * components) * sizeof(T);
        };
        T background;
        memcpy(&background, &job.elements.defaultBits, sizeof background); // the lowest bytes come first
        const T value = job.source == nullptr ? background : Device::loadAs<T>(job.source + place(job.sourceRows));
        if (job.flag >= 0) {
            // A plain store is enough, without atomics; the load spares memory traffic once the flag is set.
            volatile std::uint32_t &flag = flags[job.flag]; // all threads that write it write 1
            if (flag == 0 && isAbove(value, background, job.threshold))
                flag = 1;
        }
        if (job.destination == nullptr)
            return;
        std::byte *const to = job.destination + place(job.destinationRows);
        Device::storeAs(to, job.combination < 0
                                ? value
                                : Device::combineElement(Device::loadAs<T>(to), value,
                                                         static_cast<Device::Combination>(job.combination)));
    }
};

} // namespace

void launchSparseJobs(Device::StreamHandle stream, const SparseJob *jobs, const SparseTile *tiles, index tileCount,
                      std::uint32_t *flags) {
    parallelFor(Executor::device(stream), tileCount * sparseTileElements, SparseJobsKernel{jobs, tiles, flags});
}

} // namespace DNDS::Detail
