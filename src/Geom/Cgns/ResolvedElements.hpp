/// @file ResolvedElements.hpp
/// @brief Elements that a file gives without nodes: polyhedra by their faces, boundary elements by their parent cells.
#pragma once

#include "DNDS/Geom/Cgns/SectionElements.hpp"

namespace DNDS::Geom::Cgns {

/// Sets the nodes of the faces of sections of kind `OfCells`: the corners of the named face of the parent. Collective;
/// two sparse exchanges. After `readElements`. Throws DataError on all ranks, with the element, if a parent is no cell,
/// or its named face does not exist or has another number of corners.
void resolveParentFaces(CommunicatorContext &context, const Model &model, const SectionTable &cellTable,
                        const ElementRun &cells, const SectionTable &faceTable, ElementRun &faces, TreeSource &source);

/// Replaces the faces that polyhedra refer to by their corners: {corners, a, b, c, ...} for each face,
/// counter-clockwise seen from outside. Collective. Cost: a query for each face of this rank's polyhedra, answered by
/// its corners. Throws DataError on all ranks if a polyhedron of parents has no faces or a parent is no cell.
///
/// NFACE_n gives the faces of a cell, negative where they point inward (SIDS 7.3); ParentElements gives the cells of a
/// face, whose normal points from the first to the second.
void resolvePolyhedra(CommunicatorContext &context, const Model &model, const SectionTable &cellTable,
                      ElementRun &cells, const SectionTable &faceTable, const ElementRun &faces, TreeSource &source);

} // namespace DNDS::Geom::Cgns
