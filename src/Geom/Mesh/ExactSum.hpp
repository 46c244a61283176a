/// @file ExactSum.hpp
/// @brief Sums over elements that do not depend on their order, nor on the number of ranks.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <span>

namespace DNDS::Geom {

/// The sum of all ranks' values, the same to the bit however they are spread over ranks. Collective; two reductions.
///
/// Values are rounded to multiples of 2^-80 of the largest and added as integers, which is exact and associative; the
/// idea is that of Kulisch's long accumulator. Values that are not finite make the sum NaN.
real exactSum(CommunicatorView comm, std::span<const real> values);

} // namespace DNDS::Geom
