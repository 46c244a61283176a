#include "DNDS/Array/DofReduction.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace DNDS {

void reduceOrThrow(const CommunicatorView &comm, std::span<real> values, Reduction reduction,
                   const std::exception_ptr &failure) {
    // MPI_MAX says nothing about NaN, so it is a number of its own; and the last number tells of failures.
    const std::size_t count = values.size();
    const bool max = reduction == Reduction::Max;
    std::vector<real> all((max ? 2 : 1) * count + 1, 0.0);
    if (failure) {
        all.back() = 1;
    } else {
        for (std::size_t i = 0; i < count; ++i) {
            const bool nan = max && std::isnan(values[i]);
            all[i] = nan ? -std::numeric_limits<real>::infinity() : values[i];
            if (max)
                all[count + i] = nan ? 1 : 0;
        }
    }
    comm.allReduce(all.data(), static_cast<int>(all.size()), max ? MPI_MAX : MPI_SUM);
    if (all.back() > 0) [[unlikely]]
        comm.agree(failure);
    for (std::size_t i = 0; i < count; ++i)
        values[i] = max && all[count + i] > 0 ? std::numeric_limits<real>::quiet_NaN() : all[i];
}

MatrixShape agreedShape(const CommunicatorView &comm, MatrixShape mine, std::string_view label) {
    constexpr rowsize none = std::numeric_limits<rowsize>::min();
    const bool chosen = mine.rows >= 0 && mine.cols >= 0;
    std::array<rowsize, 4> bounds{none, none, none, none}; // largest rows and columns, and minus the smallest
    if (chosen)
        bounds = {mine.rows, -mine.rows, mine.cols, -mine.cols};
    comm.allReduce(bounds.data(), 4, MPI_MAX);
    if (bounds[0] == none)
        return {std::max(mine.rows, 0), std::max(mine.cols, 0)};
    DNDS_CHECK(bounds[0] == -bounds[1] && bounds[2] == -bounds[3], LayoutError,
               "the matrices of '{}' have {} to {} rows and {} to {} columns on different ranks: they must be equal",
               label, -bounds[1], bounds[0], -bounds[3], bounds[2]);
    return {bounds[0], bounds[2]};
}

} // namespace DNDS
