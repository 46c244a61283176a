/// @file FaceMarks.hpp
/// @brief Transfers the marks that a file gives to faces, or to their nodes, to the cells with these faces.
#pragma once

#include "DNDS/Geom/Source/CellRecords.hpp"
#include "DNDS/Geom/Source/SourceChecks.hpp"

namespace DNDS::Geom {

/// Attaches the marks of the source to faces of cells: fills `cells.marks`. Collective. After `linkFaces`.
///
/// Both sides of an inner face get its marks. Marks of nodes apply to boundary faces all of whose corners have the
/// mark. The result counts listed faces of no cell.
/// Two or four sparse exchanges for listed faces, three more for marks of nodes; O(own faces and marks) memory.
Finding markFaces(const GlobalMapping &nodeBlocks, CellRecords &cells, const SourceMesh &source);

} // namespace DNDS::Geom
