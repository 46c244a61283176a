/// @file FaceMarks.hpp
/// @brief Brings the marks that a file gives to faces, or to their nodes, to the cells that have these faces.
#pragma once

#include "DNDS/Geom/Source/CellRecords.hpp"
#include "DNDS/Geom/Source/SourceChecks.hpp"

namespace DNDS::Geom {

/// Attaches the marks of the source to faces of cells: fills `cells.marks`. Collective. After `linkFaces`.
///
/// Both sides of an inner face get its marks. Faces that the source marks by nodes are boundary faces all of whose
/// corners have the mark. Listed faces that are no cell's face are counted in the result.
Finding markFaces(const GlobalMapping &nodeBlocks, CellRecords &cells, const SourceMesh &source);

} // namespace DNDS::Geom
