#include "DNDS/Geom/Locate/Probe.hpp"

#include "DNDS/Geom/Locate/CellGeometry.hpp"
#include "DNDS/Geom/Locate/RankQueries.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace DNDS::Geom {

// Weighted means, so that both ends are exact.
std::vector<Point> pointsOnLine(const Point &from, const Point &to, index count) {
    std::vector<Point> points;
    for (index i = 0; i < count; i++) {
        const real at = count > 1 ? static_cast<real>(i) / static_cast<real>(count - 1) : 0.0;
        points.push_back((1.0 - at) * from + at * to);
    }
    return points;
}

/// A tree of this rank's cells, and one of all ranks' boxes: queries for a point go to the ranks whose boxes contain
/// it.
/// Memory: a box and a tree node for each own cell, and one box for each rank.
struct PointLocator::Trees {
    std::shared_ptr<CommunicatorContext> context;
    CellGeometry geometry;
    std::vector<real> slacks{}; ///< [own cells] how far outside a point may be
    BoundingBoxTree cells{};
    BoundingBoxTree ranks{};
};

// O(own cells log own cells) time, and one gather of a box a rank. Boxes are grown by more than the tolerance of
// the test, so no cell that would pass the test is left out by its box.
PointLocator::PointLocator(const UnstructuredMesh &mesh, real tolerance) : mesh_(&mesh) {
    trees_ = failTogether(mesh.comm, [&] {
        DNDS_CHECK(std::isfinite(tolerance) && tolerance >= 0.0, ArgumentError,
                   "the tolerance of a point locator must be finite and not negative, not {}", tolerance);
        const real beyondRounding = std::max(tolerance, 1e-12); // maps are inverted by numbers that are rounded
        auto trees =
            std::make_unique<Trees>(Trees{CommunicatorContext::of(mesh.comm), CellGeometry(mesh, beyondRounding)});
        std::vector<BoundingBox> boxes;
        for (LocalIndex cell = 0; cell < static_cast<LocalIndex>(mesh.cells.owned); cell++) {
            BoundingBox box = trees->geometry.boundingBoxOf(cell);
            const real slack = beyondRounding * box.diagonal();
            // Tolerances are in reference coordinates, too, whose unit may be longer than the cell.
            const real margin = 4.0 * slack;
            box.grow({margin, margin, margin});
            trees->slacks.push_back(slack);
            boxes.push_back(box);
        }
        trees->cells = BoundingBoxTree(std::move(boxes));
        trees->ranks = treeOfRanks(mesh.comm, trees->cells.bounds());
        return std::unique_ptr<const Trees>(std::move(trees));
    });
}

PointLocator::PointLocator(PointLocator &&) noexcept = default;
PointLocator &PointLocator::operator=(PointLocator &&) noexcept = default;
PointLocator::~PointLocator() = default;

const CellGeometry &PointLocator::geometry() const noexcept { return trees_->geometry; }

// Several cells may have the point: the first in the file counts, as in `locate`.
// About O(log cells + cells whose box has the point). Cells are tested in any order, but only if they would come
// first.
LocalIndex PointLocator::ownCellAt(const Point &point) const {
    const Point at = trees_->geometry.inPlane(point);
    const auto number = [&](LocalIndex cell) { return mesh_->cells.fileNumbers[static_cast<std::size_t>(cell)]; };
    // The test of a cell costs microseconds, its number nothing.
    LocalIndex first = noEntity;
    trees_->cells.forEachAt(at, [&](LocalIndex cell) {
        const bool comesFirst = first == noEntity || number(cell) < number(first);
        if (comesFirst && trees_->geometry.has(cell, at, trees_->slacks[static_cast<std::size_t>(cell)]))
            first = cell;
    });
    return first;
}

// Two exchanges; O(points x ranks whose box has the point) words, mostly one or two a point. The least file number
// wins, so the cell of a point on a face does not depend on the partition.
std::vector<PointLocation> PointLocator::locate(std::span<const Point> points) const {
    return failTogether(mesh_->comm, [&] {
        // Every rank whose box has the point is asked, this one too: a cell of another may come first in the file.
        std::vector<RankQuery> queries;
        for (std::size_t i = 0; i < points.size(); i++)
            trees_->ranks.forEachAt(trees_->geometry.inPlane(points[i]), [&](int rank) {
                queries.push_back({rank, i});
            });
        std::vector<PointLocation> found(points.size());
        askRanks(
            *trees_->context, queries, 3, [&](std::size_t i, index *words) { writePoint(points[i], words); }, 2,
            [&](int, RecordReader &question, std::vector<index> &reply) {
                const LocalIndex cell = ownCellAt(question.nextPoint());
                reply.push_back(cell);
                reply.push_back(cell == noEntity ? -1 : mesh_->cells.fileNumbers[static_cast<std::size_t>(cell)]);
            },
            [&](int rank, std::size_t i, RecordReader &reply) {
                const auto cell = static_cast<LocalIndex>(reply.next());
                const index number = reply.next();
                if (cell != noEntity && (!found[i].found() || number < found[i].number))
                    found[i] = {rank, cell, number};
            });
        return found;
    });
}

} // namespace DNDS::Geom
