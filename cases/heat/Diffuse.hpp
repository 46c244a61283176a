/// @file Diffuse.hpp
/// @brief The kernel of the heat case: one explicit step of some cells.
#pragma once

#include "DNDS/Blocks/BlockView.hpp"
#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/Storage/ArrayView.hpp"

namespace Heat {

using DNDS::index;
using DNDS::LocalIndex;
using DNDS::real;

/// next = u + number * (sum over the six sides of (u there - u here)), for the cells in `cells`. The order of the sum
/// is fixed, so host, device and any number of ranks give the same bits.
struct Diffuse {
    DNDS::BlockView<const real> u;              ///< the last dimension first in the sum; its ghosts are read, too
    DNDS::BlockView<real> next;                 ///< of the same shape in memory
    DNDS::ArrayView<const LocalIndex, 1> cells; ///< their places, from the block's first cell on
    real number = 0;                            ///< diffusivity times time step over the square of the cells' width

    DNDS_HOST_DEVICE void operator()(index i) const {
        const real *here = u.data() + cells(i);
        real sum = 0;
        for (int d = 2; d >= 0; --d) {
            sum += here[-u.stride(d)] - *here;
            sum += here[u.stride(d)] - *here;
        }
        next.data()[cells(i)] = *here + number * sum;
    }
};

/// One step of the cells in `step.cells`; on the device it is queued. Local.
void diffuse(const DNDS::Executor &executor, const Diffuse &step);

} // namespace Heat
