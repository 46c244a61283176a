/// @file NodeTags.hpp
/// @brief Converts arbitrary node tags of files to positions in the list of nodes.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <span>
#include <string>

namespace DNDS::Geom {

/// Replaces each tag in `references` by the global number of its node, or by InvalidIndex for unknown tags. Collective.
///
/// `ownTags` are the tags of this rank's nodes, whose first has the global number `firstNode`. Consecutive tags take a
/// subtraction. Others are resolved at a rank chosen by the tag's hash: three sparse exchanges, O(own nodes + own
/// references) memory on average. Throws DataError on all ranks, with `origin` and the tag, if two nodes have the same
/// tag.
void numberTags(CommunicatorView comm, std::span<const index> ownTags, index firstNode, std::span<index> references,
                const std::string &origin);

} // namespace DNDS::Geom
