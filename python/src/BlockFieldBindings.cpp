#include "AnyArray.hpp"
#include "Arguments.hpp"
#include "BlockHandles.hpp"
#include "Errors.hpp"
#include "Exchanger.hpp"
#include "NumpyViews.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <type_traits>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Release = nb::call_guard<nb::gil_scoped_release>;

constexpr Words<ComponentOrder, 2> orders{{{"inside", ComponentOrder::Inside}, {"outside", ComponentOrder::Outside}}};

template <class T>
class CellRowsOf final : public AnyBlockRows {
  public:
    explicit CellRowsOf(BlockField<T> &field) : field_(field), rows_(cellRows(std::as_const(field))) {}
    ArrayBase &cells() override { return rows_.values; }
    const std::vector<index> &ids() const override { return rows_.ids; }
    void restore() override { setCells(field_, rows_); }

  private:
    BlockField<T> &field_;
    CellRows<T> rows_;
};

template <class T>
class BlockFieldOf final : public AnyBlockField {
  public:
    BlockFieldOf(const std::string &name, const GridHandle &grid, const BlockFieldOptions &options)
        : field_(name, grid.comm->view, grid.grid, options) {}
    explicit BlockFieldOf(BlockField<T> field) : field_(std::move(field)) {}
    BlockFieldCore &core() override { return field_; }
    ArrayBase &array() override { return field_.array(); }
    std::vector<index> shapeInFile() override { return fileShape(field_); }
    void read(const NetcdfReader &file, const std::string &variable, const NetcdfReadOptions &options) override {
        readNetcdf(file, variable, field_, options);
    }
    void write(NetcdfWriter &file, const std::string &variable, const std::vector<index> &leading) override {
        writeNetcdf(file, variable, std::as_const(field_), leading);
    }
    std::shared_ptr<AnyBlockField> moved(const std::shared_ptr<const BlockGrid> &to) override {
        return std::make_shared<BlockFieldOf>(field_.moved(to));
    }

  private:
    BlockField<T> field_;
};

} // namespace

BlockFieldHandle *blockFieldOf(nb::handle given) {
    // What `field` raises stays: an NdArray that is not decomposed says so.
    const nb::object field = nb::hasattr(given.type(), "field") ? nb::object(given.attr("field")) : nb::borrow(given);
    for (const nb::handle candidate : {given, nb::handle(field)})
        if (nb::isinstance<BlockFieldHandle>(candidate))
            return &nb::cast<BlockFieldHandle &>(candidate);
    return nullptr;
}

std::unique_ptr<AnyBlockRows> cellRowsOf(AnyBlockField &field) {
    return withField(field, [](auto &typed) -> std::unique_ptr<AnyBlockRows> {
        return std::make_unique<CellRowsOf<typename std::decay_t<decltype(typed)>::Element>>(typed);
    });
}

nb::tuple boxOf(const Box &box) { return nb::make_tuple(tupleOf(box.lower, box.dims), tupleOf(box.upper, box.dims)); }

std::shared_ptr<AnyBlockField> makeBlockField(ElementKind kind, const std::string &name, const GridHandle &grid,
                                              const BlockFieldOptions &options) {
    return withType(kind, RowKind::Fixed, [&](auto element, auto) -> std::shared_ptr<AnyBlockField> {
        return std::make_shared<BlockFieldOf<decltype(element)>>(name, grid, options);
    });
}

void BlockFieldHandle::requireLanded(const char *what) const {
    DNDS_CHECK(!inFlight(), StateError,
               "'{}' cannot {} while its ghosts are exchanged: call finish_exchange_ghosts first", field->core().name(),
               what);
}

void BlockFieldHandle::finish() {
    if (inFlight()) // else nothing was started, or `recover` has given it up
        field->core().finishExchangeGhosts();
}

namespace {

/// An exchange of ghosts in flight as a context manager.
struct GhostFlight {
    BlockFieldHandle *field; ///< kept alive by Python
};

BlockFieldHandle makeHandle(const GridHandle &grid, rowsize components, nb::handle dtype, nb::handle ghosts,
                            std::string_view shape, std::string_view order, nb::handle centring,
                            const std::string &name) {
    BlockFieldHandle made;
    made.grid = grid;
    BlockFieldOptions options;
    ElementKind kind{};
    guarded(grid.comm->view, [&] {
        kind = elementKindOf(dtype);
        const int dims = grid.grid->dims();
        options = {ghostWidthsOf(ghosts, dims, shape), components, chosen(order, "order of components", orders),
                   centringOf(centring, dims)};
    });
    const nb::gil_scoped_release others;
    made.field = makeBlockField(kind, name, grid, options);
    return made;
}

const BlockMemory &memoryOf(const BlockFieldHandle &self, int local) {
    const auto blocks = self.field->core().blockPattern()->blocks();
    DNDS_CHECK(local >= 0 && toSize(local) < blocks.size(), IndexError, "'{}' has no block {} here: it has {}",
               self.field->core().name(), local, blocks.size());
    return blocks[toSize(local)];
}

/// The cells of a block, with or without ghosts: [cells..., components], or [components, cells...] for components
/// outside; without that dimension for one component.
nb::object viewOf(const BlockFieldHandle &self, int local, bool ghosts) {
    if (ghosts)
        self.requireLanded("show its ghosts");
    const BlockMemory &memory = memoryOf(self, local);
    ArrayBase &array = self.field->array();
    std::shared_ptr<const void> hold;
    const bool writable = !self.inFlight();
    Block view = blockOf(array, writable, hold);
    const index width = array.width();
    const index bytes = dtypeOf(view.kind).bits / 8;
    const rowsize components = self.field->core().components();
    const bool outside = self.field->core().blockPattern()->componentsOutside() > 0;
    const int dims = memory.cells.dims;
    index first = memory.firstRow * width;
    index stride = width;
    view.shape.assign(toSize(dims), 0);
    view.strides.assign(toSize(dims), 0);
    for (int d = dims - 1; d >= 0; --d) {
        const std::size_t k = toSize(d);
        view.shape[k] = toSize(ghosts ? memory.extent.extent(d) : memory.cells.extent(d));
        view.strides[k] = stride;
        if (!ghosts)
            first += stride * (memory.cells.lower[k] - memory.extent.lower[k]);
        stride *= memory.extent.extent(d);
    }
    if (components > 1) {
        view.shape.insert(outside ? view.shape.begin() : view.shape.end(), toSize(components));
        view.strides.insert(outside ? view.strides.begin() : view.strides.end(), outside ? memory.extent.size() : 1);
    }
    view.data = static_cast<std::byte *>(view.data) + first * bytes;
    return numpyOf(view, std::move(hold), writable);
}

nb::list ownedOf(const BlockFieldHandle &self, int local) {
    (void)memoryOf(self, local);
    nb::list boxes;
    for (const Box &box : self.field->core().blockPattern()->owned(local))
        boxes.append(boxOf(box));
    return boxes;
}

nb::tuple nodalOf(const BlockFieldHandle &self) {
    nb::list nodal;
    for (int d = 0; d < self.grid.grid->dims(); ++d)
        nodal.append(self.field->core().blockPattern()->centring().nodal[toSize(d)]);
    return nb::tuple(nodal);
}

/// As `NdArray::ownerOf`.
int ownerOf(const BlockFieldHandle &self, nb::handle point) {
    const BlockGrid &grid = *self.grid.grid;
    const int dims = grid.dims();
    const Centring &centring = self.field->core().blockPattern()->centring();
    const IndexVector at = indicesOf(point, dims, "a point");
    Box one(dims, at, at);
    for (int d = 0; d < dims; ++d)
        ++one.upper[toSize(d)];
    if (!centring.pointsOf(grid.spaces().front().cells).contains(one))
        return -1;
    const auto owners = grid.sourcesOf(0, one, centring);
    return owners.empty() ? -1 : grid.block(owners.front().source).rank;
}

void start(BlockFieldHandle &self) {
    self.requireLanded("exchange ghosts");
    self.field->core().startExchangeGhosts();
}

void push(BlockFieldHandle &self, std::string_view word) {
    PushOp op{};
    const auto check = [&] {
        op = chosen(word, "push operation", pushOps);
        self.requireLanded("push ghosts");
    };
    self.pushChecked ? check() : guarded(self.grid.comm->view, check);
    self.pushChecked = true; // on all ranks, whatever becomes of the push
    const nb::gil_scoped_release others;
    self.field->core().pushGhosts(op);
}

template <class... Extra>
void bindExchangesAndMoves(nb::class_<BlockFieldHandle, Extra...> &type) {
    type.def(
            "exchange_ghosts",
            [](BlockFieldHandle &self) {
                start(self);
                self.finish();
            },
            Release(), R"(Refreshes all ghosts that stand for cells; others stay as they are. Collective.

Moves the copies of the side that the field was last brought to by `to_device` or `to_host`.)")
        .def(
            "start_exchange_ghosts",
            [](BlockFieldHandle &self) {
                start(self);
                return GhostFlight{&self};
            },
            Release(), nb::keep_alive<0, 1>(),
            R"(Starts the exchange: a context manager whose end finishes it, or call `finish_exchange_ghosts`. Until then cells
are read-only, and views with ghosts cannot be had. Collective the first time on each side.)")
        .def("finish_exchange_ghosts", &BlockFieldHandle::finish, Release(), "Completes what was started.")
        .def("push_ghosts", &push, "op"_a = "sum",
             R"(Adds what was deposited into ghosts to the cells that they stand for, and zeroes them. Collective.

"min" and "max" take the least or the largest, "replace" the last; ghosts then keep their values. Ghosts that stand for no
cell take no part. Contributions are applied by the number of their block: the same bits on any number of ranks.)")
        .def(
            "describe_exchange", [](BlockFieldHandle &self) { return self.field->core().describeExchange(); },
            "A table of how ghosts reach this rank, and why. Raises StateError before the first exchange. Local.")
        .def(
            "to_device",
            [](BlockFieldHandle &self) {
                self.requireLanded("be copied to the device");
                self.field->core().toDevice();
            },
            Release(), "Makes the device side current, and moves exchanges there. Raises NotBuiltError without one.")
        .def(
            "to_host",
            [](BlockFieldHandle &self) {
                self.requireLanded("be copied to the host");
                self.field->core().toHost();
            },
            Release(), "Makes the host side current, and moves exchanges there.")
        .def_prop_ro(
            "on_device", [](BlockFieldHandle &self) { return self.field->core().side() == MemorySpace::Device; },
            "Whether exchanges move the device's copies.")
        .def(
            "moved",
            [](const BlockFieldHandle &self, const GridHandle &to) {
                guarded(self.grid.comm->view, [&] { self.requireLanded("be moved"); });
                const nb::gil_scoped_release others;
                return BlockFieldHandle{to, self.field->moved(to.grid)};
            },
            "grid"_a, nb::sig("def moved(self, grid: BlockGrid) -> BlockField"),
            R"(The same field on the blocks of a grid of `rebalanced`; this one is unchanged. Collective.

    grid = u.grid.rebalanced(seconds)
    u = u.moved(grid)
)");
}

template <class... Extra>
void bindPlaces(nb::class_<BlockFieldHandle, Extra...> &type) {
    type.def(
            "number", [](const BlockFieldHandle &self, int local) { return memoryOf(self, local).block; },
            "block"_a = 0, "The number in the grid of a block of this rank. Local.")
        .def(
            "box",
            [](const BlockFieldHandle &self, int local, bool ghosts) {
                const BlockMemory &memory = memoryOf(self, local);
                return boxOf(ghosts ? memory.extent : memory.cells);
            },
            "block"_a = 0, nb::kw_only(), "ghosts"_a = false,
            nb::sig(
                "def box(self, block: int = 0, *, ghosts: bool = False) -> tuple[tuple[int, ...], tuple[int, ...]]"),
            "The first cell of a block and the one behind its last, in the grid's numbers. Local.")
        .def(
            "owned", &ownedOf, "block"_a = 0,
            nb::sig("def owned(self, block: int = 0) -> list[tuple[tuple[int, ...], tuple[int, ...]]]"),
            R"(The points of `box` that a block owns, as boxes: the rest are nodes, faces or edges that it shares, of which an
exchange refreshes its copies. Of cells all of them. Local.)")
        .def("owner_of", &ownerOf, "point"_a, nb::sig("def owner_of(self, point: ArrayLike) -> int"),
             "The rank that owns a cell or point of the first index space, or -1 outside of it. Local.")
        .def_prop_ro("nodal", &nodalOf, nb::sig("def nodal(self) -> tuple[bool, ...]"),
                     "In which dimensions values are at nodes, not at the middles of cells.")
        .def_prop_ro(
            "global_shape",
            [](const BlockFieldHandle &self) {
                const Box all = self.field->core().blockPattern()->filePoints();
                return tupleOf(all.upper, all.dims);
            },
            nb::sig("def global_shape(self) -> tuple[int, ...]"),
            "Cells or points a dimension of the first index space, of all ranks; a period repeats no node.");
}

} // namespace

void bindBlockField(nb::module_ &module) {
    nb::class_<GhostFlight>(module, "GhostFlight", R"(An exchange of ghosts in flight, from `start_exchange_ghosts`.

The end of the block finishes it, also for an exception, so that no other rank is left waiting.)")
        .def(
            "__enter__", [](nb::object self) { return self; }, nb::sig("def __enter__(self) -> GhostFlight"))
        .def(
            "__exit__",
            [](GhostFlight &self, nb::handle, nb::handle, nb::handle) {
                const nb::gil_scoped_release others;
                self.field->finish();
            },
            "type"_a.none(), "value"_a.none(), "traceback"_a.none(),
            nb::sig("def __exit__(self, type: object, value: object, traceback: object) -> None"));
    nb::class_<BlockFieldHandle> type(module, "BlockField",
                                      R"(A field on the blocks of a grid, with ghosts inside each block's memory.

    grid = dnds.BlockGrid.blocks_of((64, 64), (16, 16), periodic=(True, True))
    u = dnds.BlockField(grid, ghosts=1)
    u.exchange_ghosts()
    for b in range(len(u)):
        cells, all = u.view(b), u.view(b, ghosts=True)    # NumPy arrays, no copies
)");
    type.def(
            "__init__",
            [](BlockFieldHandle *self, const GridHandle &grid, rowsize components, nb::handle dtype, nb::handle ghosts,
               std::string_view shape, std::string_view order, nb::handle centring, const std::string &name) {
                new (self) BlockFieldHandle(makeHandle(grid, components, dtype, ghosts, shape, order, centring, name));
            },
            "grid"_a, "components"_a = 1, "dtype"_a = "float64", nb::kw_only(), "ghosts"_a.none() = nb::none(),
            "ghost_shape"_a = "box", "order"_a = "inside", "centring"_a = "cells", "name"_a = "field",
            nb::sig("def __init__(self, grid: BlockGrid, components: int = 1, dtype: DTypeLike = 'float64', *, "
                    "ghosts: object = None, ghost_shape: str = 'box', order: str = 'inside', "
                    "centring: str | tuple[str, int] = 'cells', name: str = 'field') -> None"),
            R"(Zeros on all cells. Collective over the grid's communicator.

`ghosts` is one width for all dimensions, or a list of widths or pairs (low, high). Exchanges fill all of them ("box"),
or those beyond the block in one dimension only ("star"), in fewer messages: corners stay as they are. Components are
"inside" the cells (the last dimension of views) or "outside" (the first); one component has no dimension. `centring`:
values are at the middles of "cells", at "nodes", on ("faces", d), normal to dimension d, or on ("edges", d), along it.
Node p is the lower end of cell p, so that views of n cells have n + 1 nodes. What is wrong on one rank raises on all.)")
        .def(
            "__len__", [](const BlockFieldHandle &self) { return self.field->core().blockPattern()->blocks().size(); },
            "Blocks of this rank.")
        .def("view", &viewOf, "block"_a = 0, nb::kw_only(), "ghosts"_a = false,
             nb::sig("def view(self, block: int = 0, *, ghosts: bool = False) -> NDArray"),
             R"(One block's cells, or cells and ghosts, without copying. The memory lives as long as the view.

Without ghosts it is read-only while an exchange is in flight; with them, StateError. Local.)")
        .def_prop_ro(
            "grid", [](const BlockFieldHandle &self) { return self.grid; }, "The grid.")
        .def_prop_ro(
            "components", [](const BlockFieldHandle &self) { return self.field->core().components(); },
            "Numbers of each cell.")
        .def_prop_ro(
            "dtype",
            [](const BlockFieldHandle &self) {
                return nb::module_::import_("numpy").attr("dtype")(
                    std::string(elementKindName(self.field->array().shape().kind)));
            },
            nb::sig("def dtype(self) -> DType"), "The NumPy type of elements.")
        .def_prop_ro(
            "name", [](const BlockFieldHandle &self) { return self.field->core().name(); }, "The name in messages.")
        .def("__repr__", [](const BlockFieldHandle &self) {
            return fmt::format("<dnds.BlockField '{}': {} blocks here, {} x {}>", self.field->core().name(),
                               self.field->core().blockPattern()->blocks().size(), self.field->core().components(),
                               elementKindName(self.field->array().shape().kind));
        });
    bindPlaces(type);
    bindExchangesAndMoves(type);
}

} // namespace DNDS::Python
