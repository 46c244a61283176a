/// @file ElementConversion.hpp
/// @brief Conversion of numbers between types, with range checks. Part of NetcdfReader and NetcdfWriter.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/ExactAccumulator.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

namespace DNDS::Detail {

/// Calls `call` with a zero of the type of `kind`. Throws LayoutError for kinds that are no numbers.
template <class Call>
decltype(auto) withNumber(ElementKind kind, Call &&call) {
    using Result = decltype(call(double{}));
    return visitNumber(kind, std::forward<Call>(call), [kind]() -> Result {
        throw LayoutError(fmt::format("files hold numbers, and {} is none", elementKindName(kind)));
    });
}

inline bool isFloating(ElementKind kind) noexcept {
    return kind == ElementKind::Float32 || kind == ElementKind::Float64;
}
/// The bytes of a number. Throws LayoutError for kinds that are no numbers.
inline std::size_t bytesOf(ElementKind kind) {
    return withNumber(kind, [](auto number) { return sizeof(number); });
}

/// Whether `To` can hold `value` without changing it: NaN fits every floating-point type.
template <class To, class From>
bool holds(From value) {
    if constexpr (std::is_floating_point_v<To> && std::is_floating_point_v<From>) {
        return value != value || static_cast<From>(static_cast<To>(value)) == value;
    } else if constexpr (std::is_floating_point_v<To>) {
        const To converted = static_cast<To>(value);
        // excludes 2^63 and 2^64, to which the largest integers round
        if (converted >= static_cast<To>(std::numeric_limits<From>::max()))
            return value == std::numeric_limits<From>::max() && sizeof(From) < sizeof(To);
        return static_cast<From>(converted) == value;
    } else if constexpr (std::is_floating_point_v<From>) {
        // Both limits as powers of two, which are exact; NaN fails both comparisons.
        const From least = static_cast<From>(std::numeric_limits<To>::min());
        constexpr To half = std::numeric_limits<To>::max() / 2 + 1;
        const From behind = static_cast<From>(half) * 2;
        return value >= least && value < behind && static_cast<From>(static_cast<To>(value)) == value;
    } else {
        return std::in_range<To>(value);
    }
}

/// Reverses the bytes of each number. Ends before an incomplete number at the end.
inline void swapBytes(std::span<std::byte> bytes, std::size_t elementBytes) {
    for (; bytes.size() >= elementBytes; bytes = bytes.subspan(elementBytes))
        std::ranges::reverse(bytes.first(elementBytes));
}

} // namespace DNDS::Detail
