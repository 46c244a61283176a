/// @file Atomics.hpp
/// @brief Atomic operations on words that ranks and kernels share: one text for processor and device.
///
/// A word is an integer of 8 to 64 bits, or a real of 32 or 64, at an address that is a multiple of its size. All
/// functions are Local and act on addresses that this processor or kernel reaches by loads and stores. On the host,
/// read-modify-write operations are sequentially consistent; in kernels they are atomic for all of the system, but
/// order nothing: put `fenceSystem` between.
#pragma once

#include "DNDS/Base/ExactAccumulator.hpp"
#include "DNDS/Base/Types.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace DNDS {

/// Numbers with atomic operations. GPUs lack most of 8 and 16 bits, which `changeNarrow` makes from 32.
template <class T>
concept AtomicWord = std::is_arithmetic_v<T> && !std::is_same_v<T, bool> &&
                     (sizeof(T) == 4 || sizeof(T) == 8 || (std::is_integral_v<T> && sizeof(T) < 4));

/// Atomic operations on a word. Min and Max compare as `<`: an operand that is NaN changes nothing. And
/// and Or are for integers; CompareSwap compares bits, so 0.0 and -0.0 differ.
enum class AtomicOp : std::uint8_t { Fetch, Set, Add, Min, Max, And, Or, Swap, CompareSwap };

/// Whether an operation is for numbers of this type.
template <AtomicWord T>
DNDS_HOST_DEVICE constexpr bool supports(AtomicOp op) {
    return std::is_integral_v<T> || (op != AtomicOp::And && op != AtomicOp::Or);
}

/// The name as messages give it, for example "compareSwap".
const char *atomicOpName(AtomicOp op) noexcept;

/// An operation without its type, for messages between ranks and for kernels.
struct AtomicRequest {
    AtomicOp op = AtomicOp::Fetch;
    ElementKind kind = ElementKind::Int64;
    std::uint64_t operand = 0; ///< bits, as `Atomics::toBits`
    std::uint64_t compare = 0;
};

namespace Atomics {

template <class T>
using Bits = std::conditional_t<
    sizeof(T) == 8, std::uint64_t,
    std::conditional_t<sizeof(T) == 4, std::uint32_t, std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;

/// The bits of a number, and back.
template <class T>
DNDS_HOST_DEVICE Bits<T> wordOf(T value) {
    Bits<T> bits;
    memcpy(&bits, &value, sizeof(T));
    return bits;
}
template <class T>
DNDS_HOST_DEVICE T valueOf(Bits<T> bits) {
    T value;
    memcpy(&value, &bits, sizeof(T));
    return value;
}
template <class T>
DNDS_HOST_DEVICE std::uint64_t toBits(T value) {
    return wordOf(value);
}
template <class T>
DNDS_HOST_DEVICE T fromBits(std::uint64_t bits) {
    return valueOf<T>(static_cast<Bits<T>>(bits));
}

// The thread sanitizer takes no account of fences, and g++ says so at each. They order accesses of different processes,
// which it does not see; threads are ordered by the atomic operations.
#if defined(__SANITIZE_THREAD__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"
#endif

/// Orders all accesses before it before all after it, for every rank and device: a fence of sequential consistency.
DNDS_HOST_DEVICE inline void fenceSystem() {
#if defined(__CUDA_ARCH__)
    __threadfence_system();
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/// Orders earlier loads and stores before later stores: what precedes a flag.
DNDS_HOST_DEVICE inline void fenceRelease() {
#if defined(__CUDA_ARCH__)
    __threadfence_system();
#else
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
#endif
}

#if defined(__SANITIZE_THREAD__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

/// Loads the word; everything that its writer did before its `storeRelease` is visible afterwards.
template <class W>
DNDS_HOST_DEVICE W loadAcquire(const W *address) {
#if defined(__CUDA_ARCH__)
    const W value = *static_cast<const volatile W *>(address);
    __threadfence_system();
    return value;
#else
    return __atomic_load_n(address, __ATOMIC_ACQUIRE);
#endif
}

/// Sets the word after everything this thread did before.
template <class W>
DNDS_HOST_DEVICE void storeRelease(W *address, W value) {
#if defined(__CUDA_ARCH__)
    __threadfence_system();
    *static_cast<volatile W *>(address) = value;
#else
    __atomic_store_n(address, value, __ATOMIC_RELEASE);
#endif
}

#if defined(__CUDA_ARCH__)
/// Replaces a word of 8 or 16 bits by `change` of it, within the 32 bits that GPUs compare and swap; returns what it
/// was. Device memory is allocated in larger units, so that these are there.
template <class W, class Change>
__device__ W changeNarrow(W *address, const Change &change) {
    const auto place = reinterpret_cast<std::uintptr_t>(address);
    auto *around = reinterpret_cast<unsigned int *>(place & ~std::uintptr_t{3});
    const unsigned int shift = 8U * static_cast<unsigned int>(place & 3U);
    const unsigned int mask = ((1U << (8U * sizeof(W))) - 1U) << shift;
    unsigned int seen = *static_cast<const volatile unsigned int *>(around);
    while (true) {
        const auto before = static_cast<W>((seen & mask) >> shift);
        const W wanted = change(before);
        const unsigned int found =
            atomicCAS_system(around, seen, (seen & ~mask) | (static_cast<unsigned int>(wanted) << shift));
        if (found == seen)
            return before;
        seen = found;
    }
}
#endif

/// Sets the word to `value` if it equals `expected`; returns the old value. For unsigned integers, as the next two.
template <class W>
DNDS_HOST_DEVICE W compareExchange(W *address, W expected, W value) {
#if defined(__CUDA_ARCH__)
    if constexpr (sizeof(W) < 4)
        return changeNarrow(address, [=](W before) { return before == expected ? value : before; });
    else if constexpr (sizeof(W) == 8)
        return atomicCAS_system(reinterpret_cast<unsigned long long *>(address),
                                static_cast<unsigned long long>(expected), static_cast<unsigned long long>(value));
    else
        return atomicCAS_system(reinterpret_cast<unsigned int *>(address), expected, value);
#else
    __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
#endif
}

/// Sets the word to `value`; returns the old value.
template <class W>
DNDS_HOST_DEVICE W exchange(W *address, W value) {
#if defined(__CUDA_ARCH__)
    if constexpr (sizeof(W) < 4)
        return changeNarrow(address, [=](W /*before*/) { return value; });
    else if constexpr (sizeof(W) == 8)
        return atomicExch_system(reinterpret_cast<unsigned long long *>(address),
                                 static_cast<unsigned long long>(value));
    else
        return atomicExch_system(reinterpret_cast<unsigned int *>(address), value);
#else
    return __atomic_exchange_n(address, value, __ATOMIC_SEQ_CST);
#endif
}

/// Adds modulo 2^n; returns the old value.
template <class W>
DNDS_HOST_DEVICE W fetchAdd(W *address, W operand) {
#if defined(__CUDA_ARCH__)
    if constexpr (sizeof(W) < 4)
        return changeNarrow(address, [=](W before) { return static_cast<W>(before + operand); });
    else if constexpr (sizeof(W) == 8)
        return atomicAdd_system(reinterpret_cast<unsigned long long *>(address),
                                static_cast<unsigned long long>(operand));
    else
        return atomicAdd_system(reinterpret_cast<unsigned int *>(address), operand);
#else
    return __atomic_fetch_add(address, operand, __ATOMIC_SEQ_CST);
#endif
}

/// The new value of the word by Add, Min, Max, And or Or.
template <AtomicWord T>
DNDS_HOST_DEVICE T combined(AtomicOp op, T value, T operand) {
    switch (op) {
    case AtomicOp::Min:
        return operand < value ? operand : value;
    case AtomicOp::Max:
        return value < operand ? operand : value;
    case AtomicOp::And:
        return valueOf<T>(static_cast<Bits<T>>(wordOf(value) & wordOf(operand)));
    case AtomicOp::Or:
        return valueOf<T>(static_cast<Bits<T>>(wordOf(value) | wordOf(operand)));
    default:
        if constexpr (std::is_integral_v<T>) // without overflow
            return valueOf<T>(static_cast<Bits<T>>(wordOf(value) + wordOf(operand)));
        else
            return value + operand;
    }
}

#if defined(__CUDA_ARCH__)
/// Applies `op` where the GPU has an instruction for it, and returns whether it has; `before` is what the word was.
/// Sums of float flush numbers below the normal ones to zero.
template <AtomicWord T>
__device__ bool applyInstruction(T *address, AtomicOp op, T operand, T &before) {
    if constexpr (sizeof(T) < 4) {
        return false;
    } else if constexpr (std::is_floating_point_v<T>) {
        if (op != AtomicOp::Add)
            return false;
        before = atomicAdd_system(address, operand);
        return true;
    } else {
        using Signed = std::conditional_t<sizeof(T) == 8, long long, int>;
        using Unsigned = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned int>;
        using Number = std::conditional_t<std::is_signed_v<T>, Signed, Unsigned>;
        auto *number = reinterpret_cast<Number *>(address);
        auto *bits = reinterpret_cast<Unsigned *>(address);
        switch (op) {
        case AtomicOp::Min:
            before = static_cast<T>(atomicMin_system(number, static_cast<Number>(operand)));
            return true;
        case AtomicOp::Max:
            before = static_cast<T>(atomicMax_system(number, static_cast<Number>(operand)));
            return true;
        case AtomicOp::And:
            before = static_cast<T>(atomicAnd_system(bits, static_cast<Unsigned>(operand)));
            return true;
        case AtomicOp::Or:
            before = static_cast<T>(atomicOr_system(bits, static_cast<Unsigned>(operand)));
            return true;
        default:
            return false;
        }
    }
}
#endif

/// Applies `op`; returns the old value (Set: the operand). Min, Max, And, Or, real sums that change nothing only load.
template <AtomicWord T>
DNDS_HOST_DEVICE T apply(T *address, AtomicOp op, T operand, T compare = T{}) {
    auto *word = reinterpret_cast<Bits<T> *>(address);
    switch (op) {
    case AtomicOp::Fetch:
        return valueOf<T>(loadAcquire(word));
    case AtomicOp::Set:
#if defined(__CUDA_ARCH__)
        if constexpr (sizeof(T) < 4) { // others may change its neighbours by 32 bits at a time
            exchange(word, wordOf(operand));
            return operand;
        }
#endif
        storeRelease(word, wordOf(operand));
        return operand;
    case AtomicOp::Swap:
        return valueOf<T>(exchange(word, wordOf(operand)));
    case AtomicOp::CompareSwap:
        return valueOf<T>(compareExchange(word, wordOf(compare), wordOf(operand)));
    default:
        break;
    }
    if (std::is_integral_v<T> && op == AtomicOp::Add)
        return valueOf<T>(fetchAdd(word, wordOf(operand)));
#if defined(__CUDA_ARCH__)
    T before;
    if (applyInstruction(address, op, operand, before))
        return before;
#endif
    Bits<T> seen = loadAcquire(word);
    while (true) {
        const Bits<T> wanted = wordOf(combined(op, valueOf<T>(seen), operand));
        if (wanted == seen)
            return valueOf<T>(seen);
        const Bits<T> found = compareExchange(word, seen, wanted);
        if (found == seen)
            return valueOf<T>(seen);
        seen = found;
    }
}

/// The same for a request; returns the bits of the old value. Without effect for kinds without atomic operations.
DNDS_HOST_DEVICE inline std::uint64_t apply(void *address, const AtomicRequest &request) {
    return visitNumber(
        request.kind,
        [&](auto zero) {
            using T = decltype(zero);
            return toBits(apply(static_cast<T *>(address), request.op, fromBits<T>(request.operand),
                                fromBits<T>(request.compare)));
        },
        [] { return std::uint64_t{0}; });
}

/// Applies `op` to `count` words, each with its operand (`operands` null: zeros); their old values go to `before`,
/// which may be `operands`, or null: nowhere.
template <AtomicWord T>
DNDS_HOST_DEVICE void applyEach(T *words, AtomicOp op, const T *operands, T *before, index count, T compare = {}) {
    for (index k = 0; k < count; ++k) {
        const T seen = apply(words + k, op, operands == nullptr ? T{} : operands[k], compare);
        if (before != nullptr)
            before[k] = seen;
    }
}

/// The same for words of `bytes` bytes and a request, whose own operand is ignored.
inline void applyEach(std::byte *words, const AtomicRequest &request, const std::byte *operands, std::byte *before,
                      std::size_t bytes) {
    visitNumber(
        request.kind,
        [&](auto zero) {
            using T = decltype(zero);
            applyEach(reinterpret_cast<T *>(words), request.op, reinterpret_cast<const T *>(operands),
                      reinterpret_cast<T *>(before), static_cast<index>(bytes / sizeof(T)),
                      fromBits<T>(request.compare));
        },
        [] {});
}

/// `applyEach` for Set, Add, Min, Max, And, Or and Swap of words that no other thread or rank changes meanwhile: by
/// loads and stores, which take a small part of the time. For the host.
template <AtomicWord T>
void changeAlone(T *words, AtomicOp op, const T *operands, T *before, index count) {
    const auto each = [&](auto changed) {
        for (index k = 0; k < count; ++k) {
            const T seen = words[k];
            words[k] = changed(seen, operands[k]);
            if (before != nullptr)
                before[k] = seen;
        }
    };
    const auto combine = [&](auto fixed) {
        each([](T value, T operand) { return combined<T>(decltype(fixed)::value, value, operand); });
    };
    switch (op) {
    case AtomicOp::Add:
        return combine(std::integral_constant<AtomicOp, AtomicOp::Add>{});
    case AtomicOp::Min:
        return combine(std::integral_constant<AtomicOp, AtomicOp::Min>{});
    case AtomicOp::Max:
        return combine(std::integral_constant<AtomicOp, AtomicOp::Max>{});
    case AtomicOp::And:
        return combine(std::integral_constant<AtomicOp, AtomicOp::And>{});
    case AtomicOp::Or:
        return combine(std::integral_constant<AtomicOp, AtomicOp::Or>{});
    default:
        return each([](T /*value*/, T operand) { return operand; });
    }
}

/// The request of a typed operation.
template <AtomicWord T>
DNDS_HOST_DEVICE AtomicRequest request(AtomicOp op, T operand, T compare = T{}) {
    return {op, std::integral_constant<ElementKind, elementKindOf<T>()>::value, toBits(operand), toBits(compare)};
}

} // namespace Atomics

/// The comparisons by which `waitUntil` and `test` compare a word with a value.
enum class Comparison : std::uint8_t { Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual };

/// As C++ writes it. Never null.
const char *comparisonName(Comparison comparison) noexcept;

/// Whether `value` compares so with `other`, as the operators of C++ do: `value < other` for Less.
template <class T>
DNDS_HOST_DEVICE bool holds(T value, Comparison comparison, T other) {
    switch (comparison) {
    case Comparison::Equal:
        return value == other;
    case Comparison::NotEqual:
        return value != other;
    case Comparison::Less:
        return value < other;
    case Comparison::LessOrEqual:
        return value <= other;
    case Comparison::Greater:
        return value > other;
    case Comparison::GreaterOrEqual:
        return value >= other;
    }
    return false;
}

} // namespace DNDS
