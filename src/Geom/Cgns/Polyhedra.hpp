/// @file Polyhedra.hpp
/// @brief Sends the faces of polyhedra from the ranks that read them to their cells.
#pragma once

#include "DNDS/Geom/Cgns/SectionElements.hpp"

namespace DNDS::Geom::Cgns {

/// Replaces the faces that polyhedra refer to by their corners: {corners, a, b, c, ...} for each face,
/// counter-clockwise seen from outside. Collective. Cost: a query for each face of this rank's polyhedra, answered by
/// its corners. Throws DataError on all ranks if a polyhedron of parents has no faces or a parent is no cell.
///
/// NFACE_n gives the faces of a cell, negative where they point inward (SIDS 7.3); ParentElements gives the cells of a
/// face, whose normal points from the first to the second.
void resolvePolyhedra(CommunicatorContext &context, const Model &model, const SectionTable &cellTable,
                      ElementRun &cells, const SectionTable &faceTable, const ElementRun &faces, TreeSource &source);

} // namespace DNDS::Geom::Cgns
