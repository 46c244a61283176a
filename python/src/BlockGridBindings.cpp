#include "Arguments.hpp"
#include "BlockHandles.hpp"
#include "Errors.hpp"
#include "Integers.hpp"

#include "DNDS/Mpi/Reductions.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
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

GhostWidths ghostWidthsOf(nb::handle ghosts, int dims, std::string_view shape) {
    constexpr Words<GhostShape, 2> shapes{{{"box", GhostShape::Box}, {"star", GhostShape::Star}}};
    GhostWidths widths;
    widths.shape = chosen(shape, "shape of ghosts", shapes);
    index uniform = 0;
    if (ghosts.is_none() || nb::try_cast(ghosts, uniform, false)) {
        std::fill_n(widths.low.begin(), dims, uniform);
        widths.high = widths.low;
        return widths;
    }
    DNDS_CHECK(nb::isinstance<nb::sequence>(ghosts) && static_cast<int>(nb::len(ghosts)) == dims, ArgumentError,
               "ghosts are one integer for all {} dimensions, or a list of as many integers or pairs (low, high)",
               dims);
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

Centring centringOf(nb::handle given, int dims) {
    std::string word;
    if (nb::try_cast(given, word)) {
        if (word == "cells")
            return Centring::cells();
        if (word == "nodes")
            return Centring::nodes();
    } else if (int dim = 0; nb::isinstance<nb::sequence>(given) && nb::len(given) == 2 &&
                            nb::try_cast(nb::object(given[0]), word) && nb::try_cast(nb::object(given[1]), dim) &&
                            dim >= 0 && dim < dims) {
        if (word == "faces")
            return Centring::faces(dim);
        if (word == "edges")
            return Centring::edges(dim);
    }
    throw ArgumentError(fmt::format(R"(there is no centring {}: it is "cells", "nodes", ("faces", d) or ("edges", d), )"
                                    "of dimension d from 0 to {}",
                                    nb::repr(given).c_str(), dims - 1));
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

/// From (name, shape) or (name, shape, periodic).
std::vector<IndexSpace> spacesOf(nb::handle given) {
    std::vector<IndexSpace> spaces;
    for (const nb::handle entry : nb::borrow<nb::sequence>(given)) {
        DNDS_CHECK(nb::isinstance<nb::sequence>(entry) && (nb::len(entry) == 2 || nb::len(entry) == 3), ArgumentError,
                   "index space {} is not (name, shape) or (name, shape, periodic)", spaces.size());
        const nb::object none = nb::none();
        spaces.push_back(spaceOf(entry[1], nb::len(entry) == 3 ? nb::object(entry[2]) : none));
        DNDS_CHECK(nb::try_cast(nb::object(entry[0]), spaces.back().name), ArgumentError,
                   "the name of index space {} is no text", spaces.size() - 1);
    }
    DNDS_CHECK(!spaces.empty(), ArgumentError, "a grid needs an index space");
    return spaces;
}

int spaceNamed(const std::vector<IndexSpace> &spaces, nb::handle name) {
    std::string wanted;
    DNDS_CHECK(nb::try_cast(name, wanted), ArgumentError, "the name of an index space is no text");
    std::string names;
    for (std::size_t k = 0; k < spaces.size(); ++k) {
        if (spaces[k].name == wanted)
            return static_cast<int>(k);
        names += (k == 0 ? "" : ", ") + spaces[k].name;
    }
    throw ArgumentError(fmt::format("there is no index space '{}': there are {}", wanted, names));
}

/// From (space, first cell, end cell, rank).
std::vector<Block> blocksOf(nb::handle given, const std::vector<IndexSpace> &spaces) {
    std::vector<Block> blocks;
    const int dims = spaces.front().cells.dims;
    for (const nb::handle entry : nb::borrow<nb::sequence>(given)) {
        DNDS_CHECK(nb::isinstance<nb::sequence>(entry) && nb::len(entry) == 4, ArgumentError,
                   "block {} is not (space, first cell, the one behind the last, rank)", blocks.size());
        blocks.push_back({Box(dims, indicesOf(entry[1], dims, "the first cell of a block"),
                              indicesOf(entry[2], dims, "the end of a block")),
                          nb::cast<int>(entry[3]), spaceNamed(spaces, entry[0])});
    }
    return blocks;
}

/// From (space, begin, end, other, other_begin, transform).
std::vector<Connection> connectionsOf(nb::handle given, const std::vector<IndexSpace> &spaces) {
    std::vector<Connection> connections;
    const int dims = spaces.front().cells.dims;
    for (const nb::handle entry : nb::borrow<nb::sequence>(given)) {
        DNDS_CHECK(nb::isinstance<nb::sequence>(entry) && nb::len(entry) == 6, ArgumentError,
                   "connection {} is not (space, begin, end, other, other_begin, transform)", connections.size());
        Connection &made = connections.emplace_back();
        made.space = spaceNamed(spaces, entry[0]);
        made.begin = indicesOf(entry[1], dims, "the begin of a connection");
        made.end = indicesOf(entry[2], dims, "the end of a connection");
        made.other = spaceNamed(spaces, entry[3]);
        made.otherBegin = indicesOf(entry[4], dims, "the other begin of a connection");
        const IndexVector transform = indicesOf(entry[5], dims, "the transform of a connection");
        for (int d = 0; d < dims; ++d)
            made.transform[toSize(d)] = static_cast<int>(transform[toSize(d)]);
    }
    return connections;
}

GridHandle gridByHand(nb::handle spaces, nb::handle blocks, nb::handle connections, nb::handle comm) {
    GridHandle made{commOf(comm), nullptr};
    guarded(made.comm->view, [&] {
        const std::vector<IndexSpace> all = spacesOf(spaces);
        made.grid = BlockGrid::make(all, blocksOf(blocks, all), connectionsOf(connections, all));
    });
    return made;
}

GridHandle blocksOfSpaces(nb::handle spaces, nb::handle blockShape, nb::handle connections, nb::handle comm) {
    GridHandle made{commOf(comm), nullptr};
    std::vector<IndexSpace> all;
    std::vector<index> extents;
    std::vector<Connection> links;
    guarded(made.comm->view, [&] {
        all = spacesOf(spaces);
        extents = integersOrNone(blockShape, "the shape of blocks");
        links = connectionsOf(connections, all);
    });
    const nb::gil_scoped_release others;
    made.grid = BlockGrid::blocksOf(made.comm->view, all, extents, links);
    return made;
}

GridHandle rebalanced(const GridHandle &self, const std::vector<real> &costs, real imbalance) {
    return {self.comm, self.grid->rebalanced(self.comm->view, costs, imbalance)};
}

nb::list spaceList(const GridHandle &self) {
    nb::list list;
    for (const IndexSpace &space : self.grid->spaces()) {
        nb::list periodic;
        for (int d = 0; d < space.cells.dims; ++d)
            periodic.append(space.periodic[toSize(d)]);
        list.append(nb::make_tuple(space.name, tupleOf(space.cells.upper, space.cells.dims), nb::tuple(periodic)));
    }
    return list;
}

nb::list blockList(const GridHandle &self) {
    nb::list list;
    for (const Block &block : self.grid->blocks())
        list.append(nb::make_tuple(tupleOf(block.cells.lower, block.cells.dims),
                                   tupleOf(block.cells.upper, block.cells.dims), block.rank));
    return list;
}

/// The policy with its communicator.
struct RebalancingHandle {
    CommPtr comm;
    Rebalancing policy;
};

void bindRebalancing(nb::module_ &module) {
    nb::class_<GridHandle> grids = nb::borrow<nb::class_<GridHandle>>(module.attr("BlockGrid"));
    grids.def("rebalanced", &rebalanced, "costs"_a, "imbalance"_a = 0.1, nb::call_guard<nb::gil_scoped_release>(),
              nb::sig("def rebalanced(self, costs: collections.abc.Sequence[float], imbalance: float = 0.1) -> "
                      "BlockGrid"),
              R"(The same blocks on other ranks, so that each has a nearly equal share of the costs. Collective.

`costs` are those of this rank's blocks, in their order: seconds, cells, any unit. The busiest rank gets at most
(1 + `imbalance`) times the mean where blocks are fine enough; few blocks move. Fields follow by their `moved`. Raises
ArgumentError on all ranks.)");
    nb::class_<RebalancingHandle>(module, "Rebalancing", R"(When moving work to other ranks pays.

    policy = dnds.Rebalancing(0.1)
    ...
    if policy.is_due(seconds):                # of this rank's own computing in this step
        grid = u.grid.rebalanced(costs)
        u = u.moved(grid)
        policy.moved(seconds_that_it_took)
)")
        .def(
            "__init__",
            [](RebalancingHandle *self, real threshold, nb::handle comm) {
                new (self) RebalancingHandle{commOf(comm), Rebalancing(threshold)};
            },
            "threshold"_a = 0.1, nb::kw_only(), "comm"_a.none() = nb::none(),
            nb::sig("def __init__(self, threshold: float = 0.1, *, comm: mpi4py.MPI.Comm | None = None) -> None"),
            "Less than this share above the mean is left alone. Raises ArgumentError unless it is 0 or more.")
        .def(
            "is_due", [](RebalancingHandle &self, real seconds) { return self.policy.isDue(self.comm->view, seconds); },
            "seconds"_a, nb::call_guard<nb::gil_scoped_release>(),
            "Counts a step of `seconds` on this rank: whether what the busiest rank lost since the last move exceeds "
            "that move's cost. The same answer on all ranks. Collective.")
        .def(
            "moved", [](RebalancingHandle &self, real seconds) { self.policy.moved(self.comm->view, seconds); },
            "seconds"_a, nb::call_guard<nb::gil_scoped_release>(),
            "Reports what a move took on this rank. Collective.");
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
        .def_static(
            "make", &gridByHand, "spaces"_a, "blocks"_a, "connections"_a = nb::make_tuple(), nb::kw_only(),
            "comm"_a.none() = nb::none(),
            nb::sig("def make(spaces: collections.abc.Sequence[tuple], blocks: collections.abc.Sequence[tuple], "
                    "connections: collections.abc.Sequence[tuple] = (), *, comm: mpi4py.MPI.Comm | None = None) -> "
                    "BlockGrid"),
            R"(Any boxes in any index spaces on any ranks; all ranks give the same. Collective.

Spaces are `(name, shape)` or `(name, shape, periodic)`, blocks `(space, first cell, the one behind the last, rank)`,
connections `dnds.Connection(space, begin, end, other, other_begin, transform)`: faces that touch, in vertices counted
from 0, as a CGNS 1-to-1 connection. Raises ArgumentError on all ranks, naming the entry.)")
        .def_static("blocks_of_spaces", &blocksOfSpaces, "spaces"_a, "block_shape"_a,
                    "connections"_a = nb::make_tuple(), nb::kw_only(), "comm"_a.none() = nb::none(),
                    nb::sig("def blocks_of_spaces(spaces: collections.abc.Sequence[tuple], block_shape: ArrayLike, "
                            "connections: collections.abc.Sequence[tuple] = (), *, "
                            "comm: mpi4py.MPI.Comm | None = None) -> BlockGrid"),
                    "Cuts index spaces into blocks of this shape, which ranks share. Entries as for `make`. "
                    "Collective.")
        .def_prop_ro(
            "dims", [](const GridHandle &self) { return self.grid->dims(); }, "The number of dimensions.")
        .def_prop_ro("spaces", &spaceList,
                     nb::sig("def spaces(self) -> list[tuple[str, tuple[int, ...], tuple[bool, ...]]]"),
                     "All index spaces: name, cells a dimension, which dimensions wrap around.")
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
                const int block = self.grid->blockOf(indicesOf(cell, self.grid->dims(), "a cell"));
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
    bindRebalancing(module);
}

} // namespace DNDS::Python
