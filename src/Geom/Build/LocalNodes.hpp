/// @file LocalNodes.hpp
/// @brief The nodes of local cells, owned and ghost, with final numbers.
#pragma once

#include "DNDS/Geom/Build/GhostCells.hpp"
#include "DNDS/Geom/Mesh/Renumbering.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Geom/Source/NumberTable.hpp"

namespace DNDS::Geom {

/// The final local numbers of local cells: `order[k]` is the position in LocalCells of cell k.
/// Inverse permutations of each other.
struct CellNumbers {
    std::vector<LocalIndex> newOfOld;
    std::vector<index> order;
};

/// Finds a node of a local cell.
/// O(1) look-ups by hash. Only nodes of local cells: others are not checked for.
class NodeFinder {
  public:
    /// The final local number of a file's node in an image.
    LocalIndex operator()(index node, int image) const {
        const LocalIndex at = image == 0 ? plain_.find(node) : NumberTable::none;
        if (at != NumberTable::none)
            return newOfOld_[static_cast<std::size_t>(plainPlace_[static_cast<std::size_t>(at)])];
        return newOfOld_[static_cast<std::size_t>(
            imagePlace_[static_cast<std::size_t>(images_.find(imageKey(node, image)))])];
    }

  private:
    friend NodeFinder numberNodes(UnstructuredMesh &mesh, const GlobalMapping &blocks,
                                  std::span<const Point> blockPoints, const LocalCells &cells,
                                  const CellNumbers &numbers, const NodeSharing &sharing, const ImageTable &images);
    NumberTable plain_;                  ///< nodes of the mesh itself
    NumberTable images_;                 ///< keys of nodes in images
    std::vector<LocalIndex> plainPlace_; ///< before renumbering
    std::vector<LocalIndex> imagePlace_;
    std::vector<LocalIndex> newOfOld_;
};

/// Numbers the nodes of local cells in the order of cells and fills in the mesh's `nodes`, `coordinates` and
/// `cellNodes`. Collective. `blockPoints` are this rank's nodes of the source.
NodeFinder numberNodes(UnstructuredMesh &mesh, const GlobalMapping &blocks, std::span<const Point> blockPoints,
                       const LocalCells &cells, const CellNumbers &numbers, const NodeSharing &sharing,
                       const ImageTable &images);

} // namespace DNDS::Geom
