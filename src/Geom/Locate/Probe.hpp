/// @file Probe.hpp
/// @brief Points, lines and walls across ranks.
///
/// - `PointLocator`: finds the cells of a distributed mesh that have given points
/// - `Probe`: values of fields at points and along lines
/// - `WallDistance`: the distance from points to the nearest face of some patches
#pragma once

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Geom/Source/ElementType.hpp"

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

/// A point of any rank in a cell of this one.
struct ProbeSample {
    LocalIndex cell; ///< own
    Point position;
    /// Nodes of the cell and their weights, whose sum is 1, for nodal values: shape functions, or mean value
    /// coordinates of polygons and polyhedra.
    std::span<const std::pair<LocalIndex, real>> nodes;
};

/// Points whose cells are found once, to read fields there often.
///
///     Probe line(PointLocator(mesh), world.rank() == 0 ? pointsOnLine(a, b, 100) : std::vector<Point>());
///     while (...) {
///         const std::vector<real> u = line.cellValues(state); // [points x width] on the rank that gave the points
///         ...
///     }
///
/// Ranks that give no points get no values, so that points of rank 0 alone gather there. Values have the same bits on
/// any number of ranks, if the field has; points in no cell get NaN. Values of cells are read on the host: own rows for
/// `cellValues` and `linearValues`, which need no pull, those of ghost nodes, too, for `nodeValues`, which does.
/// Move-only.
class Probe {
  public:
    /// The cells of this rank's points. The locator is not needed afterwards. Collective: `PointLocator::locate`, two
    /// more sparse exchanges, and a pattern of the points. What fails on one rank is thrown on all.
    Probe(const PointLocator &locator, std::span<const Point> points);
    Probe(Probe &&) noexcept = default;
    Probe &operator=(Probe &&) noexcept = default;
    ~Probe() = default;

    /// The cells of this rank's points: [points]. Local.
    const std::vector<PointLocation> &locations() const noexcept { return locations_; }
    /// Points of all ranks in cells of this rank. Local.
    index samples() const noexcept { return static_cast<index>(cells_.size()); }

    /// The value of the cell that has the point: [points x width]. A running call: to be called on all ranks; what one
    /// throws, as ArgumentError for a field of another mesh, revokes the communicator. Cost: one pull of the values; a
    /// first call for a width sets it up. Collective.
    template <class TArray>
    std::vector<real> cellValues(const ArrayPair<TArray> &field) {
        const auto rows = rowsOf(field);
        requireRows(field.father->label(), rows.owned, cellsOfMesh_);
        return values(rows.width, [&](const ProbeSample &at, std::span<real> result) {
            for (rowsize k = 0; k < rows.width; k++)
                result[static_cast<std::size_t>(k)] = rows(at.cell, k);
        });
    }
    /// The same with gradients: value + gradient . (point - centroid). Row `c` of `gradients` has 3 x width numbers, of
    /// which number 3 k + d is the derivative of component k along direction d. Throws LayoutError for other widths.
    template <class TArray, class TGradients>
    std::vector<real> linearValues(const ArrayPair<TArray> &field, const ArrayPair<TGradients> &gradients,
                                   const MeshMetrics &metrics) {
        const auto rows = rowsOf(field);
        const auto slopes = rowsOf(gradients);
        requireRows(field.father->label(), rows.owned, cellsOfMesh_);
        requireRows(gradients.father->label(), slopes.owned, cellsOfMesh_);
        const auto centroids = metrics.centroids.view();
        DNDS_CHECK(slopes.width == 3 * rows.width, LayoutError,
                   "gradients of '{}' need {} numbers in a row, but '{}' has {}", field.father->label(), 3 * rows.width,
                   gradients.father->label(), slopes.width);
        return values(rows.width, [&](const ProbeSample &at, std::span<real> result) {
            for (rowsize k = 0; k < rows.width; k++) {
                real value = rows(at.cell, k);
                for (rowsize d = 0; d < 3; d++)
                    value +=
                        slopes(at.cell, 3 * k + d) * (at.position[static_cast<std::size_t>(d)] - centroids(at.cell, d));
                result[static_cast<std::size_t>(k)] = value;
            }
        });
    }
    /// Nodal values, interpolated within the cell by `ProbeSample::nodes`. Throws StaleError unless ghosts are current.
    template <class TArray>
    std::vector<real> nodeValues(const ArrayPair<TArray> &field) {
        const auto rows = rowsOf(field);
        requireRows(field.father->label(), field.size(), nodesOfMesh_);
        return values(rows.width, [&](const ProbeSample &at, std::span<real> result) {
            field.requireCurrentGhosts();
            for (std::size_t k = 0; k < result.size(); k++) {
                result[k] = 0.0;
                for (const auto &[node, weight] : at.nodes)
                    result[k] += weight * rows(node, static_cast<rowsize>(k));
            }
        });
    }

    /// For reconstructions of one's own: on the owner of its cell, `evaluate` fills the values of each point. `width`
    /// is the same on all ranks. Collective, a running call as the others.
    std::vector<real> values(rowsize width, const std::function<void(const ProbeSample &, std::span<real>)> &evaluate);

  private:
    using Values = ArrayPair<ParArray<real, DynamicSize>>;

    /// Owned rows and ghosts of a field.
    template <class T>
    struct Rows {
        const T *own;
        const T *ghosts;
        index owned;
        rowsize width;

        real operator()(index row, rowsize k) const {
            return static_cast<real>(row < owned ? own[row * width + k] : ghosts[(row - owned) * width + k]);
        }
    };
    template <class T, rowsize width, rowsize most>
    static Rows<T> rowsOf(const ParArray<T, width, most> &father, const ParArray<T, width, most> &son) {
        static_assert(width > 0 || width == DynamicSize, "probed fields have rows of one width");
        return {father.data(), son.data(), father.size(), std::max(father.width(), rowsize{0})};
    }
    template <class TArray>
    static auto rowsOf(const ArrayPair<TArray> &field) {
        return rowsOf(std::as_const(*field.father), std::as_const(*field.son));
    }
    /// Throws ArgumentError for a field of another mesh, or of other entities.
    void requireRows(std::string_view field, index rows, index expected) const;
    /// Father: values of samples; son: copies on the ranks that gave the points. Collective the first time.
    Values &bufferOf(rowsize width);

    index cellsOfMesh_; ///< own ones
    index nodesOfMesh_; ///< with ghosts
    std::vector<PointLocation> locations_;
    std::vector<LocalIndex> cells_;                    ///< [samples]
    std::vector<Point> positions_;                     ///< [samples]
    std::vector<index> starts_{0};                     ///< [samples + 1], into `weights_`
    std::vector<std::pair<LocalIndex, real>> weights_; ///< nodes and weights
    std::vector<LocalIndex> rows_;                     ///< [points] in buffers; `noEntity` where nothing was found
    std::shared_ptr<CommunicatorContext> context_;
    std::map<rowsize, Values> buffers_; ///< key: width; the first, of width 1, has the mapping of all
};

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
