/// @file RowBlocks.hpp
/// @brief Distributes the blocks of a file's array over ranks and sends rows there and back. Part of Checkpoint.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/EvenSplit.hpp"
#include "DNDS/Serialize/Checkpoint.hpp"
#include "DNDS/Storage/ArrayBase.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <span>
#include <vector>

namespace DNDS::Detail {

/// The ranks that may open the file, spread evenly over all; the others send their rows there. Local, O(1).
class FileRanks {
  public:
    static constexpr int maxByDefault = 256; ///< default number of ranks, or
    static constexpr int ranksEach = 8;      ///< one in this many ranks, if that is more

    /// `wanted` of `ranks`, or the default if it is 0.
    FileRanks(int ranks, int wanted)
        : ranks_(ranks, std::min(ranks, wanted > 0 ? wanted : std::max(maxByDefault, ranks / ranksEach))) {}

    int count() const { return ranks_.parts(); }
    int rank(int k) const { return static_cast<int>(ranks_.begin(k)); }
    /// The number of these ranks below a given rank.
    int below(int rank) const { return rank == 0 ? 0 : ranks_.owner(rank - 1) + 1; }

  private:
    /// Ranks split into as many parts as open the file: the first rank of each part does.
    EvenSplit ranks_;
};

/// Whole blocks, spread over the ranks of the file as evenly as possible, in order of rank. Local, O(1).
/// A function of the array and of the number of ranks, so that any rank knows the owner of any row without messages.
class BlockSpread {
  public:
    BlockSpread(const CheckpointArray &array, const FileRanks &files)
        : rows_(array.rows), blockRows_(array.blockRows), files_(files), blocks_(array.blocks(), files.count()) {}

    index firstBlock(int rank) const { return blocks_.begin(files_.below(rank)); }
    index firstRow(int rank) const { return rowOfBlock(firstBlock(rank)); }
    /// The first row of a block, or the end of all rows.
    index rowOfBlock(index block) const { return std::min(rows_, block * blockRows_); }
    int owner(index row) const { return files_.rank(blocks_.owner(row / blockRows_)); }

  private:
    index rows_;
    index blockRows_;
    FileRanks files_;
    /// Blocks split over the ranks of the file.
    EvenSplit blocks_;
};

/// Calls `block(number, begin, end)` for each block of a rank, with its rows in the slab.
template <class Block>
void forEachBlock(const CheckpointArray &array, const FileRanks &files, int rank, Block &&block) {
    const BlockSpread spread(array, files);
    const index first = spread.firstRow(rank);
    for (index b = spread.firstBlock(rank); b < spread.firstBlock(rank + 1); b++)
        block(b, spread.rowOfBlock(b) - first, spread.rowOfBlock(b + 1) - first);
}

/// The checksum of a block: CRC-32 as in zlib, gzip and PNG (ISO 3309, polynomial 0x04C11DB7 reflected).
inline std::uint32_t crc32Of(std::span<const std::byte> bytes) {
    return static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef *>(bytes.data()), bytes.size()));
}

/// A rank's blocks of an array in memory, as they lie in the file.
struct RowSlab {
    index first = 0; ///< row
    index rows = 0;
    index rowBytes = 0;         ///< size of each row, if there are no offsets
    std::vector<index> offsets; ///< [rows + 1] bytes, or empty
    std::vector<index> ids;     ///< [rows] if listed
    std::vector<std::byte> values;

    /// The byte at which a row starts, or the last one ends.
    index start(index row) const { return offsets.empty() ? row * rowBytes : offsets[static_cast<std::size_t>(row)]; }
    std::span<const std::byte> bytes(index begin, index end) const {
        return {values.data() + start(begin), static_cast<std::size_t>(start(end) - start(begin))};
    }
};

/// Splits the ids of all ranks, >= 0, into shares, ascending; returns the least id of each share. If ids are unique,
/// share sizes differ by at most one, whatever the ids. Collective; the reductions of `findCuts` for
/// the range of ids.
std::vector<index> evenShares(CommunicatorView comm, std::span<const index> ids, int shares);

/// The row of the file for each id. Ids that are not 0, 1, ... are sorted by the ranks of the file, evenly shared.
/// Collective. Throws ArgumentError on all ranks for a repeated id.
std::vector<index> rowsOfIds(CommunicatorContext &context, const FileRanks &files, std::span<const index> ids,
                             bool listed);

/// Sends rows to the ranks of their blocks. `places`: the file rows of the array's rows. Collective. Throws
/// ArgumentError on all ranks for a repeated row.
RowSlab gatherSlab(CommunicatorContext &context, const FileRanks &files, const CheckpointArray &target,
                   const ArrayBase &array, std::span<const index> places, std::span<const index> ids);

/// Rows in the slab or in the messages that brought them.
struct ArrivedRows {
    RowSlab slab; ///< empty if it has none of them
    RankLists messages;
    std::vector<std::span<const std::byte>> rows;
};

/// The rows with these ids, in their order, from the slabs of all ranks; this rank's is `slab`. `failure` is an
/// exception from making it. Collective. Throws on all ranks: the failure of any rank; DataError for an id that no slab
/// has.
ArrivedRows fetchRows(CommunicatorContext &context, const FileRanks &files, const CheckpointArray &source, RowSlab slab,
                      std::span<const index> ids, const std::exception_ptr &failure);

/// The ids of an even share of all rows, ascending, from those of the slabs. Collective.
std::vector<index> shareIds(CommunicatorContext &context, const CheckpointArray &source, const RowSlab &slab);

} // namespace DNDS::Detail
