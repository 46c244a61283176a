/// @file LocalityOrder.hpp
/// @brief A numbering of owned rows that makes pulls a few block copies.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <vector>

namespace DNDS {

/// An order of `rows` owned rows for fast exchange: inner rows first, in their present order, then boundary rows
/// grouped by the set of ranks that read them. `readers` are lists of own rows, as GhostMapping::readerPeers gives
/// them. Local. O(rows + entries log entries).
///
/// Entry k of the result is the present number of the row that becomes row k. Groups are ordered lexicographically by
/// their readers: with one or two readers per row (faces between two parts) every reader's list becomes one run, and
/// corners of several parts add one run each. Throws IndexError for rows outside [0, rows).
///
///     const auto order = localityOrder(mapping->fatherSize(), mapping->readerPeers());
///     // give row order[k] the local number k, then build the global and the ghost mapping again
std::vector<index> localityOrder(index rows, const RankLists &readers);

/// The inverse of an order: entry i is the new number of present row i. Local. O(rows).
std::vector<index> inverseOrder(const std::vector<index> &order);

} // namespace DNDS
