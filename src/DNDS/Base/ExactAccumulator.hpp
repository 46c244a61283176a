/// @file ExactAccumulator.hpp
/// @brief Sums that do not depend on the order of their terms, and the element types that can be added or compared.
///
/// - `FixedPoint`: numbers as multiples of a power of two, which add without rounding, on the host and on the device,
///   and columns of such numbers
/// - `ExactAccumulator`: an element type for arrays that ranks add up together
/// - `ElementKind`: the type of the scalars in a row, as a run-time value, so that code compiled once can add or
///   compare them
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/Types.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

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

/// The scalar type of an array's elements as transports see it.
enum class ElementKind : unsigned char {
    Opaque, ///< bytes without arithmetic: structs, enums, bool
    Int8,
    UInt8,
    Int16,
    UInt16,
    Int32,
    UInt32,
    Int64,
    UInt64,
    Float32,
    Float64,
    Accumulator ///< ExactAccumulator: sums only
};
inline constexpr int elementKinds = static_cast<int>(ElementKind::Accumulator) + 1;

/// The name used in messages and layout signatures, for example "float64".
std::string_view elementKindName(ElementKind kind);

/// The kind of `T`; arrays of scalars (`std::array`) count as their scalar.
template <class T>
constexpr ElementKind elementKindOf() {
    if constexpr (requires {
                      std::tuple_size<T>::value;
                      typename T::value_type;
                  }) { // std::array
        return elementKindOf<typename T::value_type>();
    } else if constexpr (std::is_floating_point_v<T>) {
        if constexpr (sizeof(T) == 4)
            return ElementKind::Float32;
        else if constexpr (sizeof(T) == 8)
            return ElementKind::Float64;
        else
            return ElementKind::Opaque;
    } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        constexpr bool isSigned = std::is_signed_v<T>;
        if constexpr (sizeof(T) == 1)
            return isSigned ? ElementKind::Int8 : ElementKind::UInt8;
        else if constexpr (sizeof(T) == 2)
            return isSigned ? ElementKind::Int16 : ElementKind::UInt16;
        else if constexpr (sizeof(T) == 4)
            return isSigned ? ElementKind::Int32 : ElementKind::UInt32;
        else
            return isSigned ? ElementKind::Int64 : ElementKind::UInt64;
    } else {
        return std::is_same_v<T, ExactAccumulator> ? ElementKind::Accumulator : ElementKind::Opaque;
    }
}

/// Calls `call` with a zero of the type of `kind` and returns what it returns; `otherwise()` for kinds that are no
/// numbers. Local.
template <class Call, class Otherwise>
constexpr decltype(auto) visitNumber(ElementKind kind, Call &&call, Otherwise &&otherwise) {
    switch (kind) {
    case ElementKind::Int8:
        return call(std::int8_t{});
    case ElementKind::UInt8:
        return call(std::uint8_t{});
    case ElementKind::Int16:
        return call(std::int16_t{});
    case ElementKind::UInt16:
        return call(std::uint16_t{});
    case ElementKind::Int32:
        return call(std::int32_t{});
    case ElementKind::UInt32:
        return call(std::uint32_t{});
    case ElementKind::Int64:
        return call(std::int64_t{});
    case ElementKind::UInt64:
        return call(std::uint64_t{});
    case ElementKind::Float32:
        return call(float{});
    case ElementKind::Float64:
        return call(double{});
    case ElementKind::Opaque:
    case ElementKind::Accumulator:
        break;
    }
    return otherwise();
}

} // namespace DNDS
