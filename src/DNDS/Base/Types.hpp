/// @file Types.hpp
/// @brief The integer and floating-point types of DNDS, the tags that choose a row layout, memory spaces, and whether
/// an access reads or writes.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>

/// Marks a function that kernels call: for host and device under nvcc, an ordinary function elsewhere.
#if defined(__CUDACC__)
#define DNDS_HOST_DEVICE __host__ __device__
#else
#define DNDS_HOST_DEVICE
#endif

namespace DNDS {

/// Counts and numbers rows, globally and within one array.
using Index = std::int64_t;
/// The same. POSIX has a function of this name, so programs with `using namespace DNDS` write `Index`.
using index = Index;
/// Counts the elements of one row.
using rowsize = std::int32_t;
/// Numbers rows within one rank (owned rows, then ghosts) in stored adjacency: half the bandwidth of `index`.
using LocalIndex = std::int32_t;
/// The floating-point type of fields.
using real = double;

/// As `rowSize`: all rows have one width, chosen at run time. As `rowMax`: the padded width is chosen at run time.
inline constexpr rowsize DynamicSize = -1;
/// As `rowSize`: every row has its own width. As `rowMax`: rows are not padded (CSR).
inline constexpr rowsize NonUniformSize = -2;
/// As `align`: rows follow each other without padding for alignment.
inline constexpr int NoAlign = -1;

/// A row number that means "none".
inline constexpr index InvalidIndex = std::numeric_limits<index>::min();

/// A contiguous range [begin, end).
struct IndexRange {
    index begin = 0;
    index end = 0;
    /// The number of indices. Local.
    index size() const noexcept { return end - begin; }
    friend auto operator<=>(const IndexRange &,
                            const IndexRange &) = default; // NOLINT(modernize-use-nullptr): false alarm
};

/// As an index into std containers.
constexpr std::size_t toSize(index i) noexcept { return static_cast<std::size_t>(i); }

/// Memory of an allocation.
enum class MemorySpace : unsigned char {
    Host,  ///< ordinary memory that the CPU reads and writes
    Device ///< memory of the device that `Device/Hooks.hpp` provides (CUDA, or host memory posing as a device)
};

/// Whether an access only reads, or writes too; writing makes the copy in the other space stale.
enum class Access : unsigned char { Read, Write };

/// Chooses the memory a view refers to: `array.deviceView<DeviceBackend::CUDA>()`.
enum class DeviceBackend : unsigned char { Host, CUDA };

/// The memory space that views of `backend` refer to.
constexpr MemorySpace memorySpaceOf(DeviceBackend backend) {
    return backend == DeviceBackend::Host ? MemorySpace::Host : MemorySpace::Device;
}

} // namespace DNDS
