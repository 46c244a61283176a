/// @file Algorithms.hpp
/// @brief The smallest element and exact sums on the device, by CUB with CUDA.
///
/// Spans are of device memory; scratch memory comes from the pool. Under `emulated` the host does the same. All
/// functions are Local and throw NotBuiltError without a device or, with CUDA, without CUB when DNDS was built,
/// MemoryError, or ArgumentError for sizes that do not match.
#pragma once

#include "DNDS/Base/FixedPointSums.hpp"
#include "DNDS/Base/Types.hpp"
#include "DNDS/Device/DeviceBuffer.hpp"
#include "DNDS/Device/Hooks.hpp"

#include <optional>
#include <span>

namespace DNDS::Device {

/// The smallest of a fixed number of elements, found repeatedly. Keeps its scratch memory and leaves the result on the
/// device, so it can be captured in a graph. Calls on one object must be ordered on one stream.
class Minimum {
  public:
    /// Allocates scratch memory for `count` elements.
    explicit Minimum(index count);
    /// Queues `*result` = the smallest of the `count` elements of `x`, none of them NaN; infinity if there are none.
    /// `result` is device memory.
    void operator()(StreamHandle stream, std::span<const real> x, real *result) const;

  private:
    std::size_t count_;
    DeviceBuffer<std::byte> scratch_;
};

/// The largest `FixedPoint::magnitude` in each column on the device, to [columns] on the host; 0 without rows. Waits.
/// For `exactSums`.
void largestOfColumns(StreamHandle stream, std::span<const FixedPoint::Column> columns, std::span<real> largest);

/// The sums of `scale.toInteger(value)` in each column; 0 in columns without scale. Waits.
void integerSumsOfColumns(StreamHandle stream, std::span<const FixedPoint::Column> columns,
                          std::span<const std::optional<FixedPoint::Scale>> scales, std::span<FixedPoint::Wide> sums);

} // namespace DNDS::Device
