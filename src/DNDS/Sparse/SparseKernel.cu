#include "DNDS/Sparse/SparseDevice.hpp"

#include "DNDS/Device/ParallelFor.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace DNDS::Detail {

namespace {

template <class Word>
DNDS_HOST_DEVICE std::uint64_t loadWord(const std::byte *from) {
    Word word;
    memcpy(&word, from, sizeof word);
    return word;
}

DNDS_HOST_DEVICE std::uint64_t loadBits(const std::byte *from, std::uint32_t bytes) {
    return bytes == 8   ? loadWord<std::uint64_t>(from)
           : bytes == 4 ? loadWord<std::uint32_t>(from)
           : bytes == 2 ? loadWord<std::uint16_t>(from)
                        : loadWord<std::uint8_t>(from);
}

template <class Word>
DNDS_HOST_DEVICE void storeWord(std::byte *to, std::uint64_t bits) {
    const auto word = static_cast<Word>(bits);
    memcpy(to, &word, sizeof word);
}

DNDS_HOST_DEVICE void storeBits(std::byte *to, std::uint32_t bytes, std::uint64_t bits) {
    if (bytes == 8)
        storeWord<std::uint64_t>(to, bits);
    else if (bytes == 4)
        storeWord<std::uint32_t>(to, bits);
    else if (bytes == 2)
        storeWord<std::uint16_t>(to, bits);
    else
        storeWord<std::uint8_t>(to, bits);
}

template <class T>
DNDS_HOST_DEVICE T fromBits(std::uint64_t bits) {
    T value{};
    memcpy(&value, &bits, sizeof value); // the lowest bytes come first
    return value;
}

/// As SparseElementsOf::firstAbove.
DNDS_HOST_DEVICE bool isAbove(const SparseKind &elements, std::uint64_t bits, real threshold) {
    if (threshold == 0)
        return bits != elements.defaultBits;
    return visitNumber(
        elements.kind,
        [&](auto zero) {
            using T = decltype(zero);
            const T value = fromBits<T>(bits);
            const T wanted = fromBits<T>(elements.defaultBits);
            if constexpr (std::is_floating_point_v<T>) {
                return !(std::fabs(static_cast<real>(value) - static_cast<real>(wanted)) <= threshold);
            } else {
                const T larger = value < wanted ? wanted : value;
                const T smaller = value < wanted ? value : wanted;
                const auto distance = static_cast<std::uint64_t>(larger) - // NOLINT(bugprone-signed-char-misuse): with
                                      static_cast<std::uint64_t>(smaller); // NOLINT(bugprone-signed-char-misuse): sign
                constexpr real beyondAll = 18446744073709551616.0;         // 2^64
                return threshold < beyondAll && distance > static_cast<std::uint64_t>(threshold);
            }
        },
        [] { return false; });
}

struct SparseJobsKernel {
    const SparseJob *jobs;
    const SparseTile *tiles;
    std::uint32_t *flags;

    DNDS_HOST_DEVICE void operator()(index thread) const {
        const SparseTile tile = tiles[thread / sparseTileElements];
        const SparseJob &job = jobs[tile.job];
        const SparseKind &kind = job.elements;
        const std::uint64_t element = tile.first + static_cast<std::uint64_t>(thread % sparseTileElements);
        const std::uint64_t cell = element / kind.components;
        if (cell >= job.cells)
            return;
        const std::uint64_t component = element - cell * kind.components;
        const auto place = [&](const std::uint32_t *rows) {
            return ((rows == nullptr ? cell : std::uint64_t{rows[cell]}) * kind.components + component) * kind.bytes;
        };
        const std::uint64_t bits =
            job.source == nullptr ? kind.defaultBits : loadBits(job.source + place(job.sourceRows), kind.bytes);
        if (job.flag >= 0) {
            volatile std::uint32_t &flag = flags[job.flag]; // all threads that write it write 1
            if (flag == 0 && isAbove(kind, bits, job.threshold))
                flag = 1;
        }
        if (job.destination != nullptr)
            storeBits(job.destination + place(job.destinationRows), kind.bytes, bits);
    }
};

} // namespace

void launchSparseJobs(Device::StreamHandle stream, const SparseJob *jobs, const SparseTile *tiles, index tileCount,
                      std::uint32_t *flags) {
    parallelFor(Executor::device(stream), tileCount * sparseTileElements, SparseJobsKernel{jobs, tiles, flags});
}

} // namespace DNDS::Detail
