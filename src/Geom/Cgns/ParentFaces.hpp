/// @file ParentFaces.hpp
/// @brief Boundary elements that a file gives by their parent cell only, without nodes.
#pragma once

#include "DNDS/Geom/Cgns/SectionElements.hpp"

namespace DNDS::Geom::Cgns {

/// Sets the nodes of the faces of sections of kind `OfCells`: the corners of the named face of the parent. Collective;
/// two sparse exchanges. After `readElements`. Throws DataError on all ranks, with the element, if a parent is no cell,
/// or its named face does not exist or has another number of corners.
void resolveParentFaces(CommunicatorContext &context, const Model &model, const SectionTable &cellTable,
                        const ElementRun &cells, const SectionTable &faceTable, ElementRun &faces, TreeSource &source);

} // namespace DNDS::Geom::Cgns
