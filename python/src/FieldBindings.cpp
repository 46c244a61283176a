#include "Field.hpp"

#include "Errors.hpp"
#include "Integers.hpp"
#include "NumpyViews.hpp"

#include "DNDS/Array/ArrayTransformer.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <chrono>
#include <string_view>
#include <utility>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/// For calls that may take long or wait for other ranks.
using Release = nb::call_guard<nb::gil_scoped_release>;

/// The exchanges of a field. Throws StateError that names it before there are ghosts.
Exchanger &exchangerOf(Field &self) {
    (void)self.pattern();
    return self.exchanger();
}

std::string describe(const Field &self) {
    constexpr std::array<std::string_view, 3> states{" (never pulled)", " (older than the owned rows)", " (current)"};
    const ArrayBase &rows = self.father();
    const ArrayBase &ghosts = self.son();
    const std::string width = self.scalar() || rows.width() < 0 ? "" : fmt::format(" x {}", rows.width());
    return fmt::format("<dnds.Field '{}' on rank {} of {}: {} owned rows, {} ghosts{}, {}{} {}>", rows.name(),
                       self.comm()->view.rank(), self.comm()->view.size(), rows.size(), ghosts.size(),
                       ghosts.size() > 0 ? states[static_cast<std::size_t>(ghostStateOf(rows, ghosts))] : "",
                       elementKindName(rows.shape().kind), width, rowKindName(rows.shape().layout));
}

nb::list pathsOf(Field &self) {
    const std::vector<PeerPath> paths = [&] {
        const nb::gil_scoped_release others;
        return exchangerOf(self).pullExchange().paths();
    }();
    nb::list list;
    for (const PeerPath &path : paths) {
        nb::dict entry;
        entry["peer"] = path.peer;
        entry["transport"] = path.name;
        entry["why"] = path.why;
        entry["rows_sent"] = path.rowsSent;
        entry["rows_received"] = path.rowsReceived;
        entry["bytes_sent"] = path.bytesSent;
        entry["bytes_received"] = path.bytesReceived;
        list.append(entry);
    }
    return list;
}

nb::object globalRows(const Field &self) {
    const GhostMapping &mapping = *self.pattern().mapping();
    const auto rows = std::make_shared<std::vector<index>>();
    const index owned = mapping.fatherSize();
    rows->reserve(static_cast<std::size_t>(owned + mapping.ghostSize()));
    for (index row = 0; row < owned; ++row)
        rows->push_back(mapping.global()->localBegin() + row);
    rows->insert(rows->end(), mapping.ghosts().begin(), mapping.ghosts().end());
    return numpyOf(std::span<const index>(*rows), rows);
}

/// A list kept by the pattern.
nb::object patternRows(Field &self, std::span<const index> (ExchangePattern::*rows)() const) {
    const ExchangePattern &pattern = self.pattern();
    return numpyOf((pattern.*rows)(), self.pair().pattern());
}

nb::object toLocal(const Field &self, nb::handle globalRows) {
    const Integers list(globalRows, "global rows");
    const auto local = std::make_shared<std::vector<LocalIndex>>(self.pattern().mapping()->toLocal(list.span()));
    return numpyOf(std::span<const LocalIndex>(*local), local);
}

/// Assignment to a property that is a view copies into it, as NumPy's `a.real = b`. So does `u.owned += 1`, whose last
/// step assigns the view to itself, which NumPy detects and skips.
auto copyInto(const char *property) {
    return [property](nb::handle self, nb::handle values) {
        nb::object view = self.attr(property);
        view[nb::ellipsis()] = values;
    };
}

template <class... Extra>
void bindRows(nb::class_<Field, Extra...> &type) {
    const auto view = [&](const char *name, auto get, const char *getSig, const char *setSig, const char *text) {
        type.def_prop_rw(name, get, copyInto(name), nb::for_getter(nb::sig(getSig)), nb::for_setter(nb::sig(setSig)),
                         text);
    };
    view("owned", &Field::owned, "def owned(self) -> numpy.typing.NDArray",
         "def owned(self, values: numpy.typing.ArrayLike, /) -> None",
         R"(The rows of this rank without copying: [owned, width], or [owned] for a field of width None. Assigned values
are copied into it.

Read-only while a pull is in flight.)");
    view("ghosts", &Field::ghosts, "def ghosts(self) -> numpy.typing.NDArray",
         "def ghosts(self, values: numpy.typing.ArrayLike, /) -> None",
         "The copies of others' rows without copying: [ghosts, width] or [ghosts]. Assigned values are copied into "
         "it.");
    view("data", &Field::data, "def data(self) -> numpy.typing.NDArray",
         "def data(self, values: numpy.typing.ArrayLike, /) -> None",
         R"(Owned rows followed by ghosts as one array without copying: [owned + ghosts, width] or
[owned + ghosts]. Local numbers, for example those of a mesh, index it. For fields of one width. Assigned
values are copied into it.)");
    type.def_prop_ro("owned_array", &Field::ownedArray, "The owned rows as an Array: for csr rows and devices.")
        .def_prop_ro("ghost_array", &Field::ghostArray, "The ghosts as an Array.")
        .def(
            "__len__", [](const Field &self) { return self.father().size() + self.son().size(); },
            "Owned rows and ghosts.")
        .def("__repr__", &describe)
        .def_prop_ro(
            "owned_count", [](const Field &self) { return self.father().size(); }, "Owned rows.")
        .def_prop_ro(
            "ghost_count", [](const Field &self) { return self.son().size(); }, "Ghosts.")
        .def_prop_ro(
            "name", [](const Field &self) { return self.father().name(); }, "The name in messages.")
        .def_prop_ro(
            "comm", [](const Field &self) { return self.comm()->python; }, nb::sig("def comm(self) -> mpi4py.MPI.Comm"),
            "The communicator.")
        .def_prop_ro(
            "layout", [](const Field &self) { return rowKindName(self.father().shape().layout); },
            "'fixed', 'padded' or 'csr'.")
        .def_prop_ro(
            "dtype",
            [](const Field &self) {
                return nb::module_::import_("numpy").attr("dtype")(
                    std::string(elementKindName(self.father().shape().kind)));
            },
            nb::sig("def dtype(self) -> numpy.dtype"), "The NumPy type of elements.")
        .def_prop_ro(
            "width",
            [](const Field &self) {
                return self.scalar() || self.father().width() < 0 ? std::nullopt
                                                                  : std::optional<rowsize>(self.father().width());
            },
            "The width that all rows have or are padded to; None for csr and for one number a row.")
        .def_prop_ro("global_rows", &globalRows, nb::sig("def global_rows(self) -> numpy.typing.NDArray[numpy.int64]"),
                     "The global number of each row: [owned + ghosts].")
        .def_prop_ro(
            "inner_rows", [](Field &self) { return patternRows(self, &ExchangePattern::innerRows); },
            nb::sig("def inner_rows(self) -> numpy.typing.NDArray[numpy.int64]"),
            "Owned rows that no other rank copies, ascending, read-only.")
        .def_prop_ro(
            "boundary_rows", [](Field &self) { return patternRows(self, &ExchangePattern::boundaryRows); },
            nb::sig("def boundary_rows(self) -> numpy.typing.NDArray[numpy.int64]"),
            "Owned rows that some rank copies, ascending, read-only.")
        .def("to_local", &toLocal, "global_rows"_a,
             nb::sig("def to_local(self, global_rows: numpy.typing.ArrayLike) -> numpy.typing.NDArray[numpy.int32]"),
             "Local numbers of global rows. Raises IndexError for one that is neither owned here nor a ghost. Local.");
}

template <class... Extra>
void bindExchanges(nb::class_<Field, Extra...> &type) {
    type.def(
            "set_ghosts",
            [](Field &self, nb::handle globalRows) {
                std::optional<Integers> list;
                guarded(self.comm()->view, [&] { list.emplace(globalRows, "global rows"); });
                const nb::gil_scoped_release others;
                self.setGhosts(list->span());
            },
            "global_rows"_a, nb::sig("def set_ghosts(self, global_rows: numpy.typing.ArrayLike) -> None"),
            R"(Makes ghosts: copies of these global rows, sorted by owner and number, without duplicates. Collective.

Earlier views keep the old memory. Raises IndexError on all ranks for a row that does not exist.)")
        .def(
            "ghosts_for",
            [](Field &self, nb::handle reads) {
                nb::object array;
                std::optional<Integers> list;
                guarded(self.comm()->view, [&] {
                    array = nb::module_::import_("numpy").attr("asarray")(reads);
                    list.emplace(array.attr("ravel")(), "global rows");
                });
                const auto local = std::make_shared<std::vector<LocalIndex>>();
                {
                    const nb::gil_scoped_release others;
                    *local = self.ghostsFor(list->span());
                }
                return numpyOf(std::span<const LocalIndex>(*local), local).attr("reshape")(array.attr("shape"));
            },
            "global_rows"_a,
            nb::sig("def ghosts_for(self, global_rows: numpy.typing.ArrayLike) -> numpy.typing.NDArray[numpy.int32]"),
            R"(Makes ghosts of those global rows that other ranks own, in any order, as often as they are read. Returns
local numbers, in the shape of `global_rows`: owned rows, or ghosts. Collective.

Earlier views keep the old memory. Raises IndexError on all ranks for a row that does not exist.)")
        .def(
            "share_ghosts",
            [](Field &self, Field &other) {
                const nb::gil_scoped_release others;
                self.usePattern(other.pair().pattern());
            },
            "other"_a, "Makes the same ghosts as another field with as many rows, at little cost. Collective.")
        .def(
            "pull",
            [](Field &self) {
                exchangerOf(self).startPull();
                self.exchanger().waitPull();
            },
            Release(),
            R"(Refreshes the ghosts from their owners. Every rank that exchanges rows with others calls it.

The first call sets the exchange up and is Collective. Raises PeerError if another rank failed.)")
        .def(
            "_time_pulls",
            [](Field &self, int count) {
                const auto begin = std::chrono::steady_clock::now();
                for (int k = 0; k < count; ++k) {
                    exchangerOf(self).startPull();
                    self.exchanger().waitPull();
                }
                return std::chrono::duration<real>(std::chrono::steady_clock::now() - begin).count() / count;
            },
            "count"_a, Release(), "Seconds of a pull in a C++ loop, as a baseline for benchmarks. Collective.")
        .def(
            "start_pull",
            [](Field &self) {
                exchangerOf(self).startPull();
                return Pending(exchangerOf(self), nullptr);
            },
            Release(), nb::keep_alive<0, 1>(),
            R"(Starts a pull: a context manager whose end waits. Until then owned rows must not be written
and ghosts not be used. The first call is Collective, as that of `pull`. Raises StateError while another exchange of the
field is in flight, alone or in a group.)");
}

template <class... Extra>
void bindPushesAndSetUp(nb::class_<Field, Extra...> &type) {
    type.def(
            "push",
            [](Field &self, std::string_view op, std::string_view ghosts) {
                const nb::gil_scoped_release others;
                const PushMode which = exchangerOf(self).pushModeOf(op, ghosts);
                exchangerOf(self).startPush(which);
                self.exchanger().waitPush(which);
            },
            "op"_a = "sum", "ghosts"_a = "keep",
            R"(Sends ghosts back to their owners, whose rows they "replace", or are combined with by "sum", "min" or "max" in
ascending order of ranks. The first call with an operation is Collective; before the first push an unknown word raises
on all ranks, later on this rank only.

Ghosts "keep" their values, so a second push with "sum" adds them again: zero them before the next
contributions, or push with ghosts="zero", which zeroes them ("sum" only).)")
        .def(
            "start_push",
            [](Field &self, std::string_view op, std::string_view ghosts) {
                const nb::gil_scoped_release others;
                const PushMode which = exchangerOf(self).pushModeOf(op, ghosts);
                exchangerOf(self).startPush(which);
                return Pending(exchangerOf(self), &which);
            },
            "op"_a = "sum", "ghosts"_a = "keep", nb::keep_alive<0, 1>(),
            "Starts a push, as `push`: a context manager whose end waits.")
        .def(
            "prepare_pull",
            [](Field &self, std::string_view transport) {
                const nb::gil_scoped_release others;
                exchangerOf(self).preparePullBy(transport);
            },
            "transport"_a = "auto",
            R"(Sets the pull up (again): "auto", "node-shared", "packed" or "datatype". Collective.)")
        .def(
            "describe_pull", [](Field &self) { return exchangerOf(self).pullExchange().describe(); }, Release(),
            "A table of how the pull reaches each peer, and why. Collective for the first pull.")
        .def(
            "pull_paths", [](Field &self) { return pathsOf(self); },
            nb::sig("def pull_paths(self) -> list[dict[str, int | str]]"),
            "How the pull reaches each peer, and why: a dict for each. Collective for the first pull.")
        .def(
            "swap", &Field::swapData, "other"_a,
            R"(Swaps the contents of two fields of one type and mapping, such as old and new states: O(1). Earlier views stay
with the memory and so belong to the other field. Call it on all ranks.)");
}

} // namespace

void bindField(nb::module_ &module) {
    nb::class_<Field> type(module, "Field", R"(A distributed array with ghosts.

Each rank owns some rows, [0, owned_count), followed by copies of others' rows, which `pull` refreshes.

    u = dnds.Field(4, comm=comm)
    u.set_ghosts([...])       # global rows
    u.owned[:] = ...
    u.pull()
    u.data                    # owned rows, then ghosts
)");
    type.def(
        "__init__",
        [](Field *self, index rows, nb::handle width, nb::handle dtype, std::string_view layout, nb::handle sizes,
           std::string name, nb::handle comm) {
            new (self) Field(commOf(comm), {std::move(name), rows, dtype, layout, width, sizes});
        },
        "rows"_a, "width"_a.none() = nb::none(), "dtype"_a = "float64", nb::kw_only(), "layout"_a = "fixed",
        "sizes"_a.none() = nb::none(), "name"_a = "field", "comm"_a.none() = nb::none(),
        nb::sig("def __init__(self, rows: int, width: int | None = None, dtype: numpy.typing.DTypeLike = 'float64', "
                "*, layout: str = 'fixed', sizes: numpy.typing.ArrayLike | None = None, name: str = 'field', "
                "comm: mpi4py.MPI.Comm | None = None) -> None"),
        R"(`rows` owned rows of zeros, without ghosts. Collective over `comm`, MPI.COMM_WORLD unless given.

`width` None is one number a row, which views show as [rows]; padded and csr rows take `width` and `sizes` as Array
does. What is wrong on one rank raises on all.)");
    bindRows(type);
    bindExchanges(type);
    bindPushesAndSetUp(type);
}

} // namespace DNDS::Python
