/// @file Polyhedra.hpp
/// @brief Brings the faces of polyhedra, which other ranks have read, to their cells.
#pragma once

#include "DNDS/Geom/Cgns/SectionElements.hpp"

namespace DNDS::Geom::Cgns {

/// Replaces the faces that polyhedra refer to by their corners: {corners, a, b, c, ...} for each face, seen from
/// outside counter-clockwise. Collective. Cost: a request for each face of this rank's polyhedra, and its corners in
/// return. Throws DataError on all ranks where a polyhedron of parents has no faces or a parent is no cell.
///
/// NFACE_n gives the faces of a cell, with a negative number where they look inward (SIDS 7.3); ParentElements gives
/// the cells of a face, which looks from the first to the second.
void resolvePolyhedra(CommunicatorContext &context, const Model &model, const SectionTable &cellTable,
                      ElementRun &cells, const SectionTable &faceTable, const ElementRun &faces, NodeSource &source);

} // namespace DNDS::Geom::Cgns
