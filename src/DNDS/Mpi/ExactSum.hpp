/// @file ExactSum.hpp
/// @brief Sums over rows that do not depend on their order, nor on the number of ranks.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <span>

namespace DNDS {

/// The sum of each column of all ranks' rows, the same to the bit however the rows are spread over ranks:
/// `rows` is [own rows x columns], `sums` [columns]. Collective; two reductions for all columns together.
///
/// In each column values are rounded to multiples of 2^-80 of the largest and added as integers, which is exact and
/// associative; the idea is that of Kulisch's long accumulator. A value that is not finite makes its column's sum NaN.
/// Throws ArgumentError on all ranks where `rows` is no whole number of rows.
void exactSums(CommunicatorView comm, std::span<const real> rows, std::span<real> sums);

/// The sum of all ranks' values, as above. Collective.
inline real exactSum(CommunicatorView comm, std::span<const real> values) {
    real sum = 0;
    exactSums(comm, values, {&sum, 1});
    return sum;
}

} // namespace DNDS
