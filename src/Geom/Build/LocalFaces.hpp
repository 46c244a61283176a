/// @file LocalFaces.hpp
/// @brief The faces of local cells, owned and ghost, with final numbers and connectivity.
#pragma once

#include "DNDS/Geom/Build/LocalNodes.hpp"
#include "DNDS/Geom/Source/SourceChecks.hpp"

namespace DNDS::Geom {

/// Numbers the faces of local cells in the order of cells and fills in the mesh's `faces`, all lists of or by faces,
/// and the report about them, if there is one. Collective. `cellMapping` has the numbers that links refer to.
/// `mesh.patches` has those of the source and "unassigned".
///
/// A face between two ranks is owned by one of them, chosen evenly by a hash.
/// One query to owners of ghost faces, and a few reductions for the report.
void numberFaces(UnstructuredMesh &mesh, const GlobalMapping &cellMapping, const LocalCells &cells,
                 const CellNumbers &numbers, const NodeFinder &nodes, ImageTable &images, MeshReport *report);

} // namespace DNDS::Geom
