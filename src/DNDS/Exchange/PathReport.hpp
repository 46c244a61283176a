/// @file PathReport.hpp
/// @brief How an exchange reaches each peer, as data and as a table for people.
#pragma once

#include "DNDS/Exchange/MessagePlan.hpp"
#include "DNDS/Transport/TransportTable.hpp"

#include <map>
#include <string>
#include <vector>

namespace DNDS {

/// One path for each peer that gives or gets rows, ascending. `choices` has the transport of each. Local.
std::vector<PeerPath> pathsOf(const ExchangePattern &pattern, Direction direction, const MessagePlan &plan,
                              const std::map<int, TransportChoice> &choices);

/// The paths as a table under `title`. Local.
std::string pathTable(const std::string &title, const std::vector<PeerPath> &paths);

} // namespace DNDS
