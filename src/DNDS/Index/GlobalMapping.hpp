/// @file GlobalMapping.hpp
/// @brief Ownership of global rows.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace DNDS {

/// A row as its owner numbers it.
struct OwnedRow {
    int rank;  ///< the owner
    index row; ///< within the owner's rows
};

/// Numbers the rows of all ranks consecutively: rank r owns the contiguous range [begin(r), end(r)). Immutable.
class GlobalMapping {
  public:
    /// Every rank contributes its number of rows. Collective. Memory O(ranks). Throws ArgumentError on all ranks when a
    /// rank passes a negative number.
    static std::shared_ptr<const GlobalMapping> create(CommunicatorView comm, index localRows);

    /// This rank, and the number of ranks. Local.
    int rank() const noexcept { return rank_; }
    int ranks() const noexcept { return static_cast<int>(offsets_.size()) - 1; }
    /// The number of rows of all ranks. Local, O(1), like all functions below unless stated otherwise.
    index globalSize() const noexcept { return offsets_.back(); }
    index begin(int rank) const noexcept { return offsets_[static_cast<std::size_t>(rank)]; }
    index end(int rank) const noexcept { return offsets_[static_cast<std::size_t>(rank) + 1]; }
    index size(int rank) const noexcept { return end(rank) - begin(rank); }
    /// This rank's first global row, the one after its last, and its number of rows.
    index localBegin() const noexcept { return begin(rank_); }
    index localEnd() const noexcept { return end(rank_); }
    index localSize() const noexcept { return size(rank_); }
    /// Whether this rank owns a global row; whether the row exists.
    bool isLocal(index global) const noexcept { return global >= begin(rank_) && global < end(rank_); }
    bool contains(index global) const noexcept { return global >= 0 && global < globalSize(); }
    /// Those of `rows` that this rank does not own, in their order. Local, O(rows).
    std::vector<index> ofOthers(std::span<const index> rows) const;

    /// The owner of a global row. O(log ranks). Throws IndexError outside [0, globalSize()).
    OwnedRow owner(index global) const;
    /// The global number of a rank's row. Throws IndexError when the rank has no such row.
    index toGlobal(int rank, index row) const;

    /// The serial number of this numbering among those of its communicator; equal on all ranks.
    std::uint64_t serial() const noexcept { return serial_; }
    /// The shared state of the communicator of these rows.
    const std::shared_ptr<CommunicatorContext> &context() const noexcept { return context_; }

  private:
    GlobalMapping(std::shared_ptr<CommunicatorContext> context, std::uint64_t serial, int rank,
                  std::vector<index> offsets)
        : context_(std::move(context)), serial_(serial), rank_(rank), offsets_(std::move(offsets)) {}

    /// Kept by numberings, mappings and patterns; its communicator may be freed before (`alive`).
    std::shared_ptr<CommunicatorContext> context_;
    std::uint64_t serial_;
    int rank_;
    /// Rank r owns [offsets_[r], offsets_[r + 1]): ranks + 1 entries, ascending from 0; ranks without rows repeat a
    /// number.
    std::vector<index> offsets_;
};

} // namespace DNDS
