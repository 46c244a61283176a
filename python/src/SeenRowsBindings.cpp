#include "Integers.hpp"
#include "MeshHandle.hpp"
#include "NumpyViews.hpp"
#include "Tasks.hpp"

#include <nanobind/stl/string.h>

#include <utility>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

Task::RowSpace spaceOf(const Entities &self) { return {self.name(), *self.entities}; }

Task::RowSpace spaceOf(const Field &self) {
    const std::shared_ptr<const ExchangePattern> pattern = self.pair().pattern();
    return {fmt::format("rows of {}", self.father().label()), self.father().size(), pattern ? self.son().size() : 0,
            pattern};
}

/// A region of every space, or one of the user's: of numbers, or of a truth value for each row.
template <class Rows>
Task::Region regionOf(const Rows &self, const std::string &name, nb::handle rows) {
    Task::RowSpace space = spaceOf(self);
    if (rows.is_none())
        return space.region(name);
    const nb::module_ numpy = nb::module_::import_("numpy");
    nb::object list = numpy.attr("asarray")(rows);
    if (nb::cast<std::string>(list.attr("dtype").attr("kind")) == "b") {
        DNDS_CHECK(nb::cast<index>(list.attr("size")) == space.size(), ArgumentError,
                   "region '{}' of '{}': {} truth values are given for {} rows", name, space.name(),
                   nb::cast<index>(list.attr("size")), space.size());
        list = numpy.attr("flatnonzero")(list);
    }
    return space.define(name, Integers(list, "rows").span());
}

nb::object rowsOf(const Task::Region &self) {
    const auto rows = std::make_shared<std::vector<LocalIndex>>(self.rows()->list());
    return numpyOf(std::span<const LocalIndex>(*rows), rows);
}

/// Neighbours as NumPy has them: [rows] or [rows, neighbours], local numbers.
Task::Adjacency adjacencyOf(nb::handle given, nb::object &table) {
    const nb::module_ numpy = nb::module_::import_("numpy");
    const nb::object array = numpy.attr("asarray")(given);
    const int dimensions = nb::cast<int>(array.attr("ndim"));
    const auto kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
    DNDS_CHECK((dimensions == 1 || dimensions == 2) && (kind == "i" || kind == "u"), ArgumentError,
               "rows are seen through an Adjacency, or through an array of integers of one or two dimensions");
    table = numpy.attr("ascontiguousarray")(array, "int32");
    DNDS_CHECK(nb::cast<bool>(numpy.attr("array_equal")(table, array)), IndexError,
               "rows are seen through an array of numbers that do not fit into 32 bits");
    const auto view = nb::cast<nb::ndarray<const LocalIndex, nb::c_contig, nb::device::cpu>>(table);
    const std::size_t columns = dimensions == 2 ? view.shape(1) : 1;
    return {fmt::format("an array of {} columns", columns), static_cast<index>(view.shape(0)),
            [entries = view.data(), columns](index row) -> std::span<const LocalIndex> {
                return {entries + static_cast<std::size_t>(row) * columns, columns};
            }};
}

SeenRows through(nb::handle field, nb::handle neighbours) {
    SeenRows seen{nb::borrow(field), Task::AccessRange::Through};
    if (nb::isinstance<Adjacency>(neighbours)) {
        const auto rows = nb::cast<Adjacency>(neighbours).rows;
        seen.adjacency = Task::adjacencyOf(*rows);
        seen.table = nb::borrow(neighbours);
    } else {
        seen.adjacency = adjacencyOf(neighbours, seen.table);
    }
    return seen;
}

void bindFieldRows(nb::module_ &module) {
    nb::class_<Field> type = nb::borrow<nb::class_<Field>>(module.attr("Field"));
    const auto seen = [](Task::AccessRange range) {
        return [range](nb::handle_t<Field> self) { return SeenRows{nb::borrow(self), range}; };
    };
    type.def(
            "through", [](nb::handle_t<Field> self, nb::handle rows) { return through(self, rows); }, "neighbours"_a,
            nb::sig("def through(self, neighbours: Adjacency | numpy.typing.ArrayLike) -> SeenRows"),
            R"(For tasks: the rows of this field that `neighbours` names in the row of the loop. In a loop over faces,
`u.through(mesh.face_cells)` are the cells on both sides. Of local numbers, -1 for none. Local.)")
        .def("whole", seen(Task::AccessRange::Whole), "For tasks: all owned rows and ghosts. Local.")
        .def("without_ghosts", seen(Task::AccessRange::Owned),
             "For tasks: all owned rows and no ghosts, for which nothing is pulled. Local.")
        .def(
            "within",
            [](nb::handle_t<Field> self, const Task::Region &region) {
                return SeenRows{nb::borrow(self), Task::AccessRange::Region, {}, region};
            },
            "region"_a, "For tasks: the rows of a region of this field. Local.")
        .def("region", &regionOf<Field>, "name"_a, "rows"_a.none() = nb::none(),
             nb::sig("def region(self, name: str, rows: numpy.typing.ArrayLike | None = None) -> Region"),
             "As Entities.region, of the rows of this field.");
}

} // namespace

Task::Region loopOf(nb::handle rows) {
    if (nb::isinstance<Task::Region>(rows))
        return nb::cast<Task::Region>(rows);
    if (nb::isinstance<Entities>(rows))
        return spaceOf(nb::cast<const Entities &>(rows)).rows();
    if (nb::isinstance<Field>(rows))
        return spaceOf(nb::cast<const Field &>(rows)).rows();
    throw nb::type_error("a task loops over the cells, nodes or faces of a mesh, a Region, or the rows of a Field");
}

SeenRows seenRowsOf(nb::handle rows) {
    if (nb::isinstance<SeenRows>(rows))
        return nb::cast<SeenRows>(rows);
    if (nb::isinstance<Field>(rows))
        return {nb::borrow(rows)};
    throw nb::type_error("a task reads and writes fields, or rows of them such as u.through(mesh.face_cells)");
}

void bindSeenRows(nb::module_ &module) {
    nb::class_<SeenRows>(module, "SeenRows", "Rows of a field as a task sees them: see Field.through.")
        .def_ro("field", &SeenRows::field, nb::sig("def field(self) -> Field"), "The field.");
    nb::class_<Task::Region>(module, "Region",
                             "Some rows by name, which is the same on all ranks: see Entities.region.")
        .def_prop_ro(
            "name", [](const Task::Region &self) { return self.name(); }, "The name.")
        .def_prop_ro("rows", &rowsOf, nb::sig("def rows(self) -> numpy.typing.NDArray[numpy.int32]"),
                     "Its rows on this rank, ascending.")
        .def("__repr__", [](const Task::Region &self) {
            return fmt::format("<dnds.Region '{}': {} of {} rows>", self.name(), self.rows()->count(),
                               self.space().size());
        });
    nb::class_<AddedRows>(module, "AddedRows", "The rows of a field that a task adds to. It may not read them.")
        .def("add", &AddedRows::add, "rows"_a, "values"_a,
             nb::sig("def add(self, rows: numpy.typing.ArrayLike, values: numpy.typing.ArrayLike) -> None"),
             R"(Adds `values`, broadcast to the shape of `rows` (and the width of the field), one after another, as
numpy.add.at does; negative rows, which mean no neighbour, are left out.)");
    nb::class_<RowGuards>(module, "_RowGuards", "For dnds.guarded.").def("check", &RowGuards::check, "rows"_a);
#if defined(DNDS_DEBUG_CHECKS)
    module.attr("_debug_checks") = true;
#else
    module.attr("_debug_checks") = false;
#endif
    bindFieldRows(module);
    nb::borrow<nb::class_<Entities>>(module.attr("Entities"))
        .def("region", &regionOf<Entities>, "name"_a, "rows"_a.none() = nb::none(),
             nb::sig("def region(self, name: str, rows: numpy.typing.ArrayLike | None = None) -> Region"),
             R"(Rows for tasks: "owned", "ghosts", "inner" (owned ones that no other rank needs), "boundary" (the other
owned ones) or "all"; or `rows`, numbers or one truth value for each, under a name of yours. Ranks may have none. Local.
Raises IndexError, ArgumentError.)");
}

} // namespace DNDS::Python
