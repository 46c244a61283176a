/// @file DofReduction.hpp
/// @brief Reductions over ranks in which a failure on one rank becomes the same exception on all of them.
#pragma once

#include "DNDS/Array/MatrixShape.hpp"
#include "DNDS/Base/Types.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <exception>
#include <span>
#include <string_view>

namespace DNDS {

/// How values of ranks meet. Max makes NaN of values that are NaN on any rank.
enum class Reduction : unsigned char { Sum, Max };

/// Reduces `values` element-wise over ranks, in place. Collective; one reduction, in which failures travel along. Where
/// any rank passes a `failure`, all ranks throw that of the lowest failing one; see CommunicatorView::agree.
void reduceOrThrow(const CommunicatorView &comm, std::span<real> values, Reduction reduction,
                   const std::exception_ptr &failure);

/// The shape that all ranks' matrices have, where `mine` is this rank's; numbers that no rank chose (DynamicSize)
/// become 0. Collective; one reduction. @throws LayoutError on all ranks when shapes differ.
MatrixShape agreedShape(const CommunicatorView &comm, MatrixShape mine, std::string_view label);

} // namespace DNDS
