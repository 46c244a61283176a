#include "DNDS/Exchange/Combine.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/RowKernelBodies.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace DNDS {

namespace {

void replace(std::byte *into, const std::byte *from, std::size_t bytes) {
    if (bytes > 0) // rows of no width have no address
        std::memcpy(into, from, bytes);
}

template <class T, PushOp Op>
T combined(T a, T b) {
    if constexpr (std::is_same_v<T, ExactAccumulator>)
        return a += b;
    else if constexpr (Op == PushOp::Min)
        return std::min(a, b);
    else if constexpr (Op == PushOp::Max)
        return std::max(a, b);
    else if constexpr (std::is_floating_point_v<T>)
        return a + b;
    else // unsigned arithmetic wraps where signed would be undefined
        return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
}

/// O(elements). Elements are independent of each other, so vector width has no influence on the bits.
template <class T, PushOp Op>
void combine(std::byte *into, const std::byte *from, std::size_t bytes) {
    for (std::size_t at = 0; at + sizeof(T) <= bytes; at += sizeof(T)) {
        // Copied, because staged rows need not be aligned for T.
        T a;
        T b;
        std::memcpy(&a, into + at, sizeof(T));
        std::memcpy(&b, from + at, sizeof(T));
        a = combined<T, Op>(a, b);
        std::memcpy(into + at, &a, sizeof(T));
    }
}

/// The instance for one scalar type: chosen once a part, so that the loop over elements has no branch on the
/// operation. Null for minimum and maximum of accumulators.
template <class T>
CombineFunction choose(PushOp op) {
    if constexpr (std::is_same_v<T, ExactAccumulator>)
        return op == PushOp::Sum ? combine<T, PushOp::Sum> : nullptr;
    switch (op) {
    case PushOp::Sum:
        return combine<T, PushOp::Sum>;
    case PushOp::Min:
        return combine<T, PushOp::Min>;
    case PushOp::Max:
        return combine<T, PushOp::Max>;
    case PushOp::Replace:
        break;
    }
    return replace;
}

} // namespace

// `choose` is not called for opaque elements, so that a null function means either of the two errors.
CombineFunction combineFunction(ElementKind kind, PushOp op) {
    if (op == PushOp::Replace)
        return replace;
    CombineFunction function = nullptr;
    Device::forElementKind(kind, [&]<class T>() { function = choose<T>(op); });
    DNDS_CHECK(
        function != nullptr, LayoutError,
        "elements without arithmetic (structs, enums) can be pushed with PushOp::Replace only, accumulators with "
        "PushOp::Sum, too");
    return function;
}

} // namespace DNDS
