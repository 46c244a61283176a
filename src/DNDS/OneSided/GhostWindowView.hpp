/// @file GhostWindowView.hpp
/// @brief The owners' rows of ghosts in kernels.
#pragma once

#include "DNDS/OneSided/Verbs.hpp"

#include <cstdint>

namespace DNDS {

namespace Detail {

/// Limit of the rows of a rank: their offsets in bytes fit 64 bits.
inline constexpr std::int64_t maxRows = std::int64_t{1} << 40;

/// Description of a window over rows, besides the memory.
struct GhostTable : RemoteTable {
    const GhostTarget *ghosts = nullptr;     ///< one per ghost
    const std::int64_t *firstRows = nullptr; ///< global, by rank, and the total
    std::int64_t ghostCount = 0;
    std::int64_t owned = 0;   ///< rows of this rank
    std::uint64_t stride = 0; ///< bytes from row to row, of all ranks
    std::int32_t width = 0;   ///< elements of a row

    /// Rows by number; rank -1 for numbers out of range, which operations refuse. The last by bisection, O(log
    /// ranks).
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
    /// The offset of `count` elements from element `j` of a row; beyond all memory if the row lacks them.
    template <class T>
    DNDS_HOST_DEVICE std::uint64_t offsetOf(GhostTarget target, index j, index count) const {
        const bool sane = target.row >= 0 && target.row < maxRows && j >= 0 && count >= 0 && j <= width - count;
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
/// A row that does not exist, or whose owner kernels do not reach, is skipped, and the next call of the window on the
/// host throws the first such fault; the operation returns 0.
template <class T>
class GhostWindowView : public GhostVerbs<GhostWindowView<T>, T> {
  public:
    GhostWindowView() = default;
    /// For `GhostWindow::view`.
    explicit GhostWindowView(const Detail::GhostTable &table) : table_(table) {}

    /// The number of ghosts, and of owned rows.
    DNDS_HOST_DEVICE index ghostSize() const { return table_.ghostCount; }
    DNDS_HOST_DEVICE index fatherSize() const { return table_.owned; }

    /// This thread's earlier puts and changes are seen, at each owner, before its later ones.
    DNDS_HOST_DEVICE void fence() const { table_.fence(); }
    /// Completes this thread's operations, at the owners, too.
    DNDS_HOST_DEVICE void quiet() const { table_.quiet(); }

  private:
    friend class GhostVerbs<GhostWindowView, T>;

    DNDS_HOST_DEVICE const Detail::GhostTable &table() const { return table_; }
    DNDS_HOST_DEVICE KernelRemoteAddress address(AccessFault fault, RemoteCall call, GhostTarget target, index j,
                                                 index count) const {
        const std::uint64_t offset = table_.template offsetOf<T>(target, j, count);
        const std::uint64_t bytes = static_cast<std::uint64_t>(count) * sizeof(T);
        if (fault == AccessFault::None)
            fault = table_.check(target.rank, offset, bytes, call == RemoteCall::Atomic ? sizeof(T) : 1);
        return addressIn(table_, fault, call, target.rank, offset, bytes);
    }

    /// A copy, with addresses that kernels reach.
    Detail::GhostTable table_;
};

} // namespace DNDS
