/// @file NodeSharing.hpp
/// @brief Which rank owns each node, and who else has cells around it.
#pragma once

#include "DNDS/Geom/Build/PeriodicLinks.hpp"
#include "DNDS/Geom/Source/NumberTable.hpp"

namespace DNDS::Geom {

/// The nodes of this rank's own cells, as the file numbers them, and what their owners know about them.
struct NodeSharing {
    NumberTable nodes;            ///< in the order in which cells first have them
    std::vector<int> owners;      ///< [nodes]
    std::vector<char> shared;     ///< [nodes] whether cells of several ranks have the node
    std::vector<int> blockOwners; ///< [nodes of this rank's block of the source] the owner, or -1: in no cell
    index unused = 0;             ///< nodes of the source in no cell, on all ranks

    /// Of nodes that this rank owns: the cells around each, global, wherever they are.
    struct Around {
        std::vector<index> starts; ///< [nodes + 1]; rows of nodes of others are empty
        std::vector<index> cells;
    } around;
    /// The periodic partners of nodes that this rank owns; ascending.
    std::vector<NodePartner> partners;

    std::span<const NodePartner> partnersOf(index node) const;
};

/// Gives each node to one of the ranks whose cells have it, chosen evenly by a hash. Collective. `blocks` numbers the
/// nodes of the source; `partners` are known wherever they were found. O(nodes of own cells) memory; three sparse
/// exchanges, or two more where `wantCells` asks for cells around nodes.
///
/// Throws DataError on all ranks where a boundary face is also shared by two cells of another rank: the one kind of
/// non-manifold face that `linkFaces` cannot see.
NodeSharing shareNodes(const GlobalMapping &blocks, const GlobalMapping &cellMapping, const CellRecords &cells,
                       const std::vector<NodePartner> &partners, bool wantCells, const std::string &origin);

} // namespace DNDS::Geom
