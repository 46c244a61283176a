/// @file RowScatter.hpp
/// @brief The destination of the rows of one array that come from one peer.
#pragma once

#include "DNDS/Device/RowKernels.hpp"
#include "DNDS/Transport/RowGather.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace DNDS {

/// A fixed list of rows of one RowPart, which is filled from contiguous bytes: the counterpart of RowGather. Rows
/// that follow each other in memory are one run. Ghosts that are sorted by owner are one run, which costs nothing;
/// halos of blocks are several.
class RowScatter {
  public:
    /// No bytes.
    RowScatter() = default;
    /// One run of `bytes` bytes that begins at `offset` from the part's base. Local. Cost O(1).
    RowScatter(std::size_t offset, std::size_t bytes) : only_{offset, bytes}, bytes_(bytes) {}
    /// `rows` in the order in which they arrive; they exist in `part`, each once. Local. Cost O(rows).
    RowScatter(std::span<const index> rows, const RowPart &part) : RowScatter(RowList(rows), part) {}
    /// The same. Of boxes whose rows have one width, strides are kept instead of runs. Local. Cost O(rows), of ranges
    /// O(1) and of such boxes O(boxes).
    RowScatter(const RowList &rows, const RowPart &part);

    /// The bytes that `scatter` reads.
    std::size_t bytes() const noexcept { return bytes_; }
    /// Whether there is one run at most, so that rows can arrive where they belong.
    bool contiguous() const noexcept { return runs_ == nullptr && boxes_.bytes() == 0; }
    /// The first byte of a contiguous destination relative to the part's base; 0 where there are several runs.
    std::size_t offset() const noexcept { return contiguous() ? only_.offset : 0; }
    /// The rows as boxes; without bytes where they are one run, or no boxes of rows that have one width. Local.
    const BoxCopy &boxes() const noexcept { return boxes_; }
    /// The runs relative to the part's base, in order of arrival. Local. O(runs).
    std::vector<ByteBlock> runs() const;

    /// Copies the rows that arrived at `from` into a part that starts at `base`. Local.
    void scatter(const std::byte *from, std::byte *base) const;

  private:
    ByteBlock only_{0, 0};                               ///< used where there is neither of these
    std::shared_ptr<const std::vector<ByteBlock>> runs_; ///< shared by copies
    BoxCopy boxes_;                                      ///< used where it has bytes
    std::size_t bytes_ = 0;
};

/// The copies that move `from`'s rows to `to`'s, which are as many bytes, relative to the parts' bases. Local. O(runs).
std::vector<Device::CopyBlock> blocksBetween(const RowGather &from, const RowScatter &to);

} // namespace DNDS
