/// @file BlockFile.hpp
/// @brief Fields on blocks in files: NetCDF directly, other formats through boxes and rows.
#pragma once

#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/GridFile/Netcdf.hpp"
#include "DNDS/GridFile/Slab.hpp"
#include "DNDS/Storage/Array.hpp"

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS {

/// The shape of a field in a file: the cells of its index space, then its components, if there are several (first if
/// they are outside). Local. Throws ArgumentError for several index spaces: write each as rows, or to a file of its
/// own.
template <class T>
std::vector<index> fileShape(const BlockField<T> &field) {
    const BlockGrid &grid = *field.grid();
    DNDS_CHECK(grid.spaces().size() == 1, ArgumentError, "'{}' has {} index spaces, and a variable of a file has one",
               field.name(), grid.spaces().size());
    std::vector<index> shape;
    for (int d = 0; d < grid.dims(); ++d)
        shape.push_back(grid.spaces().front().cells.extent(d));
    if (field.components() > 1)
        shape.insert(field.blockPattern()->componentsOutside() > 0 ? shape.begin() : shape.end(), field.components());
    return shape;
}

/// This rank's cells as boxes of a file, block by block, for functions that take slabs (NetCDF, `readRawFile`,
/// `writeHdfDataset`, ...). `leading` are indices in file dimensions that precede the field's, such as a time step.
/// Slabs point into the field's host memory and are valid as long as a view. Local. Throws as `fileShape` and
/// BlockField::view.
template <class Field>
auto fileSlabs(Field &field, const std::vector<index> &leading = {}) {
    using T = std::remove_reference_t<decltype(*field.view(0).data())>;
    std::vector<decltype(slabOf(std::declval<T *>(), {}, {}))> slabs;
    (void)fileShape(field);
    const bool outside = field.blockPattern()->componentsOutside() > 0;
    const Box &all = field.grid()->spaces().front().cells;
    for (int b = 0; b < field.blocks(); ++b) {
        const auto view = field.view(b);
        std::vector<index> start;
        std::vector<index> count;
        std::vector<index> strides;
        const auto components = [&] {
            if (field.components() == 1)
                return;
            start.push_back(0);
            count.push_back(field.components());
            strides.push_back(view.stride(view.dims()));
        };
        for (const index place : leading) {
            start.push_back(place);
            count.push_back(1);
            strides.push_back(0);
        }
        if (outside)
            components();
        for (int d = 0; d < view.dims(); ++d) {
            start.push_back(view.global(0, d) - all.lower[toSize(d)]);
            count.push_back(view.extent(d));
            strides.push_back(view.stride(d));
        }
        if (!outside)
            components();
        slabs.push_back(slabOf(view.data(), std::move(start), std::move(count), std::move(strides)));
    }
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

/// Reads a variable, each rank its own blocks; ghosts stay as they are. `options.picks` leaves the field's shape (see
/// `picksFor`). `mask`, if given, has the field's pattern and components; it gets 1 where a value is missing.
/// Collective.
/// @throws on all ranks: as NetcdfReader::read; StaleError; LayoutError if the shape is another.
template <class T>
void readNetcdf(const NetcdfReader &file, std::string_view name, BlockField<T> &field,
                const NetcdfReadOptions &options = {}, BlockField<std::uint8_t> *mask = nullptr) {
    std::vector<Slab> slabs;
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

/// Writes a field's cells to a variable declared with the field's shape, at the indices `leading`, such as a step of an
/// unlimited dimension. Collective. @throws on all ranks as NetcdfWriter::write; StaleError.
template <class T>
void writeNetcdf(NetcdfWriter &file, std::string_view name, const BlockField<T> &field,
                 const std::vector<index> &leading = {}) {
    std::vector<WrittenSlab> slabs;
    field.array().comm().guarded([&] { slabs = fileSlabs(field, leading); });
    file.write(name, slabs);
}

/// A field for a VTK file of its index space, of 1 to 3 dimensions, the last of which is VTK's x:
///
///     writeVtkImage(comm, "u.vtkhdf", {nx, ny, 1}, origin, spacing, std::array{vtkField(u)});
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

/// Cells as rows with ids, for checkpoints that any number of ranks and any blocks can read:
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
    std::vector<index> ids;       ///< the cell's number in C order in its index space, after all cells of spaces before
};

namespace Detail {

/// Calls `visit(cell, stride)` for this rank's cells, block by block: the first component and the distance to the next.
template <class Field, class Visit>
void forEachOwnCell(Field &field, Visit &&visit) {
    for (int b = 0; b < field.blocks(); ++b) {
        const auto view = field.view(b);
        for (index n = 0; n < view.size(); ++n) {
            index offset = 0;
            for (int d = 0; d < view.dims(); ++d)
                offset += view.indexOf(n, d) * view.stride(d);
            visit(view.data() + offset, view.stride(view.dims()));
        }
    }
}

} // namespace Detail

/// The ids of this rank's cells, block by block. Local.
template <class T>
std::vector<index> cellIds(const BlockField<T> &field) {
    std::vector<index> ids;
    const BlockGrid &grid = *field.grid();
    for (int b = 0; b < field.blocks(); ++b) {
        const Block &block = grid.block(field.block(b).block);
        index before = 0;
        for (int space = 0; space < block.space; ++space)
            before += grid.spaces()[toSize(space)].cells.size();
        const Box &all = grid.spaces()[toSize(block.space)].cells;
        forEachCell(field.block(b).cells, [&](const IndexVector &cell) {
            index number = 0;
            for (int d = 0; d < all.dims; ++d)
                number = number * all.extent(d) + cell[toSize(d)] - all.lower[toSize(d)];
            ids.push_back(before + number);
        });
    }
    return ids;
}

/// A copy of this rank's cells. Local. Throws as BlockField::view.
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

/// The inverse. Local. Throws LayoutError if the number of rows or components differs from the field's.
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
