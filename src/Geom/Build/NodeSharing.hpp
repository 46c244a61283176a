/// @file NodeSharing.hpp
/// @brief The owner of each node, and the other ranks with cells around it.
#pragma once

#include "DNDS/Geom/Build/PeriodicLinks.hpp"
#include "DNDS/Geom/Source/CsrLists.hpp"
#include "DNDS/Geom/Source/NumberTable.hpp"

namespace DNDS::Geom {

/// The nodes of this rank's own cells, with data from their owners.
struct NodeSharing {
    NumberTable nodes;                 ///< in the order in which cells first have them
    std::vector<LocalIndex> positions; ///< [entries of CellRecords::nodes] in `nodes`; -1 for counts of polyhedra
    std::vector<int> owners;           ///< [nodes]
    std::vector<char> shared;          ///< [nodes] whether cells of several ranks have the node
    std::vector<int> blockOwners;      ///< [nodes of this rank's block of the source] the owner, or -1: in no cell
    index unused = 0;                  ///< nodes of the source in no cell, on all ranks

    /// For nodes that this rank owns: the global numbers of the cells around each. For one layer of ghosts, only of
    /// nodes about which others ask: shared nodes and nodes with partners.
    CsrLists<index> cellsAround; ///< [nodes] empty for nodes of others
    /// The periodic partners of nodes that this rank owns; ascending.
    std::vector<NodePartner> partners;

    /// Empty for nodes that others own. O(log partners).
    std::span<const NodePartner> partnersOf(index node) const;
};

/// Gives each node to one of the ranks whose cells have it, chosen evenly by a hash. Collective. `blocks` numbers the
/// nodes of the source; `partners` may be on any rank. O(nodes of own cells) memory; three sparse exchanges, or one
/// more for `layers` of ghosts by nodes, which need the cells around nodes.
///
/// With `check`, throws DataError on all ranks if a boundary face is also shared by two cells of another rank, which
/// `linkFaces` cannot detect. Faces of four cells, two on each of two ranks, remain unnoticed.
NodeSharing shareNodes(const GlobalMapping &blocks, const GlobalMapping &cellMapping, const CellRecords &cells,
                       const std::vector<NodePartner> &partners, int layers, bool check, const std::string &origin);

} // namespace DNDS::Geom
