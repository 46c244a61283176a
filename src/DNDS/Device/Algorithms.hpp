/// @file Algorithms.hpp
/// @brief Sums, scans and sorts on the device, by CUB with CUDA.
///
/// Spans are of device memory. Functions that return nothing queue on `stream`; scratch memory comes from the pool, so
/// only `Minimum` can be captured in a graph. Under `emulated` the host does the same. All functions are Local and
/// throw NotBuiltError without a device or, with CUDA, without CUB when DNDS was built, MemoryError, or ArgumentError
/// for sizes that do not match.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/Device/Hooks.hpp"

#include <span>

namespace DNDS::Device {

/// The sum of all elements; waits. The order of additions is CUB's: the same in each run on one GPU, but not the
/// host's. `ArrayDof::sum` uses the host's order.
real sum(StreamHandle stream, std::span<const real> x);

/// The smallest of a fixed number of elements, found repeatedly. Keeps its scratch memory and leaves the result on the
/// device, so it can be captured in a graph. Calls on one object must be ordered on one stream.
class Minimum {
  public:
    /// Allocates scratch memory for `count` elements.
    explicit Minimum(index count);
    /// Queues `*result` = the smallest of the `count` elements of `x`, none of them NaN; infinity without elements.
    /// `result` is device memory.
    void operator()(StreamHandle stream, std::span<const real> x, real *result) const;

  private:
    /// Elements that `scratch_` is sized for.
    std::size_t count_;
    /// Its address is in captured graphs: never reallocated.
    DeviceBuffer<std::byte> scratch_;
};

/// starts[i] = counts[0] + ... + counts[i - 1]: row sizes to row offsets. Both may be the same memory.
void exclusiveScan(StreamHandle stream, std::span<const index> counts, std::span<index> starts);

/// Sorts keys ascending, and values with them. Stable.
void sortByKey(StreamHandle stream, std::span<index> keys, std::span<index> values);

} // namespace DNDS::Device
