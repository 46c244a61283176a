/// @file BlockFile.hpp
/// @brief Fields on blocks in files: NetCDF directly, other formats through boxes and rows.
#pragma once

#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/GridFile/Netcdf.hpp"
#include "DNDS/GridFile/Slab.hpp"
#include "DNDS/Storage/Array.hpp"

#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS {

/// The shape of a field in a file: the cells (or points) of its index space, then its components, if there are several
/// (first if they are outside). A dimension of n cells has n + 1 nodes, or n if it is periodic. Local. Throws
/// ArgumentError for several index spaces: write each as rows, or to a file of its own.
template <class T>
std::vector<index> fileShape(const BlockField<T> &field) {
    const BlockGrid &grid = *field.grid();
    DNDS_CHECK(grid.spaces().size() == 1, ArgumentError, "'{}' has {} index spaces, and a variable of a file has one",
               field.name(), grid.spaces().size());
    std::vector<index> shape;
    const Box points = field.blockPattern()->filePoints();
    for (int d = 0; d < grid.dims(); ++d)
        shape.push_back(points.extent(d));
    if (field.components() > 1)
        shape.insert(field.blockPattern()->componentsOutside() > 0 ? shape.begin() : shape.end(), field.components());
    return shape;
}

/// This rank's cells as boxes of a file, block by block, for functions that take slabs (NetCDF, `readRawFile`,
/// `writeHdfDataset`, ...). `leading` are indices in file dimensions that precede the field's, such as a time step.
/// Slabs point into the field's host memory and are valid as long as a view. Each point that blocks share is in one
/// slab; after reading, `exchangeGhosts` brings it to the other blocks. Local. Throws as `fileShape`,
/// BlockPattern::fileBoxes and BlockField::view.
template <class Field>
auto fileSlabs(Field &field, const std::vector<index> &leading = {}) {
    using T = std::remove_reference_t<decltype(*field.view(0).data())>;
    std::vector<decltype(slabOf(std::declval<T *>(), {}, {}))> slabs;
    (void)fileShape(field);
    const BlockPattern &pattern = *field.blockPattern();
    const Box all = pattern.filePoints();
    // The dimensions of a slab are those of the file: `leading`, components if they are outside, the box, components if
    // they are inside. Strides are those of the field's memory: nothing is copied here.
    const auto slabOfBox = [&](const auto &view, const Box &box) {
        std::vector<index> start;
        std::vector<index> count;
        std::vector<index> strides;
        const auto add = [&](index first, index number, index stride) {
            start.push_back(first);
            count.push_back(number);
            strides.push_back(stride);
        };
        const auto components = [&] {
            if (field.components() > 1)
                add(0, field.components(), view.stride(view.dims()));
        };
        for (const index place : leading)
            add(place, 1, 0);
        if (pattern.componentsOutside() > 0)
            components();
        index offset = 0;
        for (int d = 0; d < view.dims(); ++d) {
            const index lower = box.lower[toSize(d)];
            add(lower - all.lower[toSize(d)], box.extent(d), view.stride(d));
            offset += view.local(lower, d) * view.stride(d);
        }
        if (pattern.componentsOutside() == 0)
            components();
        return slabOf(view.data() + offset, std::move(start), std::move(count), std::move(strides));
    };
    for (int b = 0; b < field.blocks(); ++b)
        for (const Box &box : pattern.fileBoxes(b))
            slabs.push_back(slabOfBox(field.view(b), box));
    return slabs;
}

namespace Detail {

/// "6 x 8".
inline std::string textOf(const std::vector<index> &shape) {
    std::string text;
    for (const index n : shape)
        text += (text.empty() ? "" : " x ") + std::to_string(n);
    return text;
}

} // namespace Detail

/// Reads a variable, each rank its own blocks. Ghosts, and copies of points that other blocks read, are left as they
/// are. `options.picks` leaves the field's shape (see `picksFor`). `mask`, if given, has the field's pattern and
/// components; it gets 1 where a value is missing. Collective.
/// @throws on all ranks: as NetcdfReader::read; StaleError; LayoutError if the shape is another.
template <class T>
void readNetcdf(const NetcdfReader &file, std::string_view name, BlockField<T> &field,
                const NetcdfReadOptions &options = {}, BlockField<std::uint8_t> *mask = nullptr) {
    std::vector<Slab> slabs;
    // Errors of one rank are thrown on all before the collective read.
    field.array().comm().guarded([&] {
        const std::vector<index> shape = fileShape(field);
        const std::vector<index> left = file.shape(name, options.picks);
        DNDS_CHECK(left == shape, LayoutError, "{}: {} leaves {} elements, but '{}' has {}", file.path(),
                   file.variable(name).description(), Detail::textOf(left), field.name(), Detail::textOf(shape));
        slabs = fileSlabs(field);
        if (mask == nullptr)
            return;
        DNDS_CHECK(mask->blockPattern() == field.blockPattern() && mask->components() == field.components(),
                   LayoutError, "the mask '{}' has not the pattern and components of '{}'", mask->name(), field.name());
        const std::vector<Slab> masks = fileSlabs(*mask);
        for (std::size_t b = 0; b < slabs.size(); ++b)
            slabs[b].mask = static_cast<std::uint8_t *>(masks[b].data);
    });
    file.read(name, slabs, options);
}

/// Writes a field's cells, and points that blocks share once, to a variable declared with the field's shape, at the
/// indices `leading`, such as a step of an unlimited dimension. Collective. @throws on all ranks as
/// NetcdfWriter::write; StaleError.
template <class T>
void writeNetcdf(NetcdfWriter &file, std::string_view name, const BlockField<T> &field,
                 const std::vector<index> &leading = {}) {
    std::vector<WrittenSlab> slabs;
    field.array().comm().guarded([&] { slabs = fileSlabs(field, leading); });
    file.write(name, slabs);
}

/// Declares the coordinates of a field by CF, `NetcdfWriter::axis` of each dimension: of cells, or of nodes where the
/// field's centring has them. Returns the names of its dimensions, that of n components, "component<n>", among them:
///
///     const std::vector<GridAxis> axes{{"lat", latitudes, {{"units", "degrees_north"}}}, {"lon", longitudes}};
///     file.variable("p", ElementKind::Float32, declareAxes(file, p, axes), {{"units", "Pa"}});      // lat, lon
///     file.variable("v", ElementKind::Float32, declareAxes(file, v, axes), {{"units", "m s-1"}});   // lat_node, lon
///
/// Local. Throws ArgumentError unless there is an axis for each dimension with a node more than cells, and as these.
template <class T>
std::vector<std::string> declareAxes(NetcdfWriter &file, const BlockField<T> &field, std::span<const GridAxis> axes) {
    (void)fileShape(field);
    const IndexSpace &space = field.grid()->spaces().front();
    DNDS_CHECK(axes.size() == toSize(space.cells.dims), ArgumentError, "'{}' has {} dimensions, but {} axes are given",
               field.name(), space.cells.dims, axes.size());
    std::vector<std::string> names;
    for (int d = 0; d < space.cells.dims; ++d) {
        const GridAxis &axis = axes[toSize(d)];
        DNDS_CHECK(static_cast<index>(axis.nodes.size()) == space.cells.extent(d) + 1, ArgumentError,
                   "axis '{}' of '{}' has {} nodes for {} cells: give one more", axis.name, field.name(),
                   axis.nodes.size(), space.cells.extent(d));
        names.push_back(file.axis(axis, field.blockPattern()->centring().nodal[toSize(d)], space.periodic[toSize(d)]));
    }
    if (field.components() > 1) {
        const std::string name = fmt::format("component{}", field.components());
        file.dimension(name, field.components());
        names.insert(field.blockPattern()->componentsOutside() > 0 ? names.begin() : names.end(), name);
    }
    return names;
}

/// A field for a VTK file of its index space, of 1 to 3 dimensions, the last of which is VTK's x:
///
///     writeVtkImage(comm, "u.vtkhdf", {nx, ny, 1}, origin, spacing, std::array{vtkField(u)});
///
/// Nodes, faces and edges are the points of an image of their own: pass their numbers in place of `nx` and `ny`, an
/// origin that is half a spacing lower in nodal dimensions, and VtkPlacement::Centres.
///
/// It shows the field's host memory: valid as a view. Local. Throws ArgumentError for 4 dimensions and for components
/// outside the cells (files have them inside), and as `fileSlabs`.
template <class T>
VtkGridField vtkField(const BlockField<T> &field) {
    const int dims = field.grid()->dims();
    DNDS_CHECK(dims <= 3, ArgumentError, "'{}' has {} dimensions, and VTK's grids have 3", field.name(), dims);
    DNDS_CHECK(
        field.blockPattern()->componentsOutside() == 0 || field.components() == 1, ArgumentError,
        "the components of '{}' are outside its cells (ComponentOrder::Outside), and VTK's files have them inside: "
        "copy it to a field that has, too",
        field.name());
    return {field.name(), field.components(), elementKindOf<T>(),
            fileSlabs(field, std::vector<index>(toSize(3 - dims)))};
}

/// Cells (or points) as rows with ids, for checkpoints that any number of ranks and any blocks can read. Points that
/// index spaces share are rows of each of these: exchange ghosts first, so that all of them have the owner's value.
///
///     CheckpointWriter writer(comm, "run.h5", {.mesh = u.grid()->cellsSignature()});
///     const CellRows rows = cellRows(u);
///     writer.add("u", rows.values, rows.ids);           // and write() while `rows` lives
///
///     CheckpointReader reader(comm, "run.h5", {.mesh = u.grid()->cellsSignature()});
///     CellRows rows = cellRows(u);
///     reader.read("u", rows.values, rows.ids);
///     setCells(u, rows);
template <class T>
struct CellRows {
    Array<T, DynamicSize> values; ///< [cells of this rank x components]
    std::vector<index> ids; ///< the cell's number in C order in its index space, plus the cells of earlier spaces;
                            ///< for nodes, faces and edges as `cellIds`
};

namespace Detail {

/// Calls `visit(cell, stride)` for this rank's cells, block by block: the first component and the distance to the next.
template <class Field, class Visit>
void forEachOwnCell(Field &field, Visit &&visit) {
    for (int b = 0; b < field.blocks(); ++b) {
        const auto view = field.view(b);
        for (const Box &box : field.blockPattern()->fileBoxes(b))
            forEachLine(box, [&](const IndexVector &cell, index count) {
                auto *const first = view.addressOf(cell);
                for (index i = 0; i < count; ++i)
                    visit(first + i * view.stride(view.dims() - 1), view.stride(view.dims()));
            });
    }
}

} // namespace Detail

/// The ids of this rank's cells, block by block, as in CellRows: they depend on the index spaces alone, not on blocks
/// or ranks. Points of another centring have other ids, which their places in the index space determine, whatever its
/// periods: a checkpoint gives each point its own value or says that it has none. Local. O(cells + blocks x index
/// spaces).
template <class T>
std::vector<index> cellIds(const BlockField<T> &field) {
    std::vector<index> ids;
    const BlockPattern &pattern = *field.blockPattern();
    const std::span<const IndexSpace> spaces = field.grid()->spaces();
    // Nodes, faces and edges follow all cells: each cell of an index space with one more in each dimension has an id
    // for its lower point of each centring. Cells alone have ids without gaps, which files need not list.
    index kind = 0;
    for (int d = 0; d < field.grid()->dims(); ++d)
        kind += pattern.centring().nodal[toSize(d)] ? index{1} << d : 0;
    const bool cells = kind == 0;
    const auto extent = [&](const IndexSpace &space, int d) { return space.cells.extent(d) + (cells ? 0 : 1); };
    const auto count = [&](const IndexSpace &space) {
        index points = 1;
        for (int d = 0; d < space.cells.dims; ++d)
            points *= extent(space, d);
        return points;
    };
    index first = 0;
    for (const IndexSpace &space : spaces)
        first += cells ? 0 : space.cells.size();
    for (int b = 0; b < field.blocks(); ++b) {
        const auto number = toSize(field.grid()->block(field.block(b).block).space);
        const IndexSpace &space = spaces[number];
        index before = 0;
        for (const IndexSpace &earlier : spaces.first(number))
            before += count(earlier);
        for (const Box &box : pattern.fileBoxes(b))
            forEachCell(box, [&](const IndexVector &cell) {
                index place = 0;
                for (int d = 0; d < box.dims; ++d)
                    place = place * extent(space, d) + cell[toSize(d)] - space.cells.lower[toSize(d)];
                ids.push_back(cells ? before + place : first + ((before + place) << maxBlockDims) + kind);
            });
    }
    return ids;
}

/// A copy of this rank's cells, each shared point once. Local. O(cells). Throws as BlockField::view.
template <class T>
CellRows<T> cellRows(const BlockField<T> &field) {
    CellRows<T> rows;
    rows.ids = cellIds(field);
    rows.values.resize(static_cast<index>(rows.ids.size()), field.components());
    index row = 0;
    Detail::forEachOwnCell(field, [&](const T *cell, index stride) {
        for (rowsize c = 0; c < field.components(); ++c)
            rows.values(row, c) = cell[c * stride];
        ++row;
    });
    return rows;
}

/// The inverse: rows are in the order of `cellRows`; ghosts and copies of shared points are left to `exchangeGhosts`.
/// Local. O(cells). Throws LayoutError if the number of rows or components differs from the field's.
template <class T>
void setCells(BlockField<T> &field, const CellRows<T> &rows) {
    const auto cells = static_cast<index>(cellIds(field).size());
    DNDS_CHECK(rows.values.size() == cells && (cells == 0 || rows.values.rowSize(0) == field.components()), LayoutError,
               "'{}' has {} cells of {} components here, but {} rows are given", field.name(), cells,
               field.components(), rows.values.size());
    index row = 0;
    Detail::forEachOwnCell(field, [&](T *cell, index stride) {
        for (rowsize c = 0; c < field.components(); ++c)
            cell[c * stride] = rows.values(row, c);
        ++row;
    });
}

} // namespace DNDS
