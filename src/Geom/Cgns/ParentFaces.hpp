/// @file ParentFaces.hpp
/// @brief Boundary elements for which a file gives no nodes, only the cell that each is a face of.
#pragma once

#include "DNDS/Geom/Cgns/SectionElements.hpp"

namespace DNDS::Geom::Cgns {

/// Gives nodes to the faces of sections of kind `OfCells`: the corners of the face of the parent that they name.
/// Collective; two sparse exchanges. After `readElements`. Throws DataError on all ranks, naming the element, where a
/// parent is no cell, or the face that it names is not there or has another number of corners.
void resolveParentFaces(CommunicatorContext &context, const Model &model, const SectionTable &cellTable,
                        const ElementRun &cells, const SectionTable &faceTable, ElementRun &faces, NodeSource &source);

} // namespace DNDS::Geom::Cgns
