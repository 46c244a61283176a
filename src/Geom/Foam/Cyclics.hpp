/// @file Cyclics.hpp
/// @brief Periodic connections of the cyclic patches of OpenFOAM.
#pragma once

#include "DNDS/Geom/Foam/PolyMesh.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"

namespace DNDS::Geom::Foam {

/// Adds patches and periodic connections to `mesh`, and sets the marks of its faces, which are boundary faces with
/// their number plus 1 as `fileIds`. Collective; needs the nodes of `mesh`.
///
/// A pair of cyclic patches becomes a connection. Its motion is found from the faces: a translation, or a rotation
/// about the axis that the file gives, or else about the axis that turns the mean normals into each other. Pairs whose
/// motion is not determined remain patches, with a warning, as do pairs whose faces need not match (cyclicAMI and the
/// like). Throws DataError on all ranks if a cyclic patch has no other side.
void addBoundaries(CommunicatorContext &context, const PolyMesh &poly, SourceMesh &mesh);

} // namespace DNDS::Geom::Foam
