/// @file FixedPointSums.hpp
/// @brief Columns of numbers that are added up without rounding, and the scale of their integers.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/FixedPoint.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace DNDS::FixedPoint {

/// Numbers up to a largest one as multiples of a power of two, 2^-80 of the power of two above the largest.
class Scale {
  public:
    /// `largest` is finite and not 0. On the host.
    explicit Scale(real largest)
        : shift_(resolution - 1 - std::ilogb(largest)), lift_(std::ldexp(1.0, shift_ > 900 ? 256 : 0)),
          toHigh_(std::ldexp(1 / lift_, shift_ - halfResolution)), fromHigh_(1 / toHigh_),
          toLow_(std::ldexp(1 / lift_, shift_)) {}

    /// `value` in these multiples, rounded towards zero. Exact in two steps of 40 bits.
    DNDS_HOST_DEVICE Wide toInteger(real value) const {
        // High part: |value| < 2^(ilogb(largest) + 1), so it has less than 40 bits. The subtraction is exact, since
        // `high` holds leading bits of `lifted`; the remainder again has less than 40 bits before the point.
        const real lifted = value * lift_;
        const auto high = static_cast<std::int64_t>(lifted * toHigh_);
        const auto low = static_cast<std::int64_t>((lifted - static_cast<real>(high) * fromHigh_) * toLow_);
        return (static_cast<Wide>(high) << halfResolution) + low;
    }
    /// The sum of such integers as a number: rounded to nearest, once to `long double` and once to `real`. On the
    /// host.
    real toReal(Wide sum) const { return static_cast<real>(std::ldexp(static_cast<long double>(sum), -shift_)); }

  private:
    /// Integers are values times 2^shift_.
    int shift_;
    // Powers of two, so that products are exact. Tiny numbers are lifted first: 2^shift alone would overflow.
    real lift_;
    real toHigh_;
    real fromHigh_;
    real toLow_;
};

/// Terms of a sum: a column of rows in memory, or the products of two such columns.
struct Column {
    const real *values = nullptr;
    index size = 0;
    index stride = 1;
    const real *factors = nullptr; ///< factor of each value, if not null, with the same stride

    /// The term of `row`: its value, or the product of its value and factor.
    DNDS_HOST_DEVICE real operator()(index row) const {
        const real value = values[row * stride];
        return factors != nullptr ? value * factors[row * stride] : value;
    }
};

/// The columns of rows [rows x columns]. Throws ArgumentError unless rows are whole.
inline std::vector<Column> columnsOf(std::span<const real> rows, std::size_t columns) {
    DNDS_CHECK(columns > 0 && rows.size() % columns == 0, ArgumentError, "{} values do not make rows of {} columns",
               rows.size(), columns);
    std::vector<Column> made;
    for (std::size_t k = 0; k < columns; ++k)
        made.push_back({rows.empty() ? nullptr : rows.data() + k, static_cast<index>(rows.size() / columns),
                        static_cast<index>(columns)});
    return made;
}

} // namespace DNDS::FixedPoint
