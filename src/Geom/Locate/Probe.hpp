/// @file Probe.hpp
/// @brief Values of fields at points and along lines.
#pragma once

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Geom/Locate/PointLocator.hpp"
#include "DNDS/Geom/Mesh/MeshMetrics.hpp"

#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace DNDS::Geom {

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

} // namespace DNDS::Geom
