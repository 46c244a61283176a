/// @file AssembleMesh.hpp
/// @brief From cells on their final ranks to a mesh: shared by building a mesh and moving one.
#pragma once

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Build/LocalNodes.hpp"

#include <span>
#include <vector>

namespace DNDS::Geom {

/// The nodes of a mesh in blocks, one per rank, by their numbers in the file.
/// Nodes stay in the blocks in which they were read until their owners are known; the blocks serve as the directory.
struct NodeBlocks {
    const GlobalMapping &blocks;              ///< numbers the nodes
    std::span<const Point> coordinates;       ///< coordinates of this rank's block
    const std::vector<NodePartner> &partners; ///< partners of periodic nodes, on any rank
};

/// Throws ArgumentError for a number of ghost layers that is not supported. Local.
void checkGhostLayers(const MeshOptions &options);

/// Adds ghosts, numbers cells, nodes and faces, and fills in their part of `mesh`, whose global description is complete
/// except for the faces of patches. Collective. `cells` are linked, marked, and sorted on each rank by their positions
/// on the curve, which are their keys.
///
/// Without a report, the cells are those of a mesh built earlier, whose faces are not checked again.
CellNumbers assembleMesh(UnstructuredMesh &mesh, MigratedCells &&cells, const NodeBlocks &nodes, ImageTable &images,
                         const MeshOptions &options, MeshReport *report);

} // namespace DNDS::Geom
