/// @file CellShapes.hpp
/// @brief Recognizes tetrahedra, pyramids, prisms and hexahedra among polyhedra.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"

namespace DNDS::Geom::Foam {

/// Replaces each Polyhedron that has the faces of a linear element, turned outwards, by this element. Local.
///
/// The faces decide, not the shape: a hexahedron that has one of its faces divided stays a polyhedron.
void recognizeShapes(ElementBlock &cells);

} // namespace DNDS::Geom::Foam
