/// @file CellGeometry.hpp
/// @brief Tests whether a cell has a point, and weights of its nodes there, for all types of cells.
#pragma once

#include "DNDS/Geom/Locate/BoundingBoxTree.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"

#include <utility>
#include <vector>

namespace DNDS::Geom {

/// The own cells of a mesh, which must outlive it, as sets of points. All results have the same bits on any number of
/// ranks: they depend on the cell's nodes and their order alone. All functions are Local.
class CellGeometry {
  public:
    /// `tolerance` is how far outside a point may be, in sizes of the cell. O(1).
    CellGeometry(const UnstructuredMesh &mesh, real tolerance);

    /// In the plane of a planar mesh, whose third coordinate is ignored.
    Point inPlane(const Point &point) const { return mesh_->planar ? Point{point[0], point[1], 0.0} : point; }
    /// The box of a cell, without tolerance; a bound computed from the nodes if the cell is curved.
    BoundingBox boundingBoxOf(LocalIndex cell) const;
    /// Whether the cell has the point, except for `slack`, a length. `point` is in the plane.
    bool has(LocalIndex cell, const Point &point, real slack) const;
    real tolerance() const { return tolerance_; }

    using Weights = std::vector<std::pair<LocalIndex, real>>;
    /// Appends nodes and weights that interpolate nodal values at a point in the cell: shape functions, or mean value
    /// coordinates of polygons (Hormann and Floater, ACM Trans. Graph. 25 (4), 2006) and polyhedra (Ju, Schaefer and
    /// Warren, ACM Trans. Graph. 24 (3), 2005). All are exact for linear functions.
    void addWeights(LocalIndex cell, const Point &point, Weights &weights) const;

  private:
    Point nodeAt(LocalIndex node) const {
        return inPlane({coordinates_(node, 0), coordinates_(node, 1), coordinates_(node, 2)});
    }
    /// Corners relative to `origin`: all computations on a cell are relative, so that rounding errors scale with its
    /// size, not with its distance from the origin.
    std::vector<Point> cornersOf(LocalIndex cell, const Point &origin) const;
    bool polygonHas(const std::vector<Point> &corners, real slack) const; ///< the origin
    bool polyhedronHas(LocalIndex cell, const Point &point, real slack) const;
    void addPolygonWeights(LocalIndex cell, const Point &point, Weights &weights) const;
    void addPolyhedronWeights(LocalIndex cell, const Point &point, Weights &weights) const;
    /// Calls `visit(corners, sense)` for the faces of a polyhedron; `sense` is 1 if they are counter-clockwise from
    /// outside, else -1.
    template <class Visit>
    void forEachFaceOf(LocalIndex cell, Visit &&visit) const;

    const UnstructuredMesh *mesh_;
    real tolerance_;
    ArrayView<const real, 3> coordinates_;
    LocalAdjacency::ConstView cellNodes_;
    LocalAdjacency::ConstView cellFaces_;
    LocalAdjacency::ConstView faceNodes_;
    LocalPairs::ConstView faceCells_;
};

} // namespace DNDS::Geom
