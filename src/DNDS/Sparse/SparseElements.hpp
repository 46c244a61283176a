/// @file SparseElements.hpp
/// @brief Operations of a sparse field that depend on its element type: compare with the default, and fill.
#pragma once

#include "DNDS/Base/ElementKind.hpp"
#include "DNDS/Exchange/Exchange.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include <fmt/core.h>

namespace DNDS {

/// The default value of a field, and comparisons of elements with it: one virtual call a rim, so that exchanges are no
/// templates. Immutable.
class SparseElements {
  public:
    SparseElements() = default;
    SparseElements(const SparseElements &) = delete;
    SparseElements &operator=(const SparseElements &) = delete;
    virtual ~SparseElements() = default;

    /// The first of `count` elements that is above the threshold: not (|value - default| <= threshold), so that NaN is
    /// above. At threshold 0 any bits other than the default's are above. `count` if none is. O(count).
    virtual std::size_t firstAbove(const std::byte *from, std::size_t count, real threshold) const noexcept = 0;
    /// Sets `count` elements to the default.
    virtual void fill(std::byte *to, std::size_t count) const noexcept = 0;
    /// Size and type of an element.
    virtual std::size_t bytes() const noexcept = 0;
    virtual ElementKind kind() const noexcept = 0;
    /// Bits of the default, in the lowest bytes.
    virtual std::uint64_t bits() const noexcept = 0;
    /// Type and default, for comparison between ranks; to the bit.
    virtual std::string describe() const = 0;
    /// Whether the default is neither infinite nor NaN.
    virtual bool finiteDefault() const noexcept = 0;
    /// Whether the default changes no value under `op`: 0 for sums, the largest value for minima, infinity if there is
    /// one, and the lowest one for maxima.
    virtual bool isIdentity(PushOp op) const noexcept = 0;
};

/// The same for elements of type `T`.
template <class T>
class SparseElementsOf final : public SparseElements {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8,
                  "sparse fields are of numbers");
    using Bits =
        std::conditional_t<sizeof(T) == 8, std::uint64_t,
                           std::conditional_t<sizeof(T) == 4, std::uint32_t,
                                              std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;

  public:
    /// `value` is the default.
    explicit SparseElementsOf(T value) : value_(value) {}

    std::size_t firstAbove(const std::byte *from, std::size_t count, real threshold) const noexcept override {
        const T *values = reinterpret_cast<const T *>(from);
        if (threshold == 0)
            return first(values, count, [wanted = std::bit_cast<Bits>(value_)](T value) {
                return std::bit_cast<Bits>(value) != wanted;
            });
        if constexpr (std::is_integral_v<T>)
            return firstFarther(values, count, threshold);
        else
            return first(values, count, [wanted = static_cast<real>(value_), threshold](T value) {
                return !(std::fabs(static_cast<real>(value) - wanted) <= threshold);
            });
    }
    void fill(std::byte *to, std::size_t count) const noexcept override {
        std::fill_n(reinterpret_cast<T *>(to), count, value_);
    }
    std::size_t bytes() const noexcept override { return sizeof(T); }
    ElementKind kind() const noexcept override { return elementKindOf<T>(); }
    std::uint64_t bits() const noexcept override { return std::bit_cast<Bits>(value_); }
    std::string describe() const override {
        return fmt::format("{} {} ({:x})", elementKindName(elementKindOf<T>()), +value_, std::bit_cast<Bits>(value_));
    }
    bool finiteDefault() const noexcept override { return std::isfinite(static_cast<real>(value_)); }
    bool isIdentity(PushOp op) const noexcept override {
        using Limits = std::numeric_limits<T>;
        constexpr T largest = Limits::has_infinity ? Limits::infinity() : Limits::max();
        constexpr T lowest = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
        return (op == PushOp::Sum && value_ == T{}) || (op == PushOp::Min && value_ == largest) ||
               (op == PushOp::Max && value_ == lowest);
    }
    /// The default.
    T value() const noexcept { return value_; }

  private:
    /// For integers: exact even if a `real` cannot hold all their digits. The unsigned difference of the larger and the
    /// smaller is right modulo 2^64, hence always.
    std::size_t firstFarther(const T *values, std::size_t count, real threshold) const noexcept {
        constexpr real beyondAll = 18446744073709551616.0; // 2^64
        if (threshold >= beyondAll)
            return count;
        return first(values, count, [wanted = value_, most = static_cast<std::uint64_t>(threshold)](T value) {
            const T larger = std::max(value, wanted);
            const T smaller = std::min(value, wanted);
            return static_cast<std::uint64_t>(larger) - static_cast<std::uint64_t>(smaller) > most;
        });
    }
    /// In chunks of 64 without an exit inside, which compilers vectorise; the last chunk is searched one by one.
    template <class IsAbove>
    static std::size_t first(const T *values, std::size_t count, IsAbove isAbove) noexcept {
        constexpr std::size_t chunk = 64;
        std::size_t i = 0;
        for (; i + chunk <= count; i += chunk) {
            bool above = false;
            for (std::size_t k = 0; k < chunk; ++k)
                above |= isAbove(values[i + k]);
            if (above)
                break;
        }
        while (i < count && !isAbove(values[i]))
            ++i;
        return i;
    }

    T value_;
};

} // namespace DNDS
