/// @file BoxToBox.hpp
/// @brief Copies rows of boxes directly into the boxes of another array, without packing.
#pragma once

#include "DNDS/Transport/BoxCopy.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace DNDS {

/// From runs of this many bytes on, an owner on the node writes to the reader's array itself; shorter runs are packed
/// into a slot, which the reader unpacks. Writing a run moves all lines that it touches, however little of them it
/// fills, and the reader's core has them; a slot has few lines, but everything is copied twice. As measured,
/// the slot was 2 to 6 times as fast at 8 and 16 bytes, 1.1 to 2 times at 40, and at 80 still 1.3 times for messages
/// that stay in the caches; runs of 512 bytes and more were about twice as fast in place. 96 is the first length above
/// the measured ones where the slot won, and from there on a run fills more than half of its lines on the average.
inline constexpr std::size_t shortestRunInPlace = 96;

/// A box of a destination. Trivially copyable, since writers read it from the reader's memory.
struct PlacedBox {
    ByteBox box;              ///< relative to the array's base; in a slot its bytes are contiguous
    std::uint64_t inSlot = 0; ///< 1: in the slot, after the boxes before it that are there
};

/// Rows of boxes whose writer reaches both the array and a slot, with the way that each takes.
struct PlacedRows {
    std::vector<PlacedBox> boxes;
    BoxCopy slot; ///< those in the slot, for unpacking it
};

/// Boxes with long runs in place, others in the slot. Local. Cost O(boxes).
PlacedRows placeByRunLength(const BoxCopy &rows);

/// Copies boxes to boxes: bytes in the same order on both sides, each side with its own loops, as where blocks count
/// in other directions. Made once, as loops common to both sides; nothing is kept for a row, unless the sides
/// have loops that do not divide each other.
class BoxToBox {
  public:
    /// No bytes.
    BoxToBox() = default;
    /// Local. Cost O(boxes). Throws ArgumentError if the sides differ in bytes.
    BoxToBox(std::span<const ByteBox> from, std::span<const PlacedBox> to);
    /// The same without a slot.
    BoxToBox(std::span<const ByteBox> from, const BoxCopy &to);

    bool empty() const noexcept { return pieces_.empty(); }
    /// The loops over runs that it makes. Local.
    std::size_t pieces() const noexcept { return pieces_.size(); }

    /// Copies from an array that starts at `from` to one that starts at `to`, and to the slot. Local.
    void copy(const std::byte *from, std::byte *to, std::byte *slot) const;

    /// Runs common to both sides: nested loops, of which the last one runs fastest. Counted in bytes.
    struct Piece {
        index from = 0; ///< the first run
        index to = 0;
        /// Steps of each loop, and the bytes of a step on either side; unused loops, the outer ones, count to 1.
        std::array<index, RowBox::loops> counts{1, 1, 1, 1, 1};
        std::array<index, RowBox::loops> fromStrides{};
        std::array<index, RowBox::loops> toStrides{};
        std::size_t bytes = 0; ///< bytes of each run
        bool inSlot = false;
    };

  private:
    /// In the order of the bytes of both sides.
    std::vector<Piece> pieces_;
};

} // namespace DNDS
