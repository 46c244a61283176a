/// @file ExactAccumulator.hpp
/// @brief A sum that does not depend on the order of its terms: an element type for arrays that ranks add up together.
#pragma once

#include "DNDS/Base/FixedPoint.hpp"
#include "DNDS/Base/Types.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace DNDS {

/// A sum of real numbers that has the same bits in any order and grouping of its terms. A float64 sum at mesh nodes
/// depends on which rank owns which cell; this one does not:
///
///     ArrayPair<ParArray<ExactAccumulator, 1>> sums;            // attached to the nodes of a mesh
///     sums(node, 0) += value;                                   // owned nodes and ghosts, from owned cells
///     sums.trans.pushOnce(PushOp::Sum, {.ghosts = GhostsAfterPush::Zero});
///     const real total = sums.father->view()(node, 0).value();  // rounded once
///
/// Each term is cut at fixed multiples of 40 bits, and the parts are added as integers. The three highest parts are
/// kept: at least 80 bits below the leading bit of the largest term; lower bits are dropped. This follows Demmel and
/// Nguyen's indexed floating-point numbers (Parallel Reproducible Summation, IEEE Transactions on Computers, 2015). Up
/// to 2^23 terms. A non-finite term makes the sum NaN.
///
/// Trivially copyable, 32 bytes (`ExactAccumulator`). All bytes zero is the empty sum: new arrays, and ghosts that a
/// push zeroed, are empty sums. Local, for host and device.
template <class Part>
class BasicExactAccumulator {
  public:
    /// Adds a term. O(1).
    DNDS_HOST_DEVICE BasicExactAccumulator &operator+=(real term) {
        static_assert(std::numeric_limits<real>::is_iec559 && sizeof(real) == sizeof(std::uint64_t));
        std::uint64_t bits = 0;
        std::memcpy(&bits, &term, sizeof bits);
        auto exponent = static_cast<int>(bits >> 52U & 0x7ffU);
        std::uint64_t mantissa = bits & ((std::uint64_t{1} << 52U) - 1);
        if (exponent == 0x7ff) {
            raise(notFinite);
            return *this;
        }
        if (exponent != 0)
            mantissa |= std::uint64_t{1} << 52U;
        else // subnormal
            exponent = 1;
        if (mantissa == 0)
            return *this;
        // The term is mantissa * 2^exponent units of 2^-1075.
        // Bit exponent + 52 is the leading one, so `top` numbers the highest part that the term reaches. Parts lie
        // at fixed multiples of 40 bits, whatever the terms: which bits a term loses depends on the final `top_`
        // alone, not on the order of additions.
        const std::int64_t top = (exponent + 52) / partBits;
        if (top > top_)
            raise(top);
        const std::int64_t shift = exponent - partBits * (top_ - 2); // of the mantissa in the three parts
        if (shift <= -53)
            return *this;
        // At most 53 + 67 bits: the leading bit lies below the end of part `top_`. Truncated before the sign is
        // applied, so that a term and its negative cancel exactly.
        const auto wide = shift >= 0 ? static_cast<Wide>(mantissa) << shift : static_cast<Wide>(mantissa >> -shift);
        const std::int64_t sign = bits >> 63U != 0 ? -1 : 1;
        low_ += sign * static_cast<std::int64_t>(wide & partMask);
        middle_ += sign * static_cast<std::int64_t>(wide >> partBits & partMask);
        high_ += sign * static_cast<std::int64_t>(wide >> (2 * partBits));
        return *this;
    }
    DNDS_HOST_DEVICE BasicExactAccumulator &operator-=(real term) { return *this += -term; }

    /// Adds the terms of `other`. O(1).
    DNDS_HOST_DEVICE BasicExactAccumulator &operator+=(const BasicExactAccumulator &other) {
        // Both are brought to the higher of the two tops; the order of operands does not matter. A sum that is not
        // finite has the highest top of all, and keeps it.
        BasicExactAccumulator terms = other;
        if (terms.top_ > top_)
            raise(terms.top_);
        terms.raise(top_);
        high_ += terms.high_;
        middle_ += terms.middle_;
        low_ += terms.low_;
        return *this;
    }

    /// The sum, rounded to nearest. O(1).
    DNDS_HOST_DEVICE real value() const {
        constexpr real nan = std::numeric_limits<real>::quiet_NaN();
        if (top_ == notFinite)
            return nan;
        // Carry: afterwards the lower parts lie in [0, 2^40).
        const Part middle = middle_ + (low_ >> partBits);
        Part high = high_ + (middle >> partBits);
        Wide rest = (static_cast<Wide>(middle & partMask) << partBits) + static_cast<Wide>(low_ & partMask);
        // As many bits as fit; if some are left out, a sticky one tells the rounding.
        std::int64_t top = top_;
        if constexpr (sizeof(Part) > sizeof(std::int64_t))
            for (constexpr Part huge = Part{1} << 62; high >= huge || high < -huge; ++top) {
                const bool inexact = (rest & partMask) != 0;
                rest = (rest >> partBits) + ((static_cast<Wide>(high & partMask)) << partBits);
                rest |= inexact ? 1 : 0;
                high >>= partBits;
            }
        // The sum of all parts takes up to 46 + 80 bits of 127; above that its last 20 bits go, with a sticky bit
        // in their place.
        constexpr std::int64_t much = std::int64_t{1} << 46;
        const bool cut = high >= much || high < -much;
        const int left = cut ? 20 : 0;
        Wide sum = static_cast<Wide>(high) * (Wide{1} << (2 * partBits - left)) + (rest >> left);
        if ((rest & ((Wide{1} << left) - 1)) != 0)
            sum |= 1;
        auto magnitude = static_cast<UnsignedWide>(sum < 0 ? -sum : sum);
        int scale = static_cast<int>(partBits * (top - 2)) - 1075 + left;
        // To 64 bits by halves. 64 bits with a sticky last one round to 53 as the whole sum would: there is one
        // rounding only. Subnormal results are exact, because all terms are multiples of the smallest subnormal.
        for (int step = 32; step > 0; step /= 2)
            if (magnitude >> (63 + step) != 0) {
                const bool inexact = (magnitude & ((UnsignedWide{1} << step) - 1)) != 0;
                magnitude = magnitude >> step | (inexact ? 1U : 0U);
                scale += step;
            }
        const real rounded = std::ldexp(static_cast<real>(static_cast<std::uint64_t>(magnitude)), scale);
        return sum < 0 ? -rounded : rounded;
    }

  private:
    using Wide = FixedPoint::Wide;
    using UnsignedWide = FixedPoint::UnsignedWide;
    /// Bits of a part; the rest of `Part` is room for carries.
    static constexpr int partBits = FixedPoint::halfResolution;
    static constexpr std::int64_t partMask = (std::int64_t{1} << partBits) - 1;
    static constexpr std::int64_t notFinite = 64; ///< above all finite terms

    /// Moves the parts up to `top`, dropping lower ones.
    DNDS_HOST_DEVICE void raise(std::int64_t top) {
        for (std::int64_t steps = top - top_ < 3 ? top - top_ : 3; steps > 0; --steps) {
            low_ = middle_;
            middle_ = high_;
            high_ = 0;
        }
        top_ = top;
    }

    /// Signed sums of parts of 40 bits, not normalised: 63 - 40 = 23 bits of room for carries limit the number of
    /// terms of the narrow variant. The value is high_ 2^80 + middle_ 2^40 + low_ in units of the lowest part.
    Part high_ = 0; ///< in units of 2^(40 top - 1075)
    Part middle_ = 0;
    Part low_ = 0;
    /// Number of the highest part: `high_` holds bits 40 top .. 40 top + 39 in units of 2^-1075. Rises only.
    std::int64_t top_ = 0; ///< 0: all terms were 0
};

using ExactAccumulator = BasicExactAccumulator<std::int64_t>;
/// The same sums for up to 2^80 terms: 64 bytes.
using WideExactAccumulator = BasicExactAccumulator<FixedPoint::Wide>;

static_assert(sizeof(ExactAccumulator) == 32 && std::is_trivially_copyable_v<ExactAccumulator>);

} // namespace DNDS
