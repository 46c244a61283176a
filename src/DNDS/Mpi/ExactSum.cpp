#include "DNDS/Mpi/ExactSum.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace DNDS {

namespace {

constexpr int resolution = 80;
constexpr int limbBits = 40;
__extension__ using Wide = __int128;
/// A sum in parts that integer reductions add.
using Limbs = std::array<std::int64_t, 3>;

/// `value * 2^shift`, which is smaller than 2^80, rounded towards zero. Exact in two steps of 40 bits.
Wide toInteger(real value, int shift) {
    const real high = std::trunc(std::ldexp(value, shift - limbBits));
    const real low = std::trunc(std::ldexp(value - std::ldexp(high, limbBits - shift), shift));
    return (static_cast<Wide>(static_cast<std::int64_t>(high)) << limbBits) + static_cast<std::int64_t>(low);
}

/// By how many bits numbers up to `largest` are shifted.
int shiftFor(real largest) { return resolution - 1 - std::ilogb(largest); }

Limbs toLimbs(Wide sum) {
    constexpr Wide limb = Wide{1} << limbBits;
    Limbs limbs{};
    for (std::int64_t &part : limbs) {
        part = static_cast<std::int64_t>(sum & (limb - 1));
        sum >>= limbBits;
    }
    limbs[2] += static_cast<std::int64_t>(sum) << limbBits; // the sign, and what is above
    return limbs;
}

Wide toWide(const Limbs &limbs) {
    return (static_cast<Wide>(limbs[2]) << (2 * limbBits)) + (static_cast<Wide>(limbs[1]) << limbBits) +
           static_cast<Wide>(limbs[0]);
}

/// Whether the sum of numbers up to `largest` has to be made.
bool addable(real largest) { return std::isfinite(largest) && largest != 0.0; }

} // namespace

void exactSums(CommunicatorView comm, std::span<const real> rows, std::span<real> sums) {
    const std::size_t columns = sums.size();
    comm.guarded([&] {
        DNDS_CHECK(columns > 0 && rows.size() % columns == 0, ArgumentError, "{} values are no rows of {}", rows.size(),
                   columns);
    });
    // The largest magnitudes; infinite where some value is not finite.
    std::vector<real> largest(columns, 0.0);
    for (std::size_t i = 0; i < rows.size(); i += columns)
        for (std::size_t k = 0; k < columns; k++)
            largest[k] = std::isfinite(rows[i + k]) ? std::max(largest[k], std::abs(rows[i + k]))
                                                    : std::numeric_limits<real>::infinity();
    comm.allReduce(largest.data(), static_cast<int>(columns), MPI_MAX);

    std::vector<Limbs> limbs(columns, Limbs{});
    for (std::size_t k = 0; k < columns; k++) {
        if (!addable(largest[k]))
            continue;
        Wide sum = 0;
        const int shift = shiftFor(largest[k]);
        for (std::size_t i = k; i < rows.size(); i += columns)
            sum += toInteger(rows[i], shift);
        limbs[k] = toLimbs(sum);
    }
    comm.allReduce(limbs.data()->data(), static_cast<int>(3 * columns), MPI_SUM);
    for (std::size_t k = 0; k < columns; k++)
        if (addable(largest[k]))
            sums[k] = static_cast<real>(std::ldexp(static_cast<long double>(toWide(limbs[k])), -shiftFor(largest[k])));
        else
            sums[k] = largest[k] == 0.0 ? 0.0 : std::numeric_limits<real>::quiet_NaN();
}

} // namespace DNDS
