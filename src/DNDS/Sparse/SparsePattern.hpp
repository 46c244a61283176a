/// @file SparsePattern.hpp
/// @brief The channels between the blocks of a grid, shared by all sparse fields on it.
#pragma once

#include "DNDS/Blocks/BlockGrid.hpp"
#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/Sparse/ObjectPool.hpp"
#include "DNDS/Storage/HostDeviceBuffer.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace DNDS {

class BoxToBox;
class RowGather;
class RowScatter;

/// Memory of blocks, by size in bytes.
using BlockPool = ObjectPool<HostDeviceBuffer>;

/// One end of a channel: some cells or ghosts of a block of this rank. 8 bytes: rows of equal blocks are one shape.
struct ChannelEnd {
    std::int32_t block = 0; ///< on this rank
    std::int32_t shape = 0; ///< rows of the block's memory: a number in `SparsePattern::copies`
};

/// From a block of this rank to another one, or to itself through a period.
struct LocalChannel {
    ChannelEnd from;
    ChannelEnd to;
};

/// The channels to and from one other rank. Channel k that rank s gives to rank r is channel k that r receives from s:
/// the number is the same on both ranks, and messages name channels by it.
struct PeerChannels {
    int rank = 0;
    std::vector<ChannelEnd> given;
    std::vector<ChannelEnd> received;
};

/// Input of a pattern: the blocks of one rank and the rows that they exchange. Rows of a block are counted from 0;
/// given rows may be lists, received rows are ranges or boxes. `given` of rank r for s and `received` of s from r name
/// the same channels in the same order.
struct SparseLinks {
    struct Link {
        int block = 0; ///< place in `blocks`
        RowList rows;
    };
    struct Peer {
        std::vector<Link> given;
        std::vector<Link> received;
    };
    std::vector<BlockMemory> blocks; ///< ascending numbers
    std::map<int, Peer> peers;       ///< keyed by rank, this one included
    std::vector<int> ranks;          ///< [all blocks] the owner of each, by number; -1: no rank
    std::uint64_t signature = 0;     ///< a hash of all blocks and channels, whatever their ranks: the same on all ranks
    std::shared_ptr<const void> kept; ///< the memory of lists of rows
};

/// The common part of sparse fields with one grid and ghost widths: how a block lies in memory, and the channels
/// between blocks. A channel leads from cells of one block to the ghosts of another one that copy them: 26 a block in
/// three dimensions, 6 with ghosts in the shape of a star. Channels cost 8 bytes an end, whatever the number of fields:
/// geometry is shared by all fields. A rank knows its own blocks and their channels, and of the others only the owner.
/// Immutable, except the pool of the fields' memory and caches, which are filled at first use: fields of one pattern
/// are used by one thread at a time.
///
///     const auto pattern = SparsePattern::make(comm, grid, {2, 2, 2});
///     pattern->pool().setLimit(std::size_t{4} << 30);        // bytes for blocks on this rank
class SparsePattern {
  public:
    /// Collective; all ranks give the same. Cost: O(channels), one message a peer. Throws on all ranks as
    /// BlockPattern::make.
    static std::shared_ptr<const SparsePattern> make(const CommunicatorView &comm,
                                                     std::shared_ptr<const BlockGrid> grid, const GhostWidths &ghosts);

    /// For blocks of other kinds: of meshes, see Geom/Clusters. Local; all ranks give links that fit each other.
    static std::shared_ptr<const SparsePattern> fromLinks(std::shared_ptr<CommunicatorContext> context,
                                                          SparseLinks links);

    SparsePattern(const SparsePattern &) = delete;
    SparsePattern &operator=(const SparsePattern &) = delete;
    ~SparsePattern();

    /// Null for blocks of another kind.
    const std::shared_ptr<const BlockGrid> &grid() const noexcept { return grid_; }
    const GhostWidths &ghosts() const noexcept { return ghosts_; }
    /// Differs for other grids, ghosts and meshes; the same on all ranks.
    std::uint64_t signature() const noexcept { return signature_; }
    const std::shared_ptr<CommunicatorContext> &context() const noexcept { return context_; }
    /// This rank's blocks, in the order of their numbers. `firstRow` is 0: blocks have memory of their own.
    std::span<const BlockMemory> blocks() const noexcept { return blocks_; }
    /// The place in `blocks` of the block with this number in the grid, or -1 where another rank has it. O(log blocks).
    int localOf(int number) const noexcept;
    /// [all blocks] the rank of each, by number; -1 for clusters without cells, which no rank has.
    std::span<const int> ranks() const noexcept { return ranks_; }
    /// Whether both have the same blocks, by number, with the same ghosts, whatever their ranks. Local. O(blocks).
    bool hasBlocksOf(const SparsePattern &other) const noexcept;
    /// The pool from which blocks of all fields on this pattern get their memory.
    BlockPool &pool() const noexcept { return pool_; }

    /// Other ranks that share channels with this one, ascending; mutual.
    std::span<const PeerChannels> peers() const noexcept { return peers_; }
    std::span<const LocalChannel> localChannels() const noexcept { return local_; }

    /// A channel of this rank: number `channel` in one list of `peers()[peer]`.
    struct Place {
        std::int32_t peer = 0;
        std::int32_t channel = 0;
    };
    /// The channels to other ranks that begin in a block of this rank, and those from other ranks that end there.
    std::span<const Place> givenBy(int block) const noexcept { return given_.of(block); }
    std::span<const Place> receivedBy(int block) const noexcept { return received_.of(block); }
    /// The same within this rank: numbers in `localChannels`.
    std::span<const std::int32_t> localFrom(int block) const noexcept { return localFrom_.of(block); }
    std::span<const std::int32_t> localTo(int block) const noexcept { return localTo_.of(block); }

    /// The rows of a block that stand for cells: its own, and ghosts that channels fill, not those at walls. Ascending.
    std::span<const IndexRange> cellRows(int block) const noexcept {
        return cellRows_[toSize(cellRowsOf_[toSize(block)])];
    }

    /// Copies of the rows of each shape, for one size of cells.
    struct Copies {
        std::vector<RowGather> gathers;   ///< [shapes]
        std::vector<RowScatter> scatters; ///< [shapes]
        /// Straight from block to block, for each pair of shapes of local channels.
        std::vector<BoxToBox> direct;
        std::vector<std::int32_t> directOf; ///< [local channels]: which of them; -1 where the ghosts are one run

        /// Copies what local channel `k` moves, from one block's memory to another's.
        void copyLocal(std::size_t k, const LocalChannel &channel, const std::byte *from, std::byte *to) const;
    };
    /// Local; O(shapes + local channels), for lists O(rows), at the first call for a width.
    const Copies &copies(std::size_t cellBytes) const;
    /// The rows of a shape, from the first one of the block, in the order in which they are moved.
    const RowList &rows(std::int32_t shape) const noexcept { return shapes_[toSize(shape)]; }
    /// The cells of a shape for kernels: `rows` of the block's memory, on the device; null for those from `first` on.
    struct DeviceRows {
        const std::uint32_t *rows = nullptr;
        index first = 0;
        index count = 0;
    };
    /// Local; O(cells of all shapes) at the first call. Throws NotBuiltError, MemoryError.
    const DeviceRows &deviceRows(std::int32_t shape) const;
    /// The largest number of cells of a shape.
    index maxCells() const noexcept;

  private:
    /// CSR: items by block.
    template <class T>
    struct ByBlock {
        std::vector<std::int32_t> starts;
        std::vector<T> items;
        std::span<const T> of(int block) const noexcept {
            const auto first = static_cast<std::size_t>(starts[toSize(block)]);
            return std::span(items).subspan(first, static_cast<std::size_t>(starts[toSize(block) + 1]) - first);
        }
    };
    class Builder;

    SparsePattern();
    /// Adds the copies of local channels, one for each pair of shapes.
    void addDirect(Copies &made) const;
    /// Puts the lists of all shapes into one buffer on the device.
    void makeDeviceRows() const;

    std::shared_ptr<const BlockGrid> grid_;
    GhostWidths ghosts_;
    std::shared_ptr<CommunicatorContext> context_;
    std::vector<BlockMemory> blocks_;
    std::vector<int> ranks_;
    std::vector<PeerChannels> peers_;
    std::vector<LocalChannel> local_;
    ByBlock<Place> given_;
    ByBlock<Place> received_;
    ByBlock<std::int32_t> localFrom_;
    ByBlock<std::int32_t> localTo_;
    std::vector<std::vector<IndexRange>> cellRows_; ///< one list for each kind of block
    std::vector<std::int32_t> cellRowsOf_;          ///< [blocks]: which of them
    std::vector<RowList> shapes_;                   ///< rows from the first one of the block
    std::shared_ptr<const void> kept_;              ///< owner of the lists in `shapes_`
    std::uint64_t signature_ = 0;
    mutable BlockPool pool_;
    mutable std::map<std::size_t, std::unique_ptr<const Copies>> copies_; ///< keyed by the bytes of a cell
    mutable std::vector<DeviceRows> deviceRows_;                          ///< [shapes]
    mutable Device::DeviceBuffer<std::uint32_t> rowsOnDevice_;
};

} // namespace DNDS
