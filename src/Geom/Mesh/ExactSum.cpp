#include "Geom/Mesh/ExactSum.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace DNDS::Geom {

namespace {

constexpr int resolution = 80;
constexpr int limbBits = 40;
__extension__ using Wide = __int128;

/// `value * 2^shift`, which is smaller than 2^80, rounded towards zero. Exact in two steps of 40 bits.
Wide toInteger(real value, int shift) {
    const real high = std::trunc(std::ldexp(value, shift - limbBits));
    const real low = std::trunc(std::ldexp(value - std::ldexp(high, limbBits - shift), shift));
    return (static_cast<Wide>(static_cast<std::int64_t>(high)) << limbBits) + static_cast<std::int64_t>(low);
}

} // namespace

real exactSum(CommunicatorView comm, std::span<const real> values) {
    // The largest magnitude; not a number or infinite where some value is not finite.
    real largest = 0.0;
    for (const real value : values)
        largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : std::numeric_limits<real>::infinity();
    largest = comm.allReduce(largest, MPI_MAX);
    if (!std::isfinite(largest))
        return std::numeric_limits<real>::quiet_NaN();
    if (largest == 0.0)
        return 0.0;
    const int shift = resolution - 1 - std::ilogb(largest);
    Wide sum = 0;
    for (const real value : values)
        sum += toInteger(value, shift);

    constexpr Wide limb = Wide{1} << limbBits;
    std::array<std::int64_t, 3> limbs{};
    for (std::int64_t &part : limbs) {
        part = static_cast<std::int64_t>(sum & (limb - 1));
        sum >>= limbBits;
    }
    limbs[2] += static_cast<std::int64_t>(sum) << limbBits; // the sign, and what is above
    comm.allReduce(limbs.data(), 3, MPI_SUM);
    const Wide total = (static_cast<Wide>(limbs[2]) << (2 * limbBits)) + (static_cast<Wide>(limbs[1]) << limbBits) +
                       static_cast<Wide>(limbs[0]);
    return static_cast<real>(std::ldexp(static_cast<long double>(total), -shift));
}

} // namespace DNDS::Geom
