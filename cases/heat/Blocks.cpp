#include "Blocks.hpp"

#include "DNDS/Base/Error.hpp"

namespace Heat {

Blocks::Blocks(DNDS::CommunicatorView comm, const Triple &cells) : cells_(cells), rank_(comm.rank()) {
    for (const index count : cells)
        DNDS_CHECK(count > 0, DNDS::ArgumentError, "a box of {} x {} x {} cells is empty", cells[0], cells[1],
                   cells[2]);
    // Of all factorisations of the number of ranks into three: the one whose blocks have the least surface.
    const index ranks = comm.size();
    real best = -1;
    for (index x = 1; x <= ranks; ++x)
        for (index y = 1; x * y <= ranks; ++y) {
            if (ranks % (x * y) != 0)
                continue;
            const Triple parts{x, y, ranks / (x * y)};
            real surface = 0;
            for (std::size_t d = 0; d < 3; ++d)
                surface += static_cast<real>(parts[d]) / static_cast<real>(cells[d]);
            if (best < 0 || surface < best) {
                best = surface;
                parts_ = parts;
            }
        }
    firstRow_.push_back(0);
    for (int rank = 0; rank < comm.size(); ++rank)
        firstRow_.push_back(firstRow_.back() + rowsOf(rank));
}

Triple Blocks::coordinates(int rank) const {
    return {rank % parts_[0], rank / parts_[0] % parts_[1], rank / (parts_[0] * parts_[1])};
}

index Blocks::rowsOf(int rank) const {
    const Triple at = coordinates(rank);
    return extent(0, at[0]) * extent(1, at[1]) * extent(2, at[2]);
}

Triple Blocks::cellOf(index row) const {
    const Triple at = coordinates(rank_);
    const index nx = extent(0, at[0]);
    const index ny = extent(1, at[1]);
    return {begin(0, at[0]) + row % nx, begin(1, at[1]) + row / nx % ny, begin(2, at[2]) + row / (nx * ny)};
}

index Blocks::globalRow(Triple cell) const {
    Triple at{};
    for (int d = 0; d < 3; ++d) {
        const auto k = static_cast<std::size_t>(d);
        cell[k] = (cell[k] % cells_[k] + cells_[k]) % cells_[k];
        // A first guess, at most one part too low if the cells do not divide evenly; parts may be empty.
        at[k] = cell[k] * parts_[k] / cells_[k];
        while (begin(d, at[k] + 1) <= cell[k])
            ++at[k];
    }
    const auto rank = static_cast<std::size_t>(at[0] + parts_[0] * (at[1] + parts_[1] * at[2]));
    const index nx = extent(0, at[0]);
    const index ny = extent(1, at[1]);
    return firstRow_[rank] + (cell[0] - begin(0, at[0])) +
           nx * ((cell[1] - begin(1, at[1])) + ny * (cell[2] - begin(2, at[2])));
}

std::vector<index> Blocks::neighbours() const {
    std::vector<index> result;
    result.reserve(static_cast<std::size_t>(6 * rows()));
    for (index row = 0; row < rows(); ++row) {
        const Triple cell = cellOf(row);
        for (std::size_t d = 0; d < 3; ++d)
            for (const index step : {-1, 1}) {
                Triple other = cell;
                other[d] += step;
                result.push_back(globalRow(other));
            }
    }
    return result;
}

} // namespace Heat
