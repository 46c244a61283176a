/// @file Diffuse.hpp
/// @brief The kernel of the heat case: one explicit step of some cells.
#pragma once

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Device/ParallelFor.hpp"

namespace Heat {

using DNDS::index;
using DNDS::LocalIndex;
using DNDS::real;

using Temperature = DNDS::ParArray<real, 1>;

/// next = u + number * (sum over the six sides of (u there - u here)), for the cells in `cells`. The order of the sum
/// is fixed, so host, device and any number of ranks give the same bits.
struct Diffuse {
    DNDS::ArrayPairView<DNDS::ArrayView<const real, 1>> u; ///< owned rows and ghosts
    DNDS::ArrayView<real, 1> next;                         ///< owned rows
    DNDS::ArrayView<const LocalIndex, 6> sides;            ///< of each owned cell: rows of `u`
    DNDS::ArrayView<const LocalIndex, 1> cells;
    real number = 0; ///< diffusivity times time step over the square of the cells' width

    DNDS_HOST_DEVICE void operator()(index i) const {
        const index cell = cells(i);
        const real here = u(cell);
        real sum = 0;
        for (DNDS::rowsize side = 0; side < 6; ++side)
            sum += u(sides(cell, side)) - here;
        next(cell) = here + number * sum;
    }
};

/// One step of the cells in `step.cells`; on the device it is queued. Local.
void diffuse(const DNDS::Executor &executor, const Diffuse &step);

} // namespace Heat
