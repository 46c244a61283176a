/// @file TransportTypes.hpp
/// @brief Types by which exchanges speak to transports: their names, and the rows that this rank exchanges with one
/// peer.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace DNDS {

/// Method of moving the bytes of an exchange.
enum class TransportKind : unsigned char {
    Auto,       ///< chosen for each peer by `chooseTransport`
    Datatype,   ///< MPI derived datatypes directly from and into the arrays
    Packed,     ///< rows gathered into one buffer a peer, received directly into the destination
    NodeShared, ///< the owner writes into the reader's memory; between ranks of one node
    Local,      ///< a copy within this rank, for rows that it pulls from itself
    Staged,     ///< device rows: packed into pinned memory, sent as messages, unpacked on the device
    Direct,     ///< device rows: packed on the device, sent from and to device memory by a GPU-aware MPI
    Peer        ///< device rows: packed on the device, read there by the peer's device; between ranks of one node
};

/// The name of a transport: "auto", "datatype", "packed", "node-shared", "local", "staged", "direct" or "peer";
/// "unknown" for other numbers. Local.
std::string_view transportName(TransportKind kind);
/// The kind of that name; throws ArgumentError that lists the names.
TransportKind transportFromName(std::string_view name);

/// Rows of a box of cells: row `first + i0 * strides[0] + i1 * strides[1] + ...` in the order of nested loops over
/// i0 < counts[0], i1 < counts[1], ..., of which the last one runs fastest. Unused loops count to 1.
struct RowBox {
    static constexpr std::size_t loops = 5;

    index first = 0;
    std::array<index, loops> counts{1, 1, 1, 1, 1};
    std::array<index, loops> strides{}; ///< in rows; may be negative

    /// The number of rows. O(1).
    index size() const noexcept {
        index rows = 1;
        for (const index count : counts)
            rows *= count;
        return rows;
    }
    /// Calls `function` for the first row of each innermost loop, in order.
    template <class Function>
    void forEachLine(Function &&function) const {
        for (index a = 0; a < counts[0]; ++a)
            for (index b = 0; b < counts[1]; ++b)
                for (index c = 0; c < counts[2]; ++c)
                    for (index d = 0; d < counts[3]; ++d)
                        function(first + a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3]);
    }
    /// Calls `function(first, last)` for runs of consecutive rows [first, last), in order.
    template <class Function>
    void forEachRun(Function &&function) const {
        forEachLine([&](index start) {
            if (strides.back() == 1)
                return function(start, start + counts.back());
            for (index k = 0; k < counts.back(); ++k)
                function(start + k * strides.back(), start + k * strides.back() + 1);
        });
    }
};

/// Rows in the order in which they are moved: a range, boxes, or a list owned by the caller. Properties that copying
/// needs of a list are computed once, on first use, and shared by all gathers of it.
class RowList {
  public:
    /// The rows [first, last).
    RowList(index first, index last) : range_(true), first_(first), count_(last - first) {}
    /// The rows of a list, which outlives this object.
    explicit RowList(std::span<const index> rows) : rows_(rows), count_(static_cast<index>(rows.size())) {}
    /// The rows of boxes, box after box; a range if they are consecutive. Keeps some bytes a box, no row numbers.
    /// Local. Cost O(boxes). Throws ArgumentError for negative counts.
    static RowList boxes(std::span<const RowBox> boxes);

    /// Whether this is a range, from `first()`.
    bool isRange() const noexcept { return range_; }
    index first() const noexcept { return isList() && !rows_.empty() ? rows_.front() : first_; }
    index count() const noexcept { return count_; }
    /// Whether this was made from a list.
    bool isList() const noexcept { return !range_ && boxes_ == nullptr; }
    /// The listed rows; empty for a range and for boxes.
    std::span<const index> list() const noexcept { return rows_; }
    /// The boxes, none of them empty, each with the fewest loops; null for a range and a list.
    const std::shared_ptr<const std::vector<RowBox>> &boxes() const noexcept { return boxes_; }

    /// Calls `function(first, last)` for runs of consecutive rows [first, last), in order. O(runs); a list's rows are
    /// runs of one.
    template <class Function>
    void forEachRun(Function &&function) const {
        if (range_ && count_ > 0)
            function(first_, first_ + count_);
        for (const index row : rows_)
            function(row, row + 1);
        if (boxes_ == nullptr)
            return;
        for (const RowBox &box : *boxes_)
            box.forEachRun(function);
    }
    /// Calls `function` with the number of each row, in order. O(rows).
    template <class Function>
    void forEach(Function &&function) const {
        forEachRun([&](index first, index last) {
            for (index row = first; row < last; ++row)
                function(row);
        });
    }

    /// Extent of a list that is not empty.
    struct Extent {
        index least = 0;
        index most = 0;
        std::size_t runs = 0; ///< number of runs of consecutive rows; an upper bound for boxes
    };
    /// Extent of a list or boxes. O(rows) or O(boxes) once, then O(1).
    const Extent &extent() const;

    /// The listed rows, counted from the least of them; null if they do not fit 32 bits. O(rows) once, then O(1);
    /// kept as long as this object or one that copied the pointer.
    const std::shared_ptr<const std::vector<std::uint32_t>> &numbers() const;

  private:
    /// As `extent`, under the lock.
    const Extent &findExtent() const;

    /// One of the three: a list, boxes, or a range of `count_` rows from `first_`.
    std::span<const index> rows_;
    std::shared_ptr<const std::vector<RowBox>> boxes_; ///< shared by copies
    bool range_ = false;
    index first_ = 0;
    index count_ = 0;
    /// Found on first use; `runs` is 0 until then.
    mutable Extent extent_;
    mutable std::shared_ptr<const std::vector<std::uint32_t>> numbers_;
};

} // namespace DNDS
