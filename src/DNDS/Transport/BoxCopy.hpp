/// @file BoxCopy.hpp
/// @brief Copies the rows of boxes, whose places in memory are described by strides, to and from packed bytes.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Transport/TransportTypes.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace DNDS {

/// Runs of `bytes` bytes, whose first bytes are where `runs` says: counted in bytes, not in rows.
struct ByteBox {
    RowBox runs;
    std::size_t bytes = 0; ///< bytes of each run

    /// The bytes of all runs.
    std::size_t size() const noexcept { return static_cast<std::size_t>(runs.size()) * bytes; }
};

/// Calls `copy` with the length of runs as a template argument where copying is compiled for it, else with 0.
template <class Copy>
void withRunLength(std::size_t bytes, Copy &&copy) {
    switch (bytes) { // one or two cells of one value, or of five, are what faces across the fastest dimension have
    case 4:
        return copy.template operator()<4>();
    case 8:
        return copy.template operator()<8>();
    case 16:
        return copy.template operator()<16>();
    case 32:
        return copy.template operator()<32>();
    case 40:
        return copy.template operator()<40>();
    case 64:
        return copy.template operator()<64>();
    case 80:
        return copy.template operator()<80>();
    default:
        return copy.template operator()<0>();
    }
}

/// Rows of boxes in an array whose rows all have one width, as runs of bytes: loops over runs of one length, compiled
/// for the length where that is that of a few doubles. Nothing is kept for a row. Copies share what they know.
class BoxCopy {
  public:
    /// No bytes.
    BoxCopy() = default;
    /// The rows of `rows`, which are boxes, each of `stride` bytes. Local. Cost O(boxes).
    BoxCopy(const RowList &rows, std::size_t stride);
    /// The runs of `boxes`, in order. Local. Cost O(boxes).
    explicit BoxCopy(std::vector<ByteBox> boxes);

    /// The bytes of all rows, as they are packed.
    std::size_t bytes() const noexcept { return bytes_; }
    /// In the order in which their bytes are packed. Local.
    std::span<const ByteBox> boxes() const noexcept {
        return boxes_ == nullptr ? std::span<const ByteBox>() : std::span(*boxes_);
    }

    /// Copies the rows of an array that starts at `base` to `to`, packed. Local.
    void gather(const std::byte *base, std::byte *to) const;
    /// The other way round. Local.
    void scatter(const std::byte *from, std::byte *base) const;
    /// The runs in order, relative to the base; adjacent runs are joined. Local. O(runs), also in memory.
    std::vector<ByteBlock> blocks() const;
    /// Calls `function` with the offset and the bytes of each run, in order. Local.
    template <class Function>
    void forEachRun(Function &&function) const {
        for (const ByteBox &box : boxes())
            box.runs.forEachLine([&](index start) {
                for (index run = 0; run < box.runs.counts.back(); ++run)
                    function(static_cast<std::size_t>(start + run * box.runs.strides.back()), box.bytes);
            });
    }

  private:
    /// Null for no bytes.
    std::shared_ptr<const std::vector<ByteBox>> boxes_;
    std::size_t bytes_ = 0;
};

} // namespace DNDS
