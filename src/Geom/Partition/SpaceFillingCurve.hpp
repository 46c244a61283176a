/// @file SpaceFillingCurve.hpp
/// @brief Orders points along a Hilbert curve and cuts the curve into parts of equal weight.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace DNDS::Geom {

/// How far along the curve the cell (x, y, z) of a grid of 2^21 cells a side comes: a bijection onto [0, 2^63). Local.
///
/// Method: Skilling, Programming the Hilbert curve, AIP Conference Proceedings 707 (2004).
std::uint64_t hilbertNumber(std::array<std::uint32_t, 3> cell) noexcept;

/// The place of each point on the curve through the box [lower, upper], which all points lie in: [points]. Local.
std::vector<index> curveKeys(std::span<const std::array<real, 3>> points, const std::array<real, 3> &lower,
                             const std::array<real, 3> &upper);

/// Cuts the curve into `parts` pieces that weigh nearly the same, and says for each key of this rank in which it lies:
/// [own keys]. Collective.
///
/// `weights` are [own keys] or empty on all ranks. Equal keys go to one part. Cuts are found by comparing counts below
/// trial keys, all cuts at once: 16 reductions of 15 (parts - 1) numbers; O(own keys log own keys) time. Throws
/// ArgumentError on all ranks for fewer than one part or weights that do not fit.
std::vector<int> partitionCurve(CommunicatorView comm, std::span<const index> keys, std::span<const index> weights,
                                int parts);

} // namespace DNDS::Geom
