/// @file RowBlocks.hpp
/// @brief Distributes the blocks of a file's array over ranks and sends rows there and back. Part of Checkpoint.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/EvenSplit.hpp"
#include "DNDS/Mpi/SparseExchange.hpp"
#include "DNDS/Serialize/CheckpointContent.hpp"
#include "DNDS/Storage/ArrayBase.hpp"

#include <algorithm>
#include <exception>
#include <span>
#include <vector>

namespace DNDS::Detail {

/// Whole blocks, spread as evenly as possible, in order of rank. Local, O(1).
class BlockSpread {
  public:
    BlockSpread(const CheckpointArray &array, int ranks)
        : rows_(array.rows), blockRows_(array.blockRows), blocks_(array.blocks(), ranks) {}

    index firstBlock(int rank) const { return blocks_.begin(rank); }
    index firstRow(int rank) const { return rowOfBlock(firstBlock(rank)); }
    /// The first row of a block, or the end of all rows.
    index rowOfBlock(index block) const { return std::min(rows_, block * blockRows_); }
    int owner(index row) const { return blocks_.owner(row / blockRows_); }

  private:
    index rows_;
    index blockRows_;
    EvenSplit blocks_;
};

/// A rank's blocks of an array in memory, as they lie in the file.
struct RowSlab {
    index first = 0; ///< row
    index rows = 0;
    index rowBytes = 0;         ///< of each row, if there are no offsets
    std::vector<index> offsets; ///< [rows + 1] bytes, or empty
    std::vector<index> ids;     ///< [rows] if listed
    std::vector<std::byte> values;

    /// The byte at which a row starts, or the last one ends.
    index start(index row) const { return offsets.empty() ? row * rowBytes : offsets[static_cast<std::size_t>(row)]; }
    std::span<const std::byte> bytes(index begin, index end) const {
        return {values.data() + start(begin), static_cast<std::size_t>(start(end) - start(begin))};
    }
};

/// Splits the ids of all ranks, >= 0, into one share per rank, ascending; returns the least id of each share. If ids
/// are unique, share sizes differ by at most one, whatever the ids. Collective; one reduction of one number per rank
/// for each bit of the range of ids.
std::vector<index> evenShares(CommunicatorView comm, std::span<const index> ids);

/// The row of the file for each id. Ids that are not 0, 1, ... are sorted over all ranks, evenly shared. Collective.
/// Throws ArgumentError on all ranks for a repeated id.
std::vector<index> rowsOfIds(CommunicatorContext &context, std::span<const index> ids, bool listed);

/// Sends rows to the ranks of their blocks. `places`: the file rows of the array's rows. Collective. Throws
/// ArgumentError on all ranks for a repeated row.
RowSlab gatherSlab(CommunicatorContext &context, const CheckpointArray &target, const ArrayBase &array,
                   std::span<const index> places, std::span<const index> ids);

/// Rows in the order of arrival.
struct ArrivedRows {
    std::vector<index> offsets{0}; ///< bytes
    std::vector<std::byte> values;
};

/// The rows with these ids, in their order, from the slabs of all ranks. `failure` is what this rank caught while it
/// made its slab. Collective. Throws on all ranks: the failure of any rank; DataError for an id that no slab has.
ArrivedRows fetchRows(CommunicatorContext &context, const CheckpointArray &source, const RowSlab &slab,
                      std::span<const index> ids, const std::exception_ptr &failure);

} // namespace DNDS::Detail
