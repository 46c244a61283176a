/// @file SpaceFillingCurve.hpp
/// @brief Orders points along a Hilbert curve and cuts the curve into parts of equal weight.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace DNDS::Geom {

/// The position on the curve of cell (x, y, z) of a grid of 2^21 cells per side: a bijection onto [0, 2^63). Local.
///
/// Method: Skilling, Programming the Hilbert curve, AIP Conference Proceedings 707 (2004).
std::uint64_t hilbertNumber(std::array<std::uint32_t, 3> cell) noexcept;

/// The position of each point on the curve through the box [lower, upper], which contains all points: [points]. Local.
std::vector<index> curveKeys(std::span<const std::array<real, 3>> points, const std::array<real, 3> &lower,
                             const std::array<real, 3> &upper);

/// Cuts the curve into `parts` pieces of nearly equal weight and returns the piece of each key of this rank: [own
/// keys]. Collective.
///
/// `weights` are [own keys] or empty on all ranks. Equal keys go to one part. All cuts are found at once by counting
/// keys below trial keys (`findCuts`): 16 reductions of 15 (parts - 1) numbers up to some 270 parts, and up to 64 of
/// fewer numbers a part for more; O(own keys log own keys) time. Throws ArgumentError on all ranks for fewer than one
/// part or weights that do not match.
std::vector<int> partitionCurve(CommunicatorView comm, std::span<const index> keys, std::span<const index> weights,
                                int parts);

} // namespace DNDS::Geom
