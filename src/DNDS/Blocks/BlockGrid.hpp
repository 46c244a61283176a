/// @file BlockGrid.hpp
/// @brief Boxes of cells in index spaces, their ranks and their neighbours; the memory layout of a rank's blocks with
/// their ghosts, and the rows that ranks exchange.
#pragma once

#include "DNDS/Blocks/Box.hpp"
#include "DNDS/Exchange/ExchangePattern.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace DNDS {

/// The box of cells, numbered from its lower corner, that blocks are cut from: the grid of a file, or one zone of a
/// grid of several zones.
struct IndexSpace {
    std::string name;
    Box cells;                                 ///< the lower corner is the origin of the numbering, often 0
    std::array<bool, maxBlockDims> periodic{}; ///< whether the last cell of a dimension is followed by the first
};

/// One box of cells and the rank that computes it.
struct Block {
    Box cells;     ///< in the numbers of its index space
    int rank = 0;  ///< the owner
    int space = 0; ///< number of the index space
};

/// Faces of two index spaces (or two of one) that touch vertex by vertex, as in a CGNS 1-to-1 connection. Vertices are
/// numbered like cells: cell c lies between the vertices c and c + 1 (CGNS files number from 1). One entry serves both
/// directions.
struct Connection {
    int space = 0;
    IndexVector begin{}; ///< first vertex of the face; begin and end are equal in one dimension
    IndexVector end{};   ///< last vertex, included
    int other = 0;
    IndexVector otherBegin{}; ///< the vertex of the other space at `begin`
    /// Entry d is +-(a + 1) where dimension d runs along dimension a of the other space, forwards or backwards. One
    /// entry may be 0, as in files: it is derived from the faces.
    std::array<int, maxBlockDims> transform{1, 2, 3, 4};
};

/// Ghosts of one block that are copies of cells (or points) of one block: another one, or itself
/// through a period or connection.
struct GhostRegion {
    Box ghosts;              ///< in the numbers of the block's own index space; without cells that it owns
    int source = 0;          ///< number of the block that owns the cells
    IndexTransform toSource; ///< maps `ghosts` to cells of the source, in the numbers of its index space
};

/// Options of `BlockGrid::cut`. Widths and bytes weight the faces; they do not bind later fields.
struct CutOptions {
    int ranks = 0;                 ///< number of ranks that get parts; 0: all
    std::vector<index> parts = {}; ///< per dimension; {}: the best. 0 or 1: not cut. -1: the best for this dimension
    GhostWidths ghosts = GhostWidths::uniform(maxBlockDims, 1);
    std::size_t cellBytes = sizeof(real); ///< size of a cell, over all fields
};

/// All blocks of a grid, known to all ranks. Immutable; shared by the fields on it. AMReX's BoxArray,
/// DistributionMapping and periodicity in one object. Memory: O(blocks) per rank. Every rank can thus find the
/// neighbours of any block without messages, and ranks that pass the same arguments agree on all results.
///
/// A ghost cell is a copy of at most one cell, found through any number of periodic directions and
/// connections. A ghost outside the index space in several dimensions (at edges and corners) is sought
/// through the connection of the lowest dimension first, and beyond it by the same rule; if that fails,
/// through the next dimension. At edges where three or five spaces meet, ghosts are thus cells of a
/// neighbour's neighbour. Ghosts that are copies of no cell (walls, holes) belong to the user: exchanges
/// leave them unchanged.
///
/// Blocks that touch share nodes (and faces and edges, see Centring) on their common boundary. Each of them has one
/// owner, and the other blocks' copies are ghosts. Blocks may touch a point at several places, through periodic
/// directions and connections; the owner is at the first of these places (by index space, then by position in C order).
/// Of several blocks there, it is the one with the lowest number.
class BlockGrid {
  public:
    /// Arbitrary blocks on arbitrary ranks. Local; all ranks pass the same. Throws ArgumentError naming the entry for
    /// blocks that overlap or leave their index space, negative ranks, dimensions that differ, and connections that are
    /// not on faces of both spaces, have an invalid transform or fold one space onto another.
    static std::shared_ptr<const BlockGrid> make(std::vector<IndexSpace> spaces, std::vector<Block> blocks,
                                                 std::vector<Connection> connections = {});

    /// One block per rank, of nearly equal size. Parts that `options` leaves open have the fewest cache lines of ghosts
    /// and of cells in excess of the average; the first dimensions, whose faces are contiguous, are cheapest to cut.
    /// Ranks of a node get neighbouring parts. Ranks beyond the number of cells (or beyond `options.ranks`) get none.
    /// Collective. Throws ArgumentError on all ranks if there are more parts than ranks.
    static std::shared_ptr<const BlockGrid> cut(const CommunicatorView &comm, const IndexSpace &space,
                                                const CutOptions &options = {});

    /// The same for an index space of this shape that starts at 0; all ranks check the shape together.
    static std::shared_ptr<const BlockGrid> cut(const CommunicatorView &comm, std::span<const index> shape,
                                                const std::array<bool, maxBlockDims> &periodic,
                                                const CutOptions &options = {});

    /// Blocks of `blockShape` cells (smaller at the upper ends), ordered along a space-filling curve that is cut into
    /// shares of nearly equal numbers of cells. Several index spaces, which may touch, follow each other. Collective.
    /// Throws on all ranks ArgumentError for extents below 1, or as `make`.
    static std::shared_ptr<const BlockGrid> blocksOf(const CommunicatorView &comm,
                                                     const std::vector<IndexSpace> &spaces,
                                                     std::span<const index> blockShape,
                                                     const std::vector<Connection> &connections = {});
    static std::shared_ptr<const BlockGrid> blocksOf(const CommunicatorView &comm, const IndexSpace &space,
                                                     std::span<const index> blockShape);
    static std::shared_ptr<const BlockGrid> blocksOf(const CommunicatorView &comm, const IndexSpace &space,
                                                     std::initializer_list<index> blockShape) {
        return blocksOf(comm, space, std::span(blockShape.begin(), blockShape.size()));
    }

    /// The same blocks on other ranks: each gets a run of consecutive blocks, in the order of their numbers (the curve
    /// of `blocksOf`), with a nearly equal share of the costs. `costs` are those of this rank's blocks, in the order of
    /// `blocksOfRank`: seconds, cells, any unit. The busiest rank gets at most (1 + imbalance) x the mean, or where
    /// blocks are too coarse 1 % more than the best such runs. Of these runs, takes the ones that move the fewest
    /// blocks (or few, where thousands of ranks are far from balance), with ranks in the same order; each rank gets a
    /// block if there are enough. Fields follow by `BlockField::moved`, `SparseField::moved`.
    ///
    /// Collective. Memory O(blocks), and at most 40 MB, on each rank. Throws on all ranks ArgumentError for costs
    /// that are negative, not finite or not one a block, a negative imbalance, and grids for more ranks than there are.
    std::shared_ptr<const BlockGrid> rebalanced(const CommunicatorView &comm, std::span<const real> costs,
                                                real imbalance = 0.1) const;

    BlockGrid(const BlockGrid &) = delete;
    BlockGrid &operator=(const BlockGrid &) = delete;
    ~BlockGrid();

    /// Dimensions, index spaces and connections with which it was made. Local.
    int dims() const noexcept { return spaces_.front().cells.dims; }
    const std::vector<IndexSpace> &spaces() const noexcept { return spaces_; }
    const std::vector<Connection> &connections() const noexcept { return connections_; }
    /// All blocks, of all ranks.
    const std::vector<Block> &blocks() const noexcept { return blocks_; }
    const Block &block(int number) const;
    /// The numbers of one rank's blocks, ascending, which is their order in memory. O(1).
    std::span<const int> blocksOfRank(int rank) const;
    /// The number of ranks that it needs: one more than the highest rank of a block.
    int ranks() const noexcept { return static_cast<int>(rankStarts_.size()) - 1; }
    index totalCells() const noexcept { return totalCells_; }

    /// The block that owns a cell of an index space, or -1. O(blocks nearby).
    int blockOf(const IndexVector &cell, int space = 0) const;
    /// Calls `visit(block, common)` for the blocks of an index space with cells in `box`, ignoring periods.
    /// Each block is visited once, in an order that depends on the blocks, not on their ranks. O(blocks nearby).
    void visitBlocks(int space, const Box &box, const std::function<void(int, const Box &)> &visit) const;
    /// The sources of a block's ghosts; regions do not overlap, and ghosts in no region are copies of no cell. Widths
    /// may exceed blocks and periods; the ghosts have the shape of `widths`. For nodes, faces and edges, layers count
    /// from the points of the block's cells; those points that another block owns (or this one, at another place) are
    /// ghosts as well. The order of regions depends on the blocks, not on their ranks: pushes apply a block's
    /// contributions in it. Local, for blocks of any rank. O(regions x blocks nearby). Throws ArgumentError if ghosts
    /// reach through 1000 periods or connections.
    std::vector<GhostRegion> ghostRegions(int block, const GhostWidths &widths, const Centring &centring = {}) const;
    /// The sources of all cells (or points) of `box`, which may reach out of its index space. Cost and errors as
    /// `ghostRegions`, and IndexError for a missing space.
    std::vector<GhostRegion> sourcesOf(int space, const Box &box, const Centring &centring = {}) const;
    /// All points beyond a face of an index space where a period or a connection continues it, however thick the
    /// neighbour is: boxes without end. Local. O(connections of the space).
    std::vector<Box> continuedBeyond(int space, int dim, bool high, const Centring &centring = {}) const;
    /// Throws ArgumentError if a connection turns points of this centring into others, such as faces of dimension 0
    /// into those of dimension 1. Local, with the same result on all ranks.
    void requireCentring(const Centring &centring) const;

    /// Whether both grids have the same blocks, by number, whatever their ranks. Local. O(blocks).
    bool hasBlocksOf(const BlockGrid &other) const noexcept;

    /// A readable description of the cut and of each rank's part. Local.
    std::string describe() const;
    /// Equal for equal grids, to check that ranks agree. O(blocks) once.
    std::uint64_t signature() const noexcept { return signature_; }
    /// Equal if the cells of all index spaces have the same numbers, whatever the blocks and ranks: for
    /// `CheckpointOptions::mesh` of a checkpoint of cells. Local. O(index spaces).
    std::uint64_t cellsSignature() const;

  private:
    struct Bins;
    struct Passage;
    class GhostFinder;

    BlockGrid(std::vector<IndexSpace> spaces, std::vector<Block> blocks, std::vector<Connection> connections,
              std::string how);
    // Steps of the constructor. Throw ArgumentError naming the entry: all ranks pass the same, so all of them throw.
    void checkSpaces() const;
    void checkBlocks() const;
    void checkOverlaps() const;
    void addRanks();
    void addPassages(const Connection &connection, std::size_t number);
    void addPassage(int space, Passage passage, std::size_t number);
    void addPeriods();
    void sign();
    /// Cells of all blocks of a space.
    index cellsOfBlocks(int space) const;

    std::vector<IndexSpace> spaces_;
    std::vector<Block> blocks_;
    std::vector<Connection> connections_;
    std::vector<std::vector<Passage>> passages_; ///< passages of each space, in the order of trial: by axis
    std::vector<Bins> bins_;                     ///< bins of each space, which locate its blocks
    std::vector<int> ofRank_;                    ///< [blocks] numbers of blocks, rank by rank, ascending for each rank
    std::vector<std::size_t> rankStarts_;        ///< [ranks + 1] start of each rank in `ofRank_`
    index totalCells_ = 0;                       ///< cells of all blocks; holes do not count
    std::uint64_t signature_ = 0;
    std::string how_; ///< description of the cut
};

/// One block of this rank in memory. Cells and ghosts form a box in C order (the last dimension is contiguous); with
/// components outside, there is one such box per component, one after the other.
struct BlockMemory {
    int block = 0;      ///< its number in the grid
    Box cells;          ///< without ghosts, in the numbers of its index space; all points of the block's cells
    Box extent;         ///< with ghosts
    index firstRow = 0; ///< index of its first row among the rank's rows
    index rows = 0;     ///< number of its rows, ghosts and components outside included
};

/// The memory layout of all fields with the same grid, ghost widths, component order and centring, and their exchange
/// pattern. Rows are cells or, with `componentsOutside`, components of cells. Immutable; shared by fields, which can
/// then be exchanged in one message per peer (ExchangeGroup).
///
/// With another centring, points take the place of cells everywhere. A block has all points of its cells, and ghosts
/// around them. Points that it shares with other blocks are `owned` by one of them (see BlockGrid) and refreshed in the
/// others by exchanges of ghosts.
class BlockPattern {
  public:
    /// Collective; all ranks pass the same. `componentsOutside` is 0 for components inside cells (AoS): fields of any
    /// type and number of components can then share the pattern. Returns the existing pattern for an equal grid, widths
    /// and order if a field still uses it. Cost: O(ghosts), one message per peer. Throws on all ranks ArgumentError for
    /// widths below 0, above 2^30 or in a missing dimension, negative `componentsOutside`, grids for more ranks than
    /// there are, and as BlockGrid::requireCentring; StateError if ranks pass different ones.
    static std::shared_ptr<const BlockPattern> make(const CommunicatorView &comm, std::shared_ptr<const BlockGrid> grid,
                                                    const GhostWidths &ghosts, rowsize componentsOutside = 0,
                                                    const Centring &centring = {});

    /// The arguments of `make`: the grid, the layers of ghosts around blocks, the number of components outside cells
    /// (0: inside), and the points of cells.
    const std::shared_ptr<const BlockGrid> &grid() const noexcept { return grid_; }
    const GhostWidths &ghosts() const noexcept { return ghosts_; }
    rowsize componentsOutside() const noexcept { return componentsOutside_; }
    const Centring &centring() const noexcept { return centring_; }
    /// This rank's blocks, in the order of their numbers.
    std::span<const BlockMemory> blocks() const noexcept { return blocks_; }
    /// The cells or points that the rank's block `local` owns: its `cells` without copies, as boxes that do not
    /// overlap. Throws IndexError for missing blocks.
    std::span<const Box> owned(int local) const {
        DNDS_CHECK(local >= 0 && toSize(local) < owned_.size(), IndexError, "this rank has {} blocks, none {}",
                   owned_.size(), local);
        return owned_[toSize(local)];
    }
    /// The difference of another pattern: "grid", "ghosts", "order of components" or "centring"; "communicator" if none
    /// of these. Local.
    std::string_view differenceFrom(const BlockPattern &other) const noexcept;
    /// The points of an index space that files have: nodes that a period repeats are there once. Local. Throws
    /// IndexError for missing spaces.
    Box filePoints(int space = 0) const;
    /// The points of `filePoints` that the rank's block `local` reads and writes, as boxes that do not overlap. Of the
    /// blocks of one index space that share a point, it is the one with the lowest number. Unlike `owned`, this does
    /// not follow connections: the file of each index space has all of the space's points. Local. O(blocks nearby).
    /// Throws IndexError for missing blocks; ArgumentError if an owner is at the upper end of a periodic dimension,
    /// because no block is at its lower end.
    std::vector<Box> fileBoxes(int local) const;
    /// The number of this rank's rows, ghosts included; and the rows that ranks send to each other.
    index rows() const noexcept { return rows_; }
    const std::shared_ptr<const ExchangePattern> &exchange() const noexcept { return exchange_; }

  private:
    BlockPattern() = default;

    std::shared_ptr<const BlockGrid> grid_;
    GhostWidths ghosts_;
    rowsize componentsOutside_ = 0;
    Centring centring_;
    std::vector<BlockMemory> blocks_;     ///< this rank's only
    std::vector<std::vector<Box>> owned_; ///< [blocks]
    index rows_ = 0;
    std::shared_ptr<const ExchangePattern> exchange_;
};

} // namespace DNDS
