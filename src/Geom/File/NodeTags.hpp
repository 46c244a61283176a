/// @file NodeTags.hpp
/// @brief Files may call nodes by any numbers; here they become positions in the list of nodes.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <span>
#include <string>

namespace DNDS::Geom {

/// Replaces each tag in `references` by the global number of the node that has it, or by InvalidIndex where no node
/// has. Collective.
///
/// `ownTags` are the tags of this rank's nodes, of which the first has the global number `firstNode`. Where tags are
/// consecutive this is a subtraction. Otherwise tags meet at a rank chosen by their hash: three sparse exchanges,
/// O(own nodes + own references) memory on average. Throws DataError on all ranks, naming `origin` and the tag, where
/// two nodes have the same.
void numberTags(CommunicatorView comm, std::span<const index> ownTags, index firstNode, std::span<index> references,
                const std::string &origin);

} // namespace DNDS::Geom
