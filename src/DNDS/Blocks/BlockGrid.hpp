/// @file BlockGrid.hpp
/// @brief Boxes of cells in index spaces, which rank has which, and who touches whom.
#pragma once

#include "DNDS/Blocks/CutBox.hpp"
#include "DNDS/Blocks/IndexTransform.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace DNDS {

/// The cells of a box, numbered from its lower corner, that blocks are cut from: the grid of a file, or one zone of a
/// grid of several.
struct IndexSpace {
    std::string name;
    Box cells;                                 ///< its lower corner is the origin of the numbers, often 0
    std::array<bool, maxBlockDims> periodic{}; ///< whether what follows the last cell of a dimension is the first
};

/// One box of cells, and the rank that computes it.
struct Block {
    Box cells;
    int rank = 0;
    int space = 0;
};

/// Faces of two index spaces (or of one, twice) that touch vertex by vertex, as a CGNS 1-to-1 connection says it.
/// Vertices are numbered as cells are: the cell c lies between the vertices c and c + 1 (CGNS files number from 1).
/// One entry serves both directions.
struct Connection {
    int space = 0;
    IndexVector begin{}; ///< first vertex of the face; begin and end are equal in one dimension
    IndexVector end{};   ///< last vertex, included
    int other = 0;
    IndexVector otherBegin{}; ///< the vertex of the other space at `begin`
    /// Entry d is +-(a + 1) where dimension d runs along dimension a of the other space, forwards or backwards. One
    /// entry may be 0, as in files: it is found from the faces.
    std::array<int, maxBlockDims> transform{1, 2, 3, 4};
};

/// Ghost cells of one block that are copies of cells of one other (or of itself, in periodic directions).
struct GhostRegion {
    Box ghosts;              ///< in the numbers of the block's own index space; outside of its cells
    int source = 0;          ///< number of the block that owns the cells
    IndexTransform toSource; ///< from those numbers to cells of the source, in the numbers of its index space
};

/// All blocks of a grid, known to all ranks. Immutable; shared by the fields on it. What AMReX calls a BoxArray with
/// its DistributionMapping, and Geometry's periodicity. Memory: O(blocks) a rank.
///
/// A ghost cell is a copy of the one cell that it stands for: through periodic directions as often as it takes, and
/// through connections. Outside of the index space in more than one dimension (at edges and corners of a space) it is
/// reached through the connection of the lowest dimension first, and from there on by the same rule; where that ends
/// nowhere, through the next dimension. So at edges where three or five spaces meet ghosts are the cells of one of the
/// neighbours of the neighbour. Ghosts that stand for no cell (walls, holes) belong to the user: exchanges leave them
/// alone.
class BlockGrid {
  public:
    /// Any blocks on any ranks. Local; all ranks give the same. Throws ArgumentError naming the entry for blocks that
    /// overlap or leave their index space, ranks below 0, dimensions that differ, connections that do not lie on faces
    /// of both spaces, whose transform is none, or that fold one space onto another.
    static std::shared_ptr<const BlockGrid> make(std::vector<IndexSpace> spaces, std::vector<Block> blocks,
                                                 std::vector<Connection> connections = {});

    /// One block a rank, in parts of nearly equal size; see `PartsChoice`. Ranks on a node get neighbouring parts.
    /// Ranks have no block where there are more than cells (or than `options.ranks`). Collective. Throws on all ranks
    /// ArgumentError for parts that are more than ranks.
    static std::shared_ptr<const BlockGrid> cut(const CommunicatorView &comm, const IndexSpace &space,
                                                const CutOptions &options = {});

    /// The same for a shape, which is checked on all ranks together: an index space from 0.
    static std::shared_ptr<const BlockGrid> cut(const CommunicatorView &comm, std::span<const index> shape,
                                                const std::array<bool, maxBlockDims> &periodic,
                                                const CutOptions &options = {});

    /// Blocks of `blockShape` cells (smaller ones at the upper ends), ordered along a space-filling curve that is then
    /// cut into as many cells for each rank as possible. Index spaces, of which there may be several that touch, follow
    /// each other. Collective. Throws on all ranks ArgumentError for extents below 1, or as `make`.
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

    BlockGrid(const BlockGrid &) = delete;
    BlockGrid &operator=(const BlockGrid &) = delete;
    ~BlockGrid();

    /// As it was made: dimensions, index spaces, and how these are connected. Local.
    int dims() const noexcept { return spaces_.front().cells.dims; }
    const std::vector<IndexSpace> &spaces() const noexcept { return spaces_; }
    const std::vector<Connection> &connections() const noexcept { return connections_; }
    /// All blocks, of all ranks.
    const std::vector<Block> &blocks() const noexcept { return blocks_; }
    const Block &block(int number) const;
    /// Numbers of the blocks of one rank, ascending: the order in which the rank has them in memory. O(1).
    std::span<const int> blocksOfRank(int rank) const;
    /// How many ranks it needs: one more than the highest that a block names.
    int ranks() const noexcept { return static_cast<int>(rankStarts_.size()) - 1; }
    index totalCells() const noexcept { return totalCells_; }

    /// The block that owns a cell of an index space, or -1. O(blocks nearby).
    int ownerOf(const IndexVector &cell, int space = 0) const;
    /// Calls `visit(block, common)` for the blocks of an index space that have cells in `box`, periods not applied.
    /// O(blocks nearby).
    void visitBlocks(int space, const Box &box, const std::function<void(int, const Box &)> &visit) const;
    /// Where the ghosts of a block come from; regions do not overlap, and ghosts in none of them stand for no cell.
    /// Any widths are right, also wider than blocks or periods. O(regions x blocks nearby). Throws ArgumentError where
    /// they reach through 1000 periods or connections.
    std::vector<GhostRegion> ghostRegions(int block, const GhostWidths &widths) const;

    /// How it was cut and what each rank has, for people. Local.
    std::string describe() const;
    /// Equal where the grids are; for checks that ranks agree. O(blocks) once.
    std::uint64_t signature() const noexcept { return signature_; }
    /// Equal where the cells of all index spaces have the same numbers, whatever the blocks and ranks:
    /// `CheckpointOptions::mesh` of a checkpoint of cells. Local. O(index spaces).
    std::uint64_t cellsSignature() const;

  private:
    struct Bins;
    struct Passage;
    class GhostFinder;

    BlockGrid(std::vector<IndexSpace> spaces, std::vector<Block> blocks, std::vector<Connection> connections,
              std::string how);
    void checkSpaces() const;
    void checkBlocks() const;
    void checkOverlaps() const;
    void addRanks();
    void addPassages(const Connection &connection, std::size_t number);
    void addPassage(int space, Passage passage, std::size_t number);
    void addPeriods();
    void sign();

    std::vector<IndexSpace> spaces_;
    std::vector<Block> blocks_;
    std::vector<Connection> connections_;
    std::vector<std::vector<Passage>> passages_; ///< of each space, in the order in which they are tried
    std::vector<Bins> bins_;                     ///< of each space: which blocks are where
    std::vector<int> ofRank_;
    std::vector<std::size_t> rankStarts_;
    index totalCells_ = 0;
    std::uint64_t signature_ = 0;
    std::string how_; ///< it was cut
};

} // namespace DNDS
