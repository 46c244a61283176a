/// @file MeshMetrics.hpp
/// @brief Volumes, centroids, face areas and normals.
#pragma once

#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"

#include <vector>

namespace DNDS::Geom {

/// Computed from corners, also for ghosts; images at their own positions. In two dimensions "volume" is area, "area" is
/// length.
struct MeshMetrics {
    /// Empty; `computeMetrics` makes whole ones.
    explicit MeshMetrics(CommunicatorView comm);

    ParArray<real, 1> volumes;     ///< [cells] positive
    ParArray<real, 3> centroids;   ///< [cells] of the volume
    ParArray<real, 1> areas;       ///< [faces] of the vector below
    ParArray<real, 3> areaVectors; ///< [faces] away from the first cell
    ParArray<real, 3> faceCentres; ///< [faces] centre of area
    /// The largest |sum of outward area vectors| over the sum of their lengths, of all owned cells of all ranks.
    /// Rounding alone gives about 1e-15.
    real closure = 0.0;
};

/// Local except for the closure, which is reduced: Collective. O(cells + faces + nodes).
///
/// Faces are fanned around the mean of their corners, the same for both neighbours; a cell's volume and centroid are
/// those of the cones over its faces with the mean of its corners as apex: exact if faces are flat. Normals of edges
/// lie in the plane of their first cell. Cells of a curved surface do not close.
MeshMetrics computeMetrics(const UnstructuredMesh &mesh);

} // namespace DNDS::Geom
