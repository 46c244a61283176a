/// @file Blocks.hpp
/// @brief A periodic box of cells cut into one block per rank.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <array>
#include <vector>

namespace Heat {

using DNDS::index;
using DNDS::real;
using Triple = std::array<index, 3>;

/// Cells (i, j, k) of a periodic box; i runs fastest within a block. Each rank owns one block; its rows are numbered
/// after those of lower ranks, as in GlobalMapping. Local; the constructor only needs the communicator's size.
class Blocks {
  public:
    /// Cuts `cells` into one block per rank, as cubic as possible. @throws ArgumentError if a direction has no cells. A
    /// rank's block may be empty.
    Blocks(DNDS::CommunicatorView comm, const Triple &cells);

    const Triple &cells() const { return cells_; }
    const Triple &parts() const { return parts_; }
    index rows() const { return rowsOf(rank_); }

    /// The cell of this rank's row.
    Triple cellOf(index row) const;
    /// The global row of a cell; directions wrap around. O(1).
    index globalRow(Triple cell) const;
    /// The global rows of the neighbours on both sides of each of this rank's cells in each direction: [rows x 6].
    std::vector<index> neighbours() const;

  private:
    Triple coordinates(int rank) const;
    index begin(int direction, index part) const {
        const auto d = static_cast<std::size_t>(direction);
        return cells_[d] * part / parts_[d];
    }
    index extent(int direction, index part) const { return begin(direction, part + 1) - begin(direction, part); }
    index rowsOf(int rank) const;

    Triple cells_;
    Triple parts_{};
    std::vector<index> firstRow_; ///< of each rank
    int rank_;
};

} // namespace Heat
