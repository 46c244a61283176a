/// @file GhostCells.hpp
/// @brief Collects layers of cells of other ranks, and periodic images, around the own cells.
#pragma once

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Build/NodeSharing.hpp"
#include "DNDS/Geom/Source/NumberTable.hpp"

namespace DNDS::Geom {

/// Own cells, followed by ghosts layer by layer.
/// The order of ghosts is that of fetching, before `renumber`: final numbers are CellNumbers.
struct LocalCells {
    /// Records of own cells and ghosts. Ghosts have no marks; their links are those of their owners.
    CellRecords cells;
    index owned = 0;
    std::vector<index> numbers; ///< [cells] global
    std::vector<int> images;    ///< [cells]; 0 for all but periodic images
    std::vector<int> layers;    ///< [cells] 0 for own cells
    index firstOwned = 0;       ///< global number of the first own cell
    NumberTable ghostKeys;      ///< imageKey of each ghost

    index size() const noexcept { return cells.size(); }
    /// The local cell with this key, or NumberTable::none. O(1).
    LocalIndex find(index key) const noexcept {
        if (const index own = key - firstOwned; own >= 0 && own < owned) // keys of images are larger than any number
            return static_cast<LocalIndex>(own);
        const LocalIndex ghost = ghostKeys.find(key);
        return ghost == NumberTable::none ? ghost : static_cast<LocalIndex>(owned + ghost);
    }
    /// The local cell across a link of local cell `cell`, or NumberTable::none.
    LocalIndex across(index cell, const FaceLink &link, ImageTable &table) const {
        return find(imageKey(link.cell, table.compose(images[toSize(cell)], link.step)));
    }
};

/// Adds `depth` layers to the own cells. Collective. O(own cells + ghosts) memory. One round of queries to owners of
/// cells per layer; by nodes one or two more to owners of nodes, and again where periodic boundaries meet.
///
/// Each periodic image is a ghost of its own; a cell may be a ghost in several images, and next to itself if the mesh
/// is one cell wide. A node on the axis of a rotation is not its own partner.
LocalCells collectGhosts(const GlobalMapping &cellMapping, const GlobalMapping &nodeBlocks, CellRecords &&own,
                         const NodeSharing &sharing, ImageTable &images, GhostNeighbours neighbours, int depth);

/// The owners of any nodes, from the ranks of their source blocks: [nodes]. Collective.
std::vector<int> fetchNodeOwners(const GlobalMapping &nodeBlocks, const NodeSharing &sharing,
                                 std::span<const index> nodes);

} // namespace DNDS::Geom
