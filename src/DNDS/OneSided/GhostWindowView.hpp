/// @file GhostWindowView.hpp
/// @brief The owners' rows of ghosts in kernels.
#pragma once

#include "DNDS/OneSided/RemoteTable.hpp"

#include <cstdint>

namespace DNDS {

/// A row where its owner keeps it. `rank` is -1 for a number that names no row.
struct GhostTarget {
    std::int32_t rank = -1;
    std::int64_t row = 0; ///< among the owner's rows
};

namespace Detail {

/// Rows of a rank are fewer: their offsets in bytes fit 64 bits.
inline constexpr std::int64_t mostRows = std::int64_t{1} << 40;

/// What a window over rows knows besides the memory.
struct GhostTable : RemoteTable {
    const GhostTarget *ghosts = nullptr;     ///< by ghost
    const std::int64_t *firstRows = nullptr; ///< global, by rank, and the number of all rows
    std::int64_t ghostCount = 0;
    std::int64_t owned = 0;   ///< rows of this rank
    std::uint64_t stride = 0; ///< bytes from row to row, of all ranks
    std::int32_t width = 0;   ///< elements of a row

    DNDS_HOST_DEVICE GhostTarget ghost(index k) const {
        return k >= 0 && k < ghostCount ? ghosts[k] : GhostTarget{-1, k};
    }
    DNDS_HOST_DEVICE GhostTarget local(index i) const {
        return i >= owned ? ghost(i - owned) : i >= 0 ? GhostTarget{rank, i} : GhostTarget{-1, i};
    }
    DNDS_HOST_DEVICE GhostTarget global(index row) const {
        if (row < 0 || row >= firstRows[ranks])
            return {-1, row};
        int low = 0, high = ranks; // the last rank that begins at or before the row, and so has rows
        while (high - low > 1) {
            const int middle = low + (high - low) / 2;
            (firstRows[middle] <= row ? low : high) = middle;
        }
        return {low, row - firstRows[low]};
    }
    /// The offset of `count` elements from element `j` of a row; beyond all memory where there are no such.
    template <class T>
    DNDS_HOST_DEVICE std::uint64_t offsetOf(GhostTarget target, index j, index count) const {
        const bool sane = target.row >= 0 && target.row < mostRows && j >= 0 && count >= 0 && j <= width - count;
        return sane ? static_cast<std::uint64_t>(target.row) * stride + static_cast<std::uint64_t>(j) * sizeof(T)
                    : UINT64_MAX;
    }
};

} // namespace Detail

/// The operations of a `GhostWindow` in kernels, each by one thread. Trivially copyable; valid as long as the window.
///
///     struct Hook {
///         GhostWindowView<std::int64_t> labels;
///         DNDS_HOST_DEVICE void operator()(index cell) const {
///             labels.accumulate(labels.local(cell), 0, smallest, AtomicOp::Min);   // owned or ghost: the owner's row
///         }
///     };
///
/// A row that does not exist, or whose owner kernels do not reach, is skipped, and the first such access thrown by the
/// next call of the window on the host; what is returned then is 0.
template <class T>
class GhostWindowView {
  public:
    GhostWindowView() = default;
    /// For `GhostWindow::view`.
    explicit GhostWindowView(const Detail::GhostTable &table) : table_(table) {}

    /// The owner's row of ghost `k`; of a local row, owned or ghost; of a global row (O(log ranks)).
    DNDS_HOST_DEVICE GhostTarget ghost(index k) const { return table_.ghost(k); }
    DNDS_HOST_DEVICE GhostTarget local(index i) const { return table_.local(i); }
    DNDS_HOST_DEVICE GhostTarget global(index row) const { return table_.global(row); }
    /// The number of ghosts, of owned rows, and of elements of a row.
    DNDS_HOST_DEVICE index ghostSize() const { return table_.ghostCount; }
    DNDS_HOST_DEVICE index fatherSize() const { return table_.owned; }
    DNDS_HOST_DEVICE rowsize width() const { return table_.width; }

    /// A whole row.
    DNDS_HOST_DEVICE void put(GhostTarget target, const T *row) const {
        placeOf(RemoteCall::Put, target, 0, table_.width, 1)
            .put(0, row, static_cast<std::uint64_t>(table_.width) * sizeof(T));
    }
    DNDS_HOST_DEVICE void get(GhostTarget target, T *row) const {
        placeOf(RemoteCall::Get, target, 0, table_.width, 1)
            .get(0, row, static_cast<std::uint64_t>(table_.width) * sizeof(T));
    }
    /// Element `j` of a row, atomically; returns what it was.
    DNDS_HOST_DEVICE T fetchAndOp(GhostTarget target, rowsize j, T operand, AtomicOp op) const requires AtomicWord<T> {
        return atomic(target, j, op, operand, T{});
    }
    DNDS_HOST_DEVICE T fetch(GhostTarget target, rowsize j = 0) const requires AtomicWord<T> {
        return atomic(target, j, AtomicOp::Fetch, T{}, T{});
    }
    DNDS_HOST_DEVICE void accumulate(GhostTarget target, rowsize j, T operand,
                                     AtomicOp op = AtomicOp::Add) const requires AtomicWord<T> {
        placeOf(RemoteCall::Atomic, target, j, 1, sizeof(T)).atomic(0, op, operand);
    }
    /// All elements of a row, each atomically.
    DNDS_HOST_DEVICE void accumulateRow(GhostTarget target, const T *row,
                                        AtomicOp op = AtomicOp::Add) const requires AtomicWord<T> {
        for (rowsize j = 0; j < table_.width; ++j)
            accumulate(target, j, row[j], op);
    }
    /// Sets the element to `value` if it has the bits of `expected`; returns what it was.
    DNDS_HOST_DEVICE T compareAndSwap(GhostTarget target, rowsize j, T expected, T value) const requires AtomicWord<T> {
        return atomic(target, j, AtomicOp::CompareSwap, value, expected);
    }

    /// This thread's puts and changes before it are seen, at each owner, before those after it.
    DNDS_HOST_DEVICE void fence() const { table_.fence(); }
    /// This thread's operations are complete, at the owners, too.
    DNDS_HOST_DEVICE void quiet() const { table_.quiet(); }

  private:
    DNDS_HOST_DEVICE RemotePlace placeOf(RemoteCall call, GhostTarget target, index j, index count,
                                         std::uint64_t alignment) const {
        const std::uint64_t offset = table_.template offsetOf<T>(target, j, count);
        const std::uint64_t bytes = static_cast<std::uint64_t>(count) * sizeof(T);
        return table_.placeOf(table_.check(target.rank, offset, bytes, alignment), call, target.rank, offset, bytes);
    }
    DNDS_HOST_DEVICE T atomic(GhostTarget target, rowsize j, AtomicOp op, T operand, T compare) const {
        if (!suits<T>(op)) {
            table_.faults->note(AccessFault::Real, RemoteCall::Atomic, target.rank, 0, sizeof(T));
            return T{};
        }
        return placeOf(RemoteCall::Atomic, target, j, 1, sizeof(T)).fetchAtomic(0, op, operand, compare);
    }

    Detail::GhostTable table_;
};

} // namespace DNDS
