/// @file ExactAccumulator.hpp
/// @brief Sums that do not depend on the order of their terms, and the element types that can be added or compared.
///
/// - `ExactAccumulator`: a sum in any order, an element type for arrays that ranks add up together, too
/// - `FixedPoint::Column`: the terms of such a sum, in memory of the host or of the device
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
/// Each term is split at fixed multiples of 40 bits, and the parts are added as integers. The three highest parts are
/// kept: at least 79 bits below the leading bit of the largest term, to which terms are rounded. This follows Demmel
/// and Nguyen's indexed floating-point numbers (Parallel Reproducible Summation, IEEE Transactions on Computers, 2015).
/// Up to 2^23 terms. A non-finite term makes the sum NaN.
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
        // The term is mantissa * 2^exponent units of 2^-1075, less than half a unit of part `top` + 1.
        const std::int64_t top = (exponent + 53) / partBits;
        if (top > top_)
            raise(top);
        // Each part takes what is nearest to the rest, ties to even. So the parts down to any one make up the term
        // rounded to that part, whatever parts lie above: what a term loses depends on the final `top_` alone, not on
        // the order of additions.
        std::int64_t rest =
            bits >> 63U != 0 ? -static_cast<std::int64_t>(mantissa) : static_cast<std::int64_t>(mantissa);
        const std::int64_t first = partBits * top_ - exponent; // bit of the mantissa at which the highest part begins
        high_ += takeMultiple(rest, first);
        middle_ += takeMultiple(rest, first - partBits);
        low_ += takeMultiple(rest, first - 2 * partBits);
        return *this;
    }
    DNDS_HOST_DEVICE BasicExactAccumulator &operator-=(real term) { return *this += -term; }
    /// Adds terms, as `+=` for each would, in a fraction of the time. On the host.
    void addAll(std::span<const real> terms);
    /// Adds a term `count` times, which all count as terms. O(1).
    DNDS_HOST_DEVICE void addRepeated(real term, std::int64_t count) {
        BasicExactAccumulator sum;
        if (count > 0)
            sum += term;
        sum.high_ *= count;
        sum.middle_ *= count;
        sum.low_ *= count;
        *this += sum;
    }

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

    /// The sum, rounded once: to nearest in the default rounding mode. O(1).
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
    static constexpr int partBits = 40;
    static constexpr std::int64_t partMask = (std::int64_t{1} << partBits) - 1;
    static constexpr std::int64_t notFinite = 64; ///< above all finite terms

    /// The multiple of 2^bit nearest to `rest`, ties to even, in units of 2^bit. Takes it away from `rest`, which has
    /// less than 53 bits.
    DNDS_HOST_DEVICE static std::int64_t takeMultiple(std::int64_t &rest, std::int64_t bit) {
        if (bit > 53 || rest == 0)
            return 0;
        std::int64_t multiple = 0;
        if (bit <= 0) {
            multiple = rest << -bit; // of at most 41 bits
            rest = 0;
        } else {
            const std::int64_t half = std::int64_t{1} << (bit - 1);
            multiple = (rest + half - 1 + (rest >> bit & 1)) >> bit;
            rest -= multiple << bit;
        }
        return multiple;
    }
    /// Adds an even number of terms, at most 2048; by `+=` where they are very small or large.
    void addBlock(std::span<const real> terms);

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
    /// Number of the highest part: `high_` holds bits 40 top .. 40 top + 38 in units of 2^-1075. Rises only.
    std::int64_t top_ = 0; ///< 0: all terms were 0
};

using ExactAccumulator = BasicExactAccumulator<std::int64_t>;
/// The same sums for up to 2^80 terms: 64 bytes.
using WideExactAccumulator = BasicExactAccumulator<FixedPoint::Wide>;

static_assert(sizeof(ExactAccumulator) == 32 && std::is_trivially_copyable_v<ExactAccumulator>);
static_assert(sizeof(WideExactAccumulator) == 64);

namespace FixedPoint {
/// Adds the terms of each column, in host memory, to its sum. Local. Throws ArgumentError unless there are as many.
void addColumns(std::span<const Column> columns, std::span<WideExactAccumulator> sums);
} // namespace FixedPoint

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
