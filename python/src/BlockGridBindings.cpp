#include "BlockHandles.hpp"
#include "Errors.hpp"
#include "Integers.hpp"

#include <nanobind/stl/string.h>

#include <utility>
#include <vector>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

nb::tuple tupleOf(const IndexVector &numbers, int dims) {
    nb::list list;
    for (int d = 0; d < dims; ++d)
        list.append(numbers[toSize(d)]);
    return nb::tuple(list);
}

IndexVector indicesOf(nb::handle numbers, int dims, const char *what) {
    const Integers list(numbers, what);
    DNDS_CHECK(static_cast<int>(list.span().size()) == dims, ArgumentError,
               "{} numbers are given as {}: the grid has {} dimensions", list.span().size(), what, dims);
    return indexVector(list.span());
}

GhostWidths ghostWidthsOf(nb::handle ghosts, int dims) {
    index uniform = 0;
    if (ghosts.is_none() || nb::try_cast(ghosts, uniform, false))
        return GhostWidths::uniform(dims, uniform);
    DNDS_CHECK(nb::isinstance<nb::sequence>(ghosts) && static_cast<int>(nb::len(ghosts)) == dims, ArgumentError,
               "ghosts are one integer for all {} dimensions, or a list of as many integers or pairs (low, high)",
               dims);
    GhostWidths widths;
    for (int d = 0; d < dims; ++d) {
        const nb::object side = ghosts[d];
        std::pair<index, index> both;
        if (nb::try_cast(side, both.first, false))
            both.second = both.first;
        else
            both = {nb::cast<index>(side[0]), nb::cast<index>(side[1])};
        widths.low[toSize(d)] = both.first;
        widths.high[toSize(d)] = both.second;
    }
    return widths;
}

namespace {

std::array<bool, maxBlockDims> periodicOf(nb::handle periodic, int dims) {
    std::array<bool, maxBlockDims> result{};
    if (periodic.is_none())
        return result;
    DNDS_CHECK(nb::isinstance<nb::sequence>(periodic) && static_cast<int>(nb::len(periodic)) == dims, ArgumentError,
               "periodic is a list of {} values, one a dimension", dims);
    for (int d = 0; d < dims; ++d)
        result[toSize(d)] = nb::cast<bool>(nb::bool_(periodic[d]));
    return result;
}

IndexSpace spaceOf(nb::handle shape, nb::handle periodic) {
    const Integers cells(shape, "the shape");
    IndexSpace space;
    space.name = "grid";
    space.cells = Box::ofShape(cells.span());
    space.periodic = periodicOf(periodic, space.cells.dims);
    return space;
}

GridHandle cutGrid(nb::handle shape, nb::handle periodic, nb::handle parts, int ranks, nb::handle ghosts,
                   std::size_t cellBytes, nb::handle comm) {
    GridHandle made{commOf(comm), nullptr};
    IndexSpace space;
    CutOptions options;
    guarded(made.comm->view, [&] {
        space = spaceOf(shape, periodic);
        options.ranks = ranks;
        options.parts = integersOrNone(parts, "parts");
        options.cellBytes = cellBytes;
        if (!ghosts.is_none())
            options.ghosts = ghostWidthsOf(ghosts, space.cells.dims);
    });
    const nb::gil_scoped_release others;
    const std::span<const index> extents(space.cells.upper.data(), toSize(space.cells.dims));
    made.grid = BlockGrid::cut(made.comm->view, extents, space.periodic, options);
    return made;
}

GridHandle gridOfBlocks(nb::handle shape, nb::handle blockShape, nb::handle periodic, nb::handle comm) {
    GridHandle made{commOf(comm), nullptr};
    IndexSpace space;
    std::vector<index> extents;
    guarded(made.comm->view, [&] {
        space = spaceOf(shape, periodic);
        extents = integersOrNone(blockShape, "the shape of blocks");
    });
    const nb::gil_scoped_release others;
    made.grid = BlockGrid::blocksOf(made.comm->view, space, extents);
    return made;
}

nb::list blockList(const GridHandle &self) {
    nb::list list;
    for (const Block &block : self.grid->blocks())
        list.append(nb::make_tuple(tupleOf(block.cells.lower, block.cells.dims),
                                   tupleOf(block.cells.upper, block.cells.dims), block.rank));
    return list;
}

} // namespace

void bindBlockGrid(nb::module_ &module) {
    nb::class_<GridHandle>(module, "BlockGrid", R"(Boxes of cells, and which rank has which. All ranks know all of it.

Made by `cut` (one block a rank) or `blocks_of` (many).)")
        .def_static(
            "cut", &cutGrid, "shape"_a, nb::kw_only(), "periodic"_a.none() = nb::none(), "parts"_a.none() = nb::none(),
            "ranks"_a = 0, "ghosts"_a.none() = nb::none(), "cell_bytes"_a = sizeof(real), "comm"_a.none() = nb::none(),
            nb::sig("def cut(shape: ArrayLike, *, periodic: collections.abc.Sequence[bool] | None = None, "
                    "parts: ArrayLike | None = None, ranks: int = 0, ghosts: object = None, cell_bytes: int = 8, "
                    "comm: mpi4py.MPI.Comm | None = None) -> BlockGrid"),
            R"(Cuts a box of cells into one block a rank, the slowest dimension first. Collective.

`parts` a dimension: None is best, 0 or 1 not cut, -1 best for this one. `ranks`: only the first so many get cells.
`ghosts` and `cell_bytes` weigh the faces, where the cut is chosen. Raises ArgumentError on all ranks.)")
        .def_static("blocks_of", &gridOfBlocks, "shape"_a, "block_shape"_a, nb::kw_only(),
                    "periodic"_a.none() = nb::none(), "comm"_a.none() = nb::none(),
                    nb::sig("def blocks_of(shape: ArrayLike, block_shape: ArrayLike, *, "
                            "periodic: collections.abc.Sequence[bool] | None = None, "
                            "comm: mpi4py.MPI.Comm | None = None) -> BlockGrid"),
                    "Cuts a box of cells into blocks of this shape, which ranks share along a space-filling curve. "
                    "Collective.")
        .def_prop_ro(
            "dims", [](const GridHandle &self) { return self.grid->dims(); }, "The number of dimensions.")
        .def_prop_ro(
            "shape",
            [](const GridHandle &self) { return tupleOf(self.grid->spaces().front().cells.upper, self.grid->dims()); },
            nb::sig("def shape(self) -> tuple[int, ...]"), "Cells a dimension, of all ranks.")
        .def_prop_ro(
            "periodic",
            [](const GridHandle &self) {
                nb::list list;
                for (int d = 0; d < self.grid->dims(); ++d)
                    list.append(self.grid->spaces().front().periodic[toSize(d)]);
                return nb::tuple(list);
            },
            nb::sig("def periodic(self) -> tuple[bool, ...]"), "Which dimensions wrap around.")
        .def_prop_ro("blocks", &blockList,
                     nb::sig("def blocks(self) -> list[tuple[tuple[int, ...], tuple[int, ...], int]]"),
                     "All blocks of all ranks: first cell, the one behind the last, rank.")
        .def(
            "owner_of",
            [](const GridHandle &self, nb::handle cell) {
                const int block = self.grid->ownerOf(indicesOf(cell, self.grid->dims(), "a cell"));
                return block < 0 ? -1 : self.grid->block(block).rank;
            },
            "cell"_a, nb::sig("def owner_of(self, cell: ArrayLike) -> int"),
            "The rank that has a cell, or -1 outside of the grid. Local.")
        .def_prop_ro(
            "comm", [](const GridHandle &self) { return self.comm->python; },
            nb::sig("def comm(self) -> mpi4py.MPI.Comm"), "The communicator.")
        .def(
            "describe", [](const GridHandle &self) { return self.grid->describe(); },
            "The cut, why it was chosen, and what each rank has. Local.")
        .def("__repr__", [](const GridHandle &self) {
            return fmt::format("<dnds.BlockGrid: {} in {} blocks>", toString(self.grid->spaces().front().cells),
                               self.grid->blocks().size());
        });
}

} // namespace DNDS::Python
