/// @file RowLayout.hpp
/// @brief The memory layout of an array's rows without its type: all that a transport needs to move them.
#pragma once

#include "DNDS/Base/ElementKind.hpp"
#include "DNDS/Base/MemorySpace.hpp"
#include "DNDS/Base/Types.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace DNDS {

/// Bytes that belong to every row and lie in one allocation: the elements themselves, or the sizes of padded rows.
///
/// Row `i` starts at `base + i * stride` and is `stride` bytes long (padding included), or, where `offsets` is set
/// (CSR), it occupies `[offsets[i], offsets[i + 1])` in units of `elementBytes`.
struct RowPart {
    std::byte *base = nullptr;
    std::size_t stride = 0;         ///< bytes from one row to the next; unused with `offsets`
    const index *offsets = nullptr; ///< `rows + 1` starts in elements, in host memory, or null
    std::size_t elementBytes = 1;   ///< bytes of one element
    std::uint64_t generation = 0;   ///< changes whenever `base` may have moved; unique in the process
    ElementKind kind = ElementKind::Opaque;
    std::shared_ptr<const void> hold; ///< keeps the memory alive, so that data in flight never lands in freed memory

    /// The first byte of row `row`, relative to `base`.
    std::size_t begin(index row) const {
        return offsets ? static_cast<std::size_t>(offsets[row]) * elementBytes : static_cast<std::size_t>(row) * stride;
    }
};

/// A snapshot of an array's memory. Part 0 holds the elements; further parts describe the rows (such as their sizes)
/// and are sent with them. Valid until the array is resized, swapped, moved or destroyed, which the generations of the
/// parts reveal.
struct RowLayout {
    /// Elements, row sizes, shapes of matrices.
    static constexpr int maxParts = 3;

    std::array<RowPart, maxParts> parts{};
    int partCount = 0;
    index rows = 0;
    MemorySpace space = MemorySpace::Host;
    bool keepsMemory = true; ///< whether parts get a `hold`: set by the caller
    /// Equal for arrays whose rows can be exchanged: element type, layout, fixed widths and alignment (not row counts).
    std::uint64_t signature = 0;
};

} // namespace DNDS
