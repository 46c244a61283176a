/// @file PointLocator.hpp
/// @brief Finds the cells of a distributed mesh that have given points.
#pragma once

#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Geom/Source/Point.hpp"

#include <memory>
#include <span>
#include <vector>

namespace DNDS::Geom {

/// The place of a point in a mesh.
struct PointLocation {
    int rank = -1;              ///< the owner of the cell; -1: no cell has the point
    LocalIndex cell = noEntity; ///< its local number there
    index number = -1;          ///< its position in the file, from 0

    /// False for a point in no cell. Local.
    bool found() const noexcept { return rank >= 0; }
};

/// `count` points on a line, equally spaced, both ends included; one point is `from`. Local.
std::vector<Point> pointsOnLine(const Point &from, const Point &to, index count);

class CellGeometry;

/// Finds cells by points, on all ranks: each has a tree of its own cells' boxes, and knows one box of each rank.
///
///     const PointLocator locator(mesh);
///     for (const PointLocation &at : locator.locate(points)) // each rank asks for points of its own, or for none
///         if (at.found()) ...
///
/// Own cells count, not ghosts: across periodic boundaries, points are taken where they are. Elements have the shape of
/// their maps, curved ones too, which Newton's method inverts; the sides of polygons are straight, and faces of
/// polyhedra are fans around the mean of their corners. Surfaces have the points on them; of planar meshes, the third
/// coordinate of points is ignored. A point in several cells, as those on a face are, belongs to the one that is first
/// in the file: the answer is the same on any number of ranks. Cells that the map turns inside out, and gaps between
/// warped faces of polyhedra and of other cells, may be missed.
class PointLocator {
  public:
    /// `tolerance` is how far outside a cell a point may be, relative to the cell's size; on surfaces beside it, too.
    /// The mesh must outlive the locator. Collective. O(cells log cells), O(ranks) memory. Throws ArgumentError on all
    /// ranks for a tolerance that is negative or not finite.
    explicit PointLocator(const UnstructuredMesh &mesh, real tolerance = 1e-8);
    PointLocator(PointLocator &&) noexcept;
    PointLocator &operator=(PointLocator &&) noexcept;
    ~PointLocator();

    /// The cells of this rank's points: [points]. Points that are not finite are nowhere. Collective; two sparse
    /// exchanges, with the ranks whose boxes have points; about O(log cells) for each point.
    std::vector<PointLocation> locate(std::span<const Point> points) const;
    /// The own cell that has the point, or `noEntity`. Local.
    LocalIndex ownCellAt(const Point &point) const;

    /// The mesh that was given. Local.
    const UnstructuredMesh &mesh() const noexcept { return *mesh_; }
    /// The shapes of the cells, for interpolation by `Probe`. Local.
    const CellGeometry &geometry() const noexcept;

  private:
    struct Trees;

    const UnstructuredMesh *mesh_;
    std::unique_ptr<const Trees> trees_;
};

} // namespace DNDS::Geom
