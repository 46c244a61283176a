/// @file RowGather.hpp
/// @brief The rows of one array that one peer needs, prepared for fast copying.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Storage/ArrayView.hpp"
#include "DNDS/Transport/BoxCopy.hpp"
#include "DNDS/Transport/StreamWriter.hpp"
#include "DNDS/Transport/TransportTypes.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace DNDS {

/// The runs of consecutive rows, in order, as runs of bytes. Local. Cost O(rows).
std::vector<ByteBlock> joinRows(const RowList &rows, const RowPart &part);

/// Copies a fixed list of rows of one RowPart, packed, to a destination. Built once, used each pull.
/// Copies of a gather, and gathers of one RowList, share the row numbers.
///
/// Rows that follow each other in memory are joined into runs. Where runs are long, the copy is a few block copies;
/// where they are short and rows have one width, a loop compiled for that width copies row by row and fetches ahead.
/// Rows of boxes that have one width are copied by strides.
class RowGather {
  public:
    /// `rows` are in the order in which they are to be copied; they exist in `part`. Local. Cost O(rows).
    RowGather(std::span<const index> rows, const RowPart &part);
    /// The same, with row numbers that are made once for all gathers of `rows`.
    RowGather(const RowList &rows, const RowPart &part);
    /// The rows from `first` up to but without `last`. Local. Cost O(1).
    RowGather(index first, index last, const RowPart &part);

    /// The bytes that `gather` writes.
    std::size_t bytes() const noexcept { return bytes_; }
    /// Whether the rows are one run, so that they can be sent from where they are.
    bool contiguous() const noexcept { return runs_.size() == 1; }
    /// The first byte of a contiguous gather, relative to the part's base.
    std::size_t firstByte() const noexcept { return runs_.empty() ? 0 : runs_.front().offset; }

    /// Copies the rows from a part that starts at `base` to `to`. Local.
    void gather(const std::byte *base, std::byte *to) const;
    /// The same into a writer that goes past the caches. Local.
    void gather(const std::byte *base, StreamWriter &to) const;

    /// The runs of bytes relative to the part's base, in order; adjacent runs may be listed separately.
    std::vector<ByteBlock> blocks() const;
    /// The same as boxes: of rows of boxes that have one width a few, else one a run. Local.
    std::vector<ByteBox> byteBoxes() const;

    /// For rows copied one by one: their numbers, counted from `firstRow()`. Empty where `blocks()` is the better
    /// description.
    std::span<const std::uint32_t> rowNumbers() const noexcept { return rows_; }
    std::size_t firstRow() const noexcept { return firstRow_; }
    /// The bytes of each row, of which all blocks are multiples; 0 where rows differ, and for boxes and ranges.
    std::size_t stride() const noexcept { return stride_; }

  private:
    /// Copies `count` rows of `stride` bytes, by their numbers, one after another to `to`.
    using CopyRows = void (*)(const std::byte *base, const std::uint32_t *rows, std::size_t count, std::size_t stride,
                              std::byte *to);

    /// The loop compiled for this width, or the general one.
    static CopyRows copyRowsOf(std::size_t stride);
    /// Keeps runs, and counts their bytes.
    void copyRuns(std::vector<ByteBlock> runs);

    /// Of all rows; then of each row.
    std::size_t bytes_ = 0;
    std::size_t stride_ = 0;
    std::size_t firstRow_ = 0;            ///< `rows_` count from here, so that 32 bits reach far
    CopyRows copyRows_ = nullptr;         ///< null: copy `runs_`
    BoxCopy boxes_;                       ///< used instead of all of these if it has bytes
    std::span<const std::uint32_t> rows_; ///< used with `copyRows_`
    std::span<const ByteBlock> runs_;     ///< used without
    std::shared_ptr<const void> hold_;    ///< the memory of `rows_` or `runs_`
};

} // namespace DNDS
