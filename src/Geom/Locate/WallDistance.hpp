/// @file WallDistance.hpp
/// @brief The distance from points to the nearest face of some patches.
#pragma once

#include "DNDS/Geom/Mesh/MeshMetrics.hpp"
#include "DNDS/Geom/Source/Point.hpp"

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace DNDS::Geom {

/// The face of some patches that is nearest to a point.
struct NearestFace {
    real distance = std::numeric_limits<real>::infinity(); ///< infinite if the patches have no faces
    int rank = -1;                                         ///< the owner of the face; -1: the patches have no faces
    LocalIndex face = noEntity;                            ///< its local number there
    index cell = -1;                                       ///< the position of its cell in the file
};

/// Distances to walls, as turbulence models need them: exact to the nearest face of the given patches, wherever it is.
///
///     const WallDistance walls(mesh, {"airfoil", "ground"});
///     const std::vector<real> distance = walls.ofCells(metrics); // [own cells]
///
/// Faces are segments, triangles, or fans of triangles around the mean of their corners; curved ones are taken by their
/// corners. Images of walls across periodic boundaries count, one step far in each direction. Results have the same
/// bits on any number of ranks; of equally near faces, the one whose cell comes first in the file is returned.
///
/// Each rank has a tree of its own faces of the patches (branch and bound as in Roussopoulos, Kelley and Vincent:
/// Nearest neighbor queries, SIGMOD 1995). A point is compared with this rank's faces, then with those of the rank
/// whose box is nearest, then with those of the other ranks whose boxes are nearer than what was found: no rank gets
/// faces or points that do not matter to it.
class WallDistance {
  public:
    /// The mesh must outlive it. Collective. O(faces log faces), O(ranks) memory. Throws ArgumentError on all ranks
    /// for a patch that does not exist.
    WallDistance(const UnstructuredMesh &mesh, const std::vector<std::string> &patches);
    WallDistance(WallDistance &&) noexcept;
    WallDistance &operator=(WallDistance &&) noexcept;
    ~WallDistance();

    /// The faces nearest to this rank's points: [points]. Points that are not finite have none. Collective; four sparse
    /// exchanges; about O(log faces) for each point. Points in the order of space, as centroids of cells are, are
    /// fastest.
    std::vector<NearestFace> nearest(std::span<const Point> points) const;
    /// The distances of own cells' centroids: [own cells]. Collective, as `nearest`.
    std::vector<real> ofCells(const MeshMetrics &metrics) const;

  private:
    struct Search;

    std::unique_ptr<const Search> search_;
};

} // namespace DNDS::Geom
