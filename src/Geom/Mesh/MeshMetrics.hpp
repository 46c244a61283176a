/// @file MeshMetrics.hpp
/// @brief Volumes, centroids, face areas and normals.
#pragma once

#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"

#include <vector>

namespace DNDS::Geom {

/// Of corners alone, ghosts included; entities in images where they stand. In two dimensions "volume" is area, "area"
/// is length.
struct MeshMetrics {
    explicit MeshMetrics(CommunicatorView comm);

    ParArray<real, 1> volumes;     ///< [cells] positive
    ParArray<real, 3> centroids;   ///< [cells] of the volume
    ParArray<real, 1> areas;       ///< [faces] of the vector below
    ParArray<real, 3> areaVectors; ///< [faces] away from the first cell
    ParArray<real, 3> faceCentres; ///< [faces] centre of area
    /// The largest |sum of outward area vectors| over the sum of their lengths, of all owned cells of all ranks.
    /// Rounding alone makes some 1e-15.
    real closure = 0.0;
};

/// Local but for the closure, which is agreed on: Collective. O(cells + faces + nodes).
///
/// Faces are fanned around the mean of their corners, which two neighbours do alike; a cell's volume is the sum of the
/// cones over its faces, its centroid theirs, with the mean of its corners as apex: exact where faces are flat.
/// Normals of edges lie in the plane of their first cell. Cells of a curved surface do not close.
MeshMetrics computeMetrics(const UnstructuredMesh &mesh);

} // namespace DNDS::Geom
