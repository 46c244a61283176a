/// @file MeshEdges.hpp
/// @brief Finds and numbers the edges of a three-dimensional mesh.
#pragma once

#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"

namespace DNDS::Geom {

/// The edges of local cells and their adjacencies; rows as UnstructuredMesh::adjacency describes them.
struct MeshEdges {
    MeshEntities entities;
    LocalAdjacency cellEdges; ///< [cells]
    LocalAdjacency faceEdges; ///< [faces]
    LocalAdjacency edgeNodes; ///< [edges]
};

/// Numbers the edges of a mesh as UnstructuredMesh::entities describes. Collective; seven sparse exchanges. O(edges of
/// local cells) memory.
MeshEdges numberEdges(const UnstructuredMesh &mesh);

} // namespace DNDS::Geom
