/// @file BoxCopy.hpp
/// @brief Copies the rows of boxes, whose places in memory are described by strides, to and from packed bytes.
#pragma once

#include "DNDS/Mpi/Datatype.hpp"
#include "DNDS/Transport/RowList.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace DNDS {

/// Rows of boxes in an array whose rows all have one width, as runs of bytes: loops over runs of one length, compiled
/// for the length where that is that of a few doubles. Nothing is kept for a row. Copies share what they know.
class BoxCopy {
  public:
    /// No bytes.
    BoxCopy() = default;
    /// The rows of `rows`, which are boxes, each of `stride` bytes. Local. Cost O(boxes).
    BoxCopy(const RowList &rows, std::size_t stride);

    std::size_t bytes() const noexcept { return bytes_; }

    /// Copies the rows of an array that starts at `base` to `to`, one behind the other. Local.
    void gather(const std::byte *base, std::byte *to) const;
    /// The other way round. Local.
    void scatter(const std::byte *from, std::byte *base) const;
    /// The runs in order, relative to the base; those that follow each other joined. Local. O(runs), also in memory.
    std::vector<ByteBlock> blocks() const;
    /// Calls `function` with the offset and the bytes of each run, in order. Local.
    template <class Function>
    void forEachRun(Function &&function) const {
        for (std::size_t k = 0; boxes_ != nullptr && k < boxes_->size(); ++k) {
            const ByteBox &box = (*boxes_)[k];
            box.runs.forEachLine([&](index start) {
                for (index run = 0; run < box.runs.counts.back(); ++run)
                    function(static_cast<std::size_t>(start + run * box.runs.strides.back()), box.bytes);
            });
        }
    }

  private:
    /// Where runs of `bytes` bytes begin: counted in bytes, not in rows.
    struct ByteBox {
        RowBox runs;
        std::size_t bytes;
    };

    std::shared_ptr<const std::vector<ByteBox>> boxes_;
    std::size_t bytes_ = 0;
};

} // namespace DNDS
