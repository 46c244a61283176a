/// @file ElementKind.hpp
/// @brief The type of the scalars in a row, as a run-time value, so that code compiled once can add or compare them.
#pragma once

#include "DNDS/Base/ExactAccumulator.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace DNDS {

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
