/// @file RebalancedRuns.hpp
/// @brief Gives each rank a run of numbered items, blocks or clusters, with a nearly equal share of their costs.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace DNDS {

/// The new rank of each item: [items]. Bound and choice of the runs: see `BlockGrid::rebalanced`. `rankOf`, [items] and
/// the same on all ranks, are the present ranks; items of rank -1 have no owner and no cost. `costs` are those of
/// this rank's items in ascending order. `item` names an item in errors.
///
/// Collective; called within `failTogether`. Memory O(items), and at most 40 MB, on each rank. Throws ArgumentError for
/// costs that are negative, not finite or not one an item, and for a negative imbalance.
std::vector<int> rebalancedRuns(const CommunicatorView &comm, std::span<const int> rankOf, std::span<const real> costs,
                                real imbalance, std::string_view item);

} // namespace DNDS
