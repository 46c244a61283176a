#include "DNDS/Geom/Refine/RefineUniformly.hpp"

#include "DNDS/Geom/Elements/ElementMap.hpp"
#include "DNDS/Geom/Refine/RefineLevel.hpp"
#include "DNDS/Geom/Refine/RefinementPattern.hpp"
#include "DNDS/Geom/Source/NumberTable.hpp"
#include "DNDS/Geom/Source/SourceChecks.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <utility>

namespace DNDS::Geom {

namespace {

// Numbers of fields decide the width of rows, so they must agree on all ranks.
void checkRefinement(CommunicatorView comm, const SourceMesh &mesh, const RefineOptions &options) {
    requireSameSettings(comm, "refineUniformly", [&] {
        const auto fields = [&](auto list) { return options.fields == nullptr ? 0 : (options.fields->*list).size(); };
        return std::vector<std::string>{fmt::format("levels = {}", options.levels),
                                        fmt::format("node fields = {}", fields(&MeshFields::nodes)),
                                        fmt::format("cell fields = {}", fields(&MeshFields::cells))};
    });
    comm.guarded([&] {
        DNDS_CHECK(options.levels >= 0, ArgumentError, "refineUniformly: {} levels: give 0 or more", options.levels);
        if (options.fields == nullptr)
            return;
        const auto check = [&](const std::vector<MeshField> &fields, index rows, const char *what) {
            for (const MeshField &field : fields)
                DNDS_CHECK(static_cast<index>(field.values.size()) == rows, ArgumentError,
                           "refineUniformly: field '{}' has {} values for {} {}", field.name, field.values.size(), rows,
                           what);
        };
        check(options.fields->nodes, mesh.nodes(), "nodes");
        check(options.fields->cells, mesh.cells.size(), "cells");
    });
    checkSource(comm, mesh);
}

/// Coordinates and node fields as rows, and back.
std::vector<real> rowsOf(const SourceMesh &mesh, const std::vector<MeshField> &fields) {
    std::vector<real> rows;
    rows.reserve(mesh.coordinates.size() * (3 + fields.size()));
    for (std::size_t n = 0; n < mesh.coordinates.size(); n++) {
        rows.insert(rows.end(), mesh.coordinates[n].begin(), mesh.coordinates[n].end());
        for (const MeshField &field : fields)
            rows.push_back(field.values[n]);
    }
    return rows;
}

// The inverse of rowsOf, for a mesh of another size.
void takeRows(const std::vector<real> &rows, SourceMesh &mesh, std::vector<MeshField> &fields) {
    const std::size_t width = 3 + fields.size();
    mesh.coordinates.resize(rows.size() / width);
    for (MeshField &field : fields)
        field.values.resize(rows.size() / width);
    for (std::size_t n = 0; n < mesh.coordinates.size(); n++) {
        const real *row = rows.data() + n * width;
        mesh.coordinates[n] = {row[0], row[1], row[2]};
        for (std::size_t f = 0; f < fields.size(); f++)
            fields[f].values[n] = row[3 + f];
    }
}

/// The cells of one level, and which child of its parent each is.
struct LevelCells {
    std::vector<ElementType> parents; ///< [own cells of the level above]
    std::vector<std::uint8_t> children;
};

/// The centroid of a reference shape: of pyramids it is not the mean of the corners.
Point centroidOf(ReferenceShape shape) {
    return shape == ReferenceShape::Pyramid ? Point{0.0, 0.0, 0.25} : referenceCentre(shape);
}

/// The way from the cells of the last level to those of the first.
/// From the finest level upwards: a child's centroid is mapped into the reference coordinates of its parent, level by
/// level. Maps of reference elements are affine, so this is exact up to rounding.
/// O(cells x levels) time, no messages: children stay on the rank of their parent, in its order.
RefinedCells traceBack(const std::vector<LevelCells> &levels, const SourceMesh &coarse, const SourceMesh &fine) {
    RefinedCells cells;
    cells.parents.resize(toSize(fine.cells.size()));
    for (index c = 0; c < fine.cells.size(); c++) {
        cells.parents[toSize(c)] = c;
        cells.at.push_back(centroidOf(elementLayout(refinedAs(fine.cells, c)).shape));
    }
    for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
        // Children follow each other in the order of their parents: each child 0 begins the next parent.
        std::vector<index> parentOf;
        index parent = -1;
        for (const std::uint8_t child : level->children)
            parentOf.push_back(child == 0 ? ++parent : parent);
        for (std::size_t c = 0; c < cells.at.size(); c++) {
            const std::size_t cell = toSize(cells.parents[c]);
            cells.parents[c] = parentOf[cell];
            const auto &child =
                refinementPattern(level->parents[toSize(parentOf[cell])]).children[level->children[cell]];
            const Point step = cells.at[c] - referenceCentre(elementLayout(child.type).shape);
            cells.at[c] = child.centre + step[0] * child.axes[0] + step[1] * child.axes[1] + step[2] * child.axes[2];
        }
    }
    for (index &parent : cells.parents)
        parent += coarse.cells.first;
    return cells;
}

/// The refined mesh; `fields` become those of it. Collective.
/// Each level consumes the one before; only the types of parents and the numbers of children are kept of earlier
/// levels.
SourceMesh refine(CommunicatorView comm, const SourceMesh &coarse, const RefineOptions &options, MeshFields &fields,
                  RefinedCells &cells) {
    SourceMesh fine;
    const SourceMesh *last = &coarse;
    std::vector<real> rows = rowsOf(coarse, fields.nodes);
    std::vector<LevelCells> levels;
    for (int level = 0; level < options.levels; level++) {
        LevelCells made;
        for (index c = 0; c < last->cells.size(); c++)
            made.parents.push_back(refinedAs(last->cells, c));
        fine = refineLevel(comm, *last, rows, 3 + fields.nodes.size(), made.children);
        last = &fine;
        takeRows(rows, fine, fields.nodes);
        levels.push_back(std::move(made));
    }
    if (options.levels == 0)
        fine = coarse;
    else // elements have other numbers than in the file
        fine.origin += fmt::format(" (refined, level {})", options.levels);
    if (options.cells == nullptr && fields.cells.empty())
        return fine;
    cells = traceBack(levels, coarse, fine);
    for (MeshField &field : fields.cells) {
        std::vector<real> values;
        values.reserve(cells.parents.size());
        for (const index parent : cells.parents)
            values.push_back(field.values[toSize(parent - coarse.cells.first)]);
        field.values = std::move(values);
    }
    return fine;
}

} // namespace

// Strong guarantee: fields and cells of the caller change only after all ranks have succeeded; until then both
// copies exist.
SourceMesh refineUniformly(CommunicatorView comm, const SourceMesh &coarse, const RefineOptions &options) {
    MeshFields fields; // the caller's change when all ranks have succeeded
    RefinedCells cells;
    SourceMesh fine = failTogether(comm, [&] {
        checkRefinement(comm, coarse, options);
        if (options.fields != nullptr)
            fields = *options.fields;
        return refine(comm, coarse, options, fields, cells);
    });
    if (options.fields != nullptr)
        *options.fields = std::move(fields);
    if (options.cells != nullptr)
        *options.cells = std::move(cells);
    return fine;
}

// Needs nodes of the coarse mesh only: centroids of children are known in reference coordinates.
std::vector<real> prolongLinear(CommunicatorView comm, const SourceMesh &coarse, const RefinedCells &cells,
                                std::span<const real> values, std::span<const Point> gradients) {
    return failTogether(comm, [&] {
        comm.guarded([&] {
            const std::size_t own = toSize(coarse.cells.size());
            DNDS_CHECK(values.size() == own && gradients.size() == own && cells.at.size() == cells.parents.size(),
                       ArgumentError, "prolongLinear: {} values and {} gradients for {} coarse cells", values.size(),
                       gradients.size(), own);
            for (const index parent : cells.parents)
                DNDS_CHECK(parent >= coarse.cells.first && parent - coarse.cells.first < coarse.cells.size(),
                           ArgumentError,
                           "prolongLinear: parent {} is none of this rank's {} coarse cells from {} on: give the mesh "
                           "and the cells of one call of refineUniformly",
                           parent, own, coarse.cells.first);
        });
        NumberTable nodes;
        for (const index node : coarse.cells.nodes)
            nodes.add(node);
        const std::vector<Point> points =
            fetchCoordinates(*GlobalMapping::create(comm, coarse.nodes()), coarse.coordinates, nodes.numbers());
        std::vector<real> result;
        result.reserve(cells.parents.size());
        for (std::size_t c = 0; c < cells.parents.size(); c++) {
            const index parent = cells.parents[c] - coarse.cells.first;
            const ElementType type = refinedAs(coarse.cells, parent);
            const auto list = coarse.cells.nodesOf(parent);
            const auto place = [&](const Point &at) {
                return mapPoint(
                           shapeFunctions(type, at),
                           [&](int k) {
                               return points[static_cast<std::size_t>(nodes.find(list[static_cast<std::size_t>(k)]))];
                           })
                    .position;
            };
            const Point step = place(cells.at[c]) - place(centroidOf(elementLayout(type).shape));
            result.push_back(values[toSize(parent)] + dot(gradients[toSize(parent)], step));
        }
        return result;
    });
}

} // namespace DNDS::Geom
