/// @file BlockHandles.hpp
/// @brief Grids of blocks and fields on them, for Python.
#pragma once

#include "AnyArray.hpp"
#include "Comm.hpp"

#include "DNDS/Blocks/BlockFile.hpp"
#include "DNDS/Sparse/SparsePattern.hpp"

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace DNDS::Python {

/// A grid and the communicator whose ranks have its blocks.
struct GridHandle {
    using SparsePatterns = std::vector<std::pair<GhostWidths, std::shared_ptr<const SparsePattern>>>;

    CommPtr comm;
    std::shared_ptr<const BlockGrid> grid;
    std::shared_ptr<SparsePatterns> sparse = std::make_shared<SparsePatterns>(); ///< shared by fields, by their ghosts
};

/// A BlockField of any type, as Python uses it.
class AnyBlockField {
  public:
    AnyBlockField() = default;
    AnyBlockField(const AnyBlockField &) = delete;
    AnyBlockField &operator=(const AnyBlockField &) = delete;
    virtual ~AnyBlockField() = default;

    virtual BlockFieldCore &core() = 0;
    virtual ArrayBase &array() = 0;
    /// As the functions of BlockFile.hpp. Local.
    virtual std::vector<index> shapeInFile() = 0;
    /// Collective.
    virtual void read(const NetcdfReader &file, const std::string &variable, const NetcdfReadOptions &options) = 0;
    virtual void write(NetcdfWriter &file, const std::string &variable, const std::vector<index> &leading) = 0;
    virtual std::shared_ptr<AnyBlockField> moved(const std::shared_ptr<const BlockGrid> &to) = 0;
};

/// Calls `function(field)` with the BlockField that it is.
template <class Function>
auto withField(AnyBlockField &field, Function &&function) {
    return withType(field.array().shape().kind, RowKind::Fixed, [&](auto element, auto) {
        return function(static_cast<BlockField<decltype(element)> &>(field.core()));
    });
}

/// Cells or blocks as rows of a checkpoint: see CellRows and SparseRows.
class AnyBlockRows {
  public:
    AnyBlockRows() = default;
    AnyBlockRows(const AnyBlockRows &) = delete;
    AnyBlockRows &operator=(const AnyBlockRows &) = delete;
    virtual ~AnyBlockRows() = default;

    virtual ArrayBase &cells() = 0;
    virtual const std::vector<index> &ids() const = 0;
    /// Gives the field what the rows say. Local; see `setCells` and `setBlocks`.
    virtual void restore() = 0;
};

/// A field, and the grid that Python shows of it.
struct BlockFieldHandle {
    GridHandle grid;
    std::shared_ptr<AnyBlockField> field;
    bool pushChecked = false; ///< until then ranks check the arguments of pushes together

    bool inFlight() const { return field->core().exchangeInFlight(); }
    /// Throws StateError while an exchange in flight forbids `what`.
    void requireLanded(const char *what) const;
    /// Ends what was started, if anything. Local.
    void finish();
};

/// A copy between two fields, which Python keeps alive.
struct BlockCopyHandle {
    BlockFieldHandle *from;
    BlockFieldHandle *to;
    std::shared_ptr<Exchange> copy;

    /// Copies. Collective. Throws StateError while ghosts of either field are exchanged.
    void run();
};

/// The BlockField that Python gives, itself or as an NdArray; null for anything else. Local.
BlockFieldHandle *blockFieldOf(nanobind::handle given);
/// A copy of the cells. Local. Throws as `cellRows`.
std::unique_ptr<AnyBlockRows> cellRowsOf(AnyBlockField &field);

/// Makes a field of the type of `kind`. Collective.
std::shared_ptr<AnyBlockField> makeBlockField(ElementKind kind, const std::string &name, const GridHandle &grid,
                                              const BlockFieldOptions &options);

/// Ghost widths of `dims` dimensions: None, one integer for all, or a list of integers and pairs (low, high); and their
/// shape, "box" or "star". Local. Throws ArgumentError for anything else.
GhostWidths ghostWidthsOf(nanobind::handle ghosts, int dims, std::string_view shape = "box");
/// "cells", "nodes", ("faces", 0), ("edges", 1). Throws ArgumentError for anything else.
Centring centringOf(nanobind::handle given, int dims);
/// A tuple of as many numbers as there are dimensions, and back. Local. `indicesOf` throws ArgumentError.
nanobind::tuple tupleOf(const IndexVector &numbers, int dims);
IndexVector indicesOf(nanobind::handle numbers, int dims, const char *what);
/// (first, end) of a box.
nanobind::tuple boxOf(const Box &box);

/// Grids, and the policy of when to move their blocks.
void bindBlockGrid(nanobind::module_ &module);
void bindBlockField(nanobind::module_ &module);
/// Fields as vectors, and rules for their ghosts; after them.
void bindBlockVectors(nanobind::module_ &module);
void bindBlockBoundary(nanobind::module_ &module);
/// Copies between fields; after them.
void bindBlockCopy(nanobind::module_ &module);
/// NetCDF files; after the others.
void bindBlockFiles(nanobind::module_ &module);

} // namespace DNDS::Python
