/// @file Slab.hpp
/// @brief A box of a file's elements and its place in this rank's memory.
#pragma once

#include "DNDS/Base/ElementKind.hpp"
#include "DNDS/Base/Types.hpp"

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS {

/// A box of elements. `Byte` is `void` where the file is read into memory, `const void` where memory is written.
template <class Byte>
struct BasicSlab {
    using Mask = std::conditional_t<std::is_const_v<Byte>, const std::uint8_t, std::uint8_t>;

    std::vector<index> start;   ///< first element along each dimension, in the file's order (slowest first)
    std::vector<index> count;   ///< number of elements along each dimension; any 0: nothing
    std::vector<index> strides; ///< between neighbours in memory, in elements; empty: contiguous, last one fastest
    ElementKind kind = ElementKind::Opaque;
    Byte *data = nullptr; ///< the element `start`
    Mask *mask = nullptr; ///< if given, 1 where the value is missing, else 0; strides as the data's

    /// A slab for reading can be written, too.
    operator BasicSlab<const void>() const requires(!std::is_const_v<Byte>) { // NOLINT: it only takes rights away
        return {start, count, strides, kind, data, mask};
    }

    /// The number of elements in the box.
    index elements() const {
        index product = 1;
        for (const index n : count)
            static_cast<void>(__builtin_mul_overflow(product, n, &product)); // `checkSlab` allows it beside a 0
        return product;
    }
};

using Slab = BasicSlab<void>;              ///< for reading
using WrittenSlab = BasicSlab<const void>; ///< for writing

/// A slab of memory, strides in elements of `T`. Local.
template <class T>
auto slabOf(T *data, std::vector<index> start, std::vector<index> count, // NOLINT: they are moved
            std::vector<index> strides = {}) {                           // NOLINT
    using Byte = std::conditional_t<std::is_const_v<T>, const void, void>;
    static_assert(elementKindOf<std::remove_const_t<T>>() != ElementKind::Opaque,
                  "files hold integers of 8 to 64 bits, float and double; give components a dimension of their own");
    return BasicSlab<Byte>{std::move(start), std::move(count), std::move(strides),
                           elementKindOf<std::remove_const_t<T>>(), data};
}

/// Checks the number of dimensions, that the box lies within `shape`, and that memory is of `kind` (Opaque: of any);
/// `what` names the variable. Local.
/// @throws ArgumentError, LayoutError.
void checkSlab(const WrittenSlab &slab, const std::vector<index> &shape, const std::string &what,
               ElementKind kind = ElementKind::Opaque);

} // namespace DNDS
