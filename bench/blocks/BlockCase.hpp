/// @file BlockCase.hpp
/// @brief Blocks with ghosts, and what has to move between which places: the same for all that are compared.
#pragma once

#include "DNDS/Blocks/BlockGrid.hpp"

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace DNDS::Bench {

/// A box of cells in a rank's memory, in doubles.
struct Region {
    index first = 0;
    std::array<index, 3> count{};  ///< cells a dimension
    std::array<index, 3> stride{}; ///< doubles; that of the last dimension is the number of components
    std::array<index, 3> extent{}; ///< cells of the block with ghosts, of which this is a part
    std::array<index, 3> start{};  ///< in these
    index blockFirst = 0;          ///< the block's first double

    index doubles() const { return count[0] * count[1] * count[2] * stride[2]; }
};

/// Copies a box to one of the same shape. Rows of a few doubles by loops of that length, as one would write them.
void copyRegion(double *to, const Region &at, const double *from, const Region &of);
/// To and from contiguous memory; return what follows it.
double *packRegion(double *to, const double *from, const Region &of);
const double *unpackRegion(double *to, const Region &at, const double *from);

/// All that goes to or comes from one rank, in the same order on both.
struct PeerRegions {
    int rank = 0;
    std::vector<Region> regions;
    index doubles = 0;
};

struct RegionCopy {
    Region from, to;
};

/// One rank's side of an exchange.
class BlockCase {
  public:
    /// Collective.
    BlockCase(CommunicatorView comm, std::string name, const std::shared_ptr<const BlockGrid> &grid, index width,
              int components, GhostShape shape = GhostShape::Box);

    const std::string &name() const { return name_; }
    const CommunicatorView &comm() const { return comm_; }
    const std::shared_ptr<const BlockPattern> &pattern() const { return pattern_; }
    index width() const { return width_; }
    int components() const { return components_; }
    index doubles() const { return pattern_->rows() * components_; }
    const std::vector<PeerRegions> &sends() const { return sends_; }
    const std::vector<PeerRegions> &receives() const { return receives_; }
    /// Between this rank's own blocks.
    const std::vector<RegionCopy> &own() const { return own_; }
    /// To each ghost that another rank has, from the cells just inside: the same rows, moved within this process.
    const std::vector<RegionCopy> &inner() const { return inner_; }
    /// That come from other ranks; from own blocks.
    index received() const;
    index copied() const;

    /// Writes new values to all cells that some rank needs.
    void rewrite(double *memory, int round) const;
    /// Throws DataError where a ghost has not the value of its cell. Local.
    void compare(const double *memory, int round, const std::string &method) const;
    /// A value for each component of each cell and round, exact and different everywhere.
    static double valueOf(const IndexVector &cell, int space, int component, int round);

  private:
    struct Value {
        index place;
        double base;
    };
    Region regionOf(const Box &cells, const BlockMemory &memory) const;
    void addGhosts(const BlockMemory &memory);
    void addNeeded(const Box &cells, const BlockMemory &memory);
    static PeerRegions &peer(std::vector<PeerRegions> &peers, int rank);

    CommunicatorView comm_;
    std::string name_;
    std::shared_ptr<const BlockPattern> pattern_;
    index width_;
    int components_;
    std::vector<PeerRegions> sends_, receives_;
    std::vector<RegionCopy> own_, inner_;
    std::vector<Value> needed_, ghosts_;
};

} // namespace DNDS::Bench
