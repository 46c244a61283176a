/// @file FixedPoint.hpp
/// @brief Numbers as multiples of a power of two, which add without rounding, on the host and on the device.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

namespace DNDS::FixedPoint {

/// Two's complement, 128 bits.
__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;

/// Numbers up to the largest take this many bits. With 128 bits for the sum, 2^47 terms are added without overflow.
inline constexpr int resolution = 80;
inline constexpr int halfResolution = resolution / 2;

/// The magnitude; infinity for NaN.
DNDS_HOST_DEVICE inline real magnitude(real value) {
    constexpr real infinity = std::numeric_limits<real>::infinity();
    const real size = std::fabs(value);
    return size < infinity ? size : infinity;
}

} // namespace DNDS::FixedPoint
