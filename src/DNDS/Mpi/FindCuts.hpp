/// @file FindCuts.hpp
/// @brief Cuts of numbers spread over all ranks into parts of given weight.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace DNDS {

/// For each goal the least number in [least, most] below which all ranks together have at least that weight; `most`
/// where no number qualifies. `below(x)` is the weight of this rank's numbers below `x`, and rises with it. Arguments
/// other than `below`, and results, are the same on all ranks.
///
/// Collective. Memory O(goals). One reduction for each bit of the range, of one number a goal, as bisection; up to 270
/// goals one reduction for four bits, of 15 numbers a goal, since latency dominates up to there. Method: the splitters
/// of histogram sort (Kale and Krishnan, A comparison based parallel sorting algorithm, ICPP 1993).
std::vector<std::uint64_t> findCuts(CommunicatorView comm, std::span<const index> goals, std::uint64_t least,
                                    std::uint64_t most, const std::function<index(std::uint64_t)> &below);

} // namespace DNDS
