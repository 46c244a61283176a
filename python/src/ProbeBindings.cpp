#include "Errors.hpp"
#include "Field.hpp"
#include "MeshHandle.hpp"
#include "NumpyViews.hpp"

#include "DNDS/Geom/Locate/Probe.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Numbers = nb::ndarray<const real, nb::c_contig, nb::device::cpu>;

/// An array of doubles, without copying if it already is one.
Numbers numbersOf(nb::handle values, const char *what) {
    try {
        return nb::cast<Numbers>(nb::module_::import_("numpy").attr("ascontiguousarray")(values, "float64"));
    } catch (nb::python_error &error) {
        throw ArgumentError(std::string(what) + " are not numbers: " + error.what());
    }
}

/// Points [points, 3], or [points, 2] in the plane z = 0.
std::vector<Geom::Point> pointsOf(nb::handle values) {
    const Numbers list = numbersOf(values, "points");
    if (list.size() == 0)
        return {};
    DNDS_CHECK(list.ndim() == 2 && (list.shape(1) == 2 || list.shape(1) == 3), ArgumentError,
               "points are an array of [points, 3], or of [points, 2] in the plane");
    std::vector<Geom::Point> points(list.shape(0), Geom::Point{});
    const real *next = list.data();
    for (Geom::Point &point : points)
        for (std::size_t d = 0; d < list.shape(1); d++)
            point[d] = *next++;
    return points;
}

template <class T>
nb::object arrayOf(std::vector<T> &&values) {
    const auto kept = std::make_shared<const std::vector<T>>(std::move(values));
    return numpyOf(std::span<const T>(*kept), kept);
}

/// One list of each member of `rows`.
template <class Row, class... Members>
nb::tuple columnsOf(const std::vector<Row> &rows, Members Row::*...members) {
    const auto column = [&](auto member) {
        std::vector<std::decay_t<decltype(std::declval<Row>().*member)>> values;
        for (const Row &row : rows)
            values.push_back(row.*member);
        return arrayOf(std::move(values));
    };
    return nb::make_tuple(column(members)...);
}

nb::tuple arraysOf(const std::vector<Geom::PointLocation> &locations) {
    return columnsOf(locations, &Geom::PointLocation::rank, &Geom::PointLocation::cell, &Geom::PointLocation::number);
}

/// A probe of a mesh, which it keeps.
class MeshProbe {
  public:
    MeshProbe(const Mesh &mesh, const Geom::PointLocator &locator, const std::vector<Geom::Point> &points)
        : mesh_(mesh), probe_(locator, points) {}

    const Geom::Probe &probe() const noexcept { return probe_; }
    nb::object values(const Field &field, nb::handle gradients);

  private:
    /// Owned rows and ghosts as doubles, which `keep` owns.
    struct Rows {
        nb::object keep;
        const real *data = nullptr;
        rowsize width = 1;

        const real *operator[](index row) const { return data + row * width; }
    };
    static Rows rowsOf(const Field &field) {
        Rows rows;
        rows.keep = nb::module_::import_("numpy").attr("ascontiguousarray")(field.rows(false), "float64");
        const auto array = nb::cast<Numbers>(rows.keep);
        rows.data = array.data();
        rows.width = array.ndim() > 1 ? static_cast<rowsize>(array.shape(1)) : 1;
        return rows;
    }
    bool isOn(const Field &field, const Geom::MeshEntities &entities) const {
        return &field.pattern() == entities.pattern.get();
    }

    Mesh mesh_;
    Geom::Probe probe_;
};

nb::object MeshProbe::values(const Field &field, nb::handle gradients) {
    const Geom::UnstructuredMesh &mesh = mesh_.mesh();
    const std::shared_ptr<const Geom::MeshMetrics> &metrics = mesh_.metrics[0];
    const bool linear = !gradients.is_none();
    bool nodal = false;
    Rows rows;
    Rows slopes;
    guarded(mesh_.comm->view, [&] {
        nodal = isOn(field, mesh.nodes);
        DNDS_CHECK(nodal || isOn(field, mesh.cells), ArgumentError,
                   "'{}' is no field on the cells or nodes of the mesh of this probe", field.father().label());
        rows = rowsOf(field);
        if (!linear)
            return;
        DNDS_CHECK(!nodal, ArgumentError, "'{}' is a field on nodes, which needs no gradients", field.father().label());
        const auto &given = nb::cast<const Field &>(gradients);
        DNDS_CHECK(isOn(given, mesh.cells), ArgumentError, "'{}' is no field on the cells of the mesh of this probe",
                   given.father().label());
        slopes = rowsOf(given);
        DNDS_CHECK(slopes.width == 3 * rows.width, ArgumentError,
                   "gradients of '{}' need {} numbers in a row, but '{}' has {}", field.father().label(),
                   3 * rows.width, given.father().label(), slopes.width);
    });
    std::vector<real> result;
    {
        const nb::gil_scoped_release others;
        if (linear && !metrics)
            mesh_.metrics[0] = std::make_shared<const Geom::MeshMetrics>(Geom::computeMetrics(mesh));
        result = probe_.values(rows.width, [&](const Geom::ProbeSample &at, std::span<real> values) {
            for (std::size_t k = 0; k < values.size(); k++) {
                values[k] = nodal ? 0.0 : rows[at.cell][k];
                if (nodal)
                    for (const auto &[node, weight] : at.nodes)
                        values[k] += weight * rows[node][k];
                for (rowsize d = 0; linear && d < 3; d++)
                    values[k] += slopes[at.cell][3 * k + static_cast<std::size_t>(d)] *
                                 (at.position[static_cast<std::size_t>(d)] - metrics->centroids(at.cell, d));
            }
        });
    }
    nb::object array = arrayOf(std::move(result));
    return field.scalar() ? array : nb::object(array.attr("reshape")(-1, rows.width));
}

/// Makes a locator and calls `use(locator, points)`. Collective.
template <class Use>
auto withLocator(const Mesh &mesh, nb::handle given, real tolerance, Use &&use) {
    std::vector<Geom::Point> points;
    guarded(mesh.comm->view, [&] { points = pointsOf(given); });
    const nb::gil_scoped_release others;
    return use(Geom::PointLocator(mesh.mesh(), tolerance), points);
}

nb::object wallDistance(Mesh &self, const std::vector<std::string> &patches, nb::handle given, bool nearest) {
    std::vector<Geom::Point> points;
    guarded(self.comm->view, [&] {
        if (!given.is_none())
            points = pointsOf(given);
    });
    const auto found = [&] {
        const nb::gil_scoped_release others;
        const Geom::UnstructuredMesh &mesh = self.mesh();
        const Geom::WallDistance walls(mesh, patches);
        if (given.is_none()) {
            if (!self.metrics[0])
                self.metrics[0] = std::make_shared<const Geom::MeshMetrics>(Geom::computeMetrics(mesh));
            const auto centroids = self.metrics[0]->centroids.view();
            for (index cell = 0; cell < mesh.cells.owned; cell++)
                points.push_back({centroids(cell, 0), centroids(cell, 1), centroids(cell, 2)});
        }
        return walls.nearest(points);
    }();
    const nb::tuple columns =
        columnsOf(found, &Geom::NearestFace::distance, &Geom::NearestFace::rank, &Geom::NearestFace::face);
    return nearest ? nb::object(columns) : nb::object(columns[0]);
}

} // namespace

void bindProbes(nb::module_ &module) {
    nb::class_<MeshProbe>(module, "Probe", R"(Points of a mesh whose cells are found once, to read fields there often.

    line = mesh.probe(dnds.line((0, 0, 0), (1, 0, 0), 100) if mesh.comm.rank == 0 else [])
    pressure = line(p)

Made by `Mesh.probe`.)")
        .def("__call__", &MeshProbe::values, "field"_a, nb::kw_only(), "gradients"_a.none() = nb::none(),
             nb::sig("def __call__(self, field: Field, *, gradients: Field | None = None) "
                     "-> numpy.typing.NDArray[numpy.float64]"),
             R"(The values at this rank's points, [points, width], or [points] of a field of width None; NaN in no cell.

Of a field on cells, the value of the cell; with `gradients`, a field of 3 width numbers (number 3 k + d is the
derivative of component k along direction d), value + gradient . (point - centroid). Of a field on nodes, whose ghosts
must be current, shape functions, or mean value coordinates in polygons and polyhedra. The same bits on any number of
ranks. Collective; one pull of the values. Raises ArgumentError on all ranks.)")
        .def_prop_ro(
            "found",
            [](const MeshProbe &self) {
                const nb::object ranks = arraysOf(self.probe().locations())[0];
                return nb::object(ranks.attr("__ge__")(0));
            },
            nb::sig("def found(self) -> numpy.typing.NDArray[numpy.bool_]"),
            "Whether each point is in a cell: [points].")
        .def_prop_ro(
            "locations", [](const MeshProbe &self) { return arraysOf(self.probe().locations()); },
            nb::sig("def locations(self) -> tuple[numpy.typing.NDArray[numpy.int32], "
                    "numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int64]]"),
            "As `Mesh.locate` returns them.");
    nb::class_<Mesh> type = nb::borrow<nb::class_<Mesh>>(module.attr("Mesh"));
    type.def(
            "locate",
            [](const Mesh &self, nb::handle points, real tolerance) {
                return arraysOf(withLocator(self, points, tolerance, [](const auto &locator, const auto &list) {
                    return locator.locate(list);
                }));
            },
            "points"_a, nb::kw_only(), "tolerance"_a = 1e-8,
            nb::sig("def locate(self, points: numpy.typing.ArrayLike, *, tolerance: float = 1e-8) "
                    "-> tuple[numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int32], "
                    "numpy.typing.NDArray[numpy.int64]]"),
            R"(The cells that have points of this rank, [points, 3] or [points, 2], wherever they are: the rank that owns
each, -1 outside; its local number there; its position in the file. Of several cells, the first in the file.

`tolerance` is how far outside a cell a point may be, in sizes of the cell. Collective; O(cells log cells) to make the
trees. Raises ArgumentError on all ranks.)")
        .def(
            "probe",
            [](const Mesh &self, nb::handle points, real tolerance) {
                return withLocator(self, points, tolerance, [&](const auto &locator, const auto &list) {
                    return std::make_unique<MeshProbe>(self, locator, list);
                });
            },
            "points"_a, nb::kw_only(), "tolerance"_a = 1e-8,
            nb::sig("def probe(self, points: numpy.typing.ArrayLike, *, tolerance: float = 1e-8) -> Probe"),
            R"(A Probe of this rank's points, for values of fields: `locate`, done once. Collective.)")
        .def(
            "wall_distance", &wallDistance, "patches"_a, "points"_a.none() = nb::none(), nb::kw_only(),
            "nearest"_a = false,
            nb::sig("def wall_distance(self, patches: collections.abc.Sequence[str], "
                    "points: numpy.typing.ArrayLike | None = None, *, nearest: bool = False) -> typing.Any"),
            R"(The distance of own cells' centroids, or of `points`, to the nearest face of patches: exact, across ranks.

With `nearest`, distances, the rank that owns each nearest face (-1 if there is none), and its local number there.
Images of walls across periodic boundaries count. Collective; about O(log faces) for each point. Raises ArgumentError
on all ranks for a patch that does not exist.)");
    module.def(
        "line",
        [](nb::handle from, nb::handle to, index count) {
            const std::vector<Geom::Point> ends = pointsOf(nb::make_tuple(from, to));
            std::vector<real> values;
            for (const Geom::Point &point : Geom::pointsOnLine(ends[0], ends[1], count))
                values.insert(values.end(), point.begin(), point.end());
            return nb::object(arrayOf(std::move(values)).attr("reshape")(-1, 3));
        },
        "start"_a, "end"_a, "count"_a,
        nb::sig("def line(start: numpy.typing.ArrayLike, end: numpy.typing.ArrayLike, count: int) "
                "-> numpy.typing.NDArray[numpy.float64]"),
        "`count` points on a line, equally spaced, both ends included: [count, 3]. Local.");
}

} // namespace DNDS::Python
