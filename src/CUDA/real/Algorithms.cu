#include "DNDS/Device/AlgorithmHooks.hpp"

#include "Check.hpp"
#include "Streams.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/DeviceMemory.hpp"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

#include <limits>

namespace DNDS::Device::Hooks {

namespace {

/// Calls a CUB function twice, as CUB requires: for the size of its scratch memory, and with it.
/// The second call is queued only; scratch memory is released right after it, which is safe because a freed range
/// is not reused before the stream has passed.
template <class Call>
void withScratch(const char *what, const Call &call) {
    std::size_t bytes = 0;
    check(call(nullptr, bytes), what);
    // May be freed while the kernel runs: the pool waits for the stream.
    const DeviceBuffer<std::byte> scratch(bytes > 0 ? bytes : 1);
    check(call(scratch.data(), bytes), what);
}

// A functor with a device side, as CUB calls it in kernels.
struct Smaller {
    DNDS_HOST_DEVICE real operator()(real a, real b) const { return b < a ? b : a; }
};

} // namespace

// Queries take null as scratch memory and read no data; the answer depends only on count and types.
std::size_t scratchOfMinimum(std::size_t count) {
    std::size_t bytes = 0;
    check(cub::DeviceReduce::Reduce(nullptr, bytes, static_cast<const real *>(nullptr), static_cast<real *>(nullptr),
                                    static_cast<index>(count), Smaller{}, std::numeric_limits<real>::infinity()),
          "preparing to find the smallest element");
    return bytes > 0 ? bytes : 1; // CUB takes null as a query for the size
}

// Allocates nothing, as it may be captured for a graph: the caller provides the scratch memory.
void minimum(StreamHandle stream, std::span<const real> x, real *result, std::span<std::byte> scratch) {
    std::size_t bytes = scratch.size();
    check(cub::DeviceReduce::Reduce(scratch.data(), bytes, x.data(), result, static_cast<index>(x.size()), Smaller{},
                                    std::numeric_limits<real>::infinity(), native(stream)),
          "finding the smallest element");
}

// Its rounding errors depend on how CUB divides the elements.
real sum(StreamHandle stream, std::span<const real> x) {
    const DeviceBuffer<real> total(1);
    withScratch("adding up elements", [&](void *scratch, std::size_t &bytes) {
        return cub::DeviceReduce::Sum(scratch, bytes, x.data(), total.data(), static_cast<index>(x.size()),
                                      native(stream));
    });
    real result = 0;
    copy(&result, MemorySpace::Host, total.data(), MemorySpace::Device, sizeof(real), stream);
    synchronize(stream);
    return result;
}

void exclusiveScan(StreamHandle stream, std::span<const index> counts, std::span<index> starts) {
    withScratch("making offsets", [&](void *scratch, std::size_t &bytes) {
        return cub::DeviceScan::ExclusiveSum(scratch, bytes, counts.data(), starts.data(),
                                             static_cast<index>(counts.size()), native(stream));
    });
}

// CUB sorts into other memory. Stable, over all 64 bits of the keys.
// O(n) time for a fixed width of keys, 16 bytes of additional memory an element. The buffers are released while the
// copies are queued: the pool's fence keeps them until then.
void sortByKey(StreamHandle stream, std::span<index> keys, std::span<index> values) {
    const DeviceBuffer<index> otherKeys(keys.size());
    const DeviceBuffer<index> otherValues(values.size());
    withScratch("sorting", [&](void *scratch, std::size_t &bytes) {
        return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys.data(), otherKeys.data(), values.data(),
                                               otherValues.data(), static_cast<index>(keys.size()), 0,
                                               static_cast<int>(8 * sizeof(index)), native(stream));
    });
    copy(keys.data(), MemorySpace::Device, otherKeys.data(), MemorySpace::Device, keys.size_bytes(), stream);
    copy(values.data(), MemorySpace::Device, otherValues.data(), MemorySpace::Device, values.size_bytes(), stream);
}

} // namespace DNDS::Device::Hooks
