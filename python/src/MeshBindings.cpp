#include "Field.hpp"
#include "Integers.hpp"
#include "MeshHandle.hpp"
#include "NumpyViews.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class Value, std::size_t count>
Value chosen(std::string_view word, const char *what,
             const std::array<std::pair<std::string_view, Value>, count> &words) {
    std::string list;
    for (const auto &[name, value] : words) {
        if (name == word)
            return value;
        list += (list.empty() ? "" : ", ") + std::string(name);
    }
    throw ArgumentError(fmt::format("there is no {} '{}': it is one of {}", what, word, list));
}

constexpr std::array<std::pair<std::string_view, Geom::Partitioner>, 2> partitioners{
    {{"graph", Geom::Partitioner::Graph}, {"curve", Geom::Partitioner::Curve}}};
constexpr std::array<std::pair<std::string_view, Geom::GhostNeighbours>, 2> neighbours{
    {{"nodes", Geom::GhostNeighbours::Nodes}, {"faces", Geom::GhostNeighbours::Faces}}};
constexpr std::array<std::pair<std::string_view, Geom::CellOrder>, 2> orders{
    {{"curve", Geom::CellOrder::Curve}, {"reverse-cuthill-mckee", Geom::CellOrder::ReverseCuthillMcKee}}};

Mesh buildMesh(Source &source, std::string_view partitioner, real imbalance, int seed, nb::handle part,
               std::string_view ghostsBy, int ghostLayers, std::string_view cellOrder, nb::handle progress) {
    Geom::MeshOptions options;
    const CommPtr comm = source.comm;
    comm->view.guarded([&] { // what is wrong on one rank throws on all
        DNDS_CHECK(source.mesh != nullptr, StateError, "this SourceMesh was used up: read or make it again");
        options.partitioner = chosen(partitioner, "partitioner", partitioners);
        options.ghostsBy = chosen(ghostsBy, "kind of ghosts", neighbours);
        options.cellOrder = chosen(cellOrder, "order of cells", orders);
        if (!part.is_none()) {
            const Integers ranks(part, "parts");
            options.partitioner = Geom::Partitioner::Given;
            for (const index rank : ranks.span())
                options.givenPart.push_back(rank >= 0 && rank < comm->view.size() ? static_cast<int>(rank) : -1);
        }
    });
    options.imbalance = imbalance;
    options.seed = seed;
    options.ghostLayers = ghostLayers;
    if (!progress.is_none())
        options.progress = [progress](std::string_view step) {
            const nb::gil_scoped_acquire python;
            progress(nb::str(step.data(), step.size()));
        };
    Geom::MeshReport report;
    options.report = &report;
    const nb::gil_scoped_release others;
    const std::shared_ptr<Geom::SourceMesh> taken = std::exchange(source.mesh, nullptr);
    Geom::UnstructuredMesh mesh = Geom::buildMesh(comm->view, std::move(*taken), options);
    return {comm, std::make_shared<const MeshData>(MeshData{std::move(mesh), std::move(report)})};
}

nb::dict reportOf(const Mesh &mesh) {
    const Geom::MeshReport &report = mesh.data->report;
    nb::dict cells;
    for (const auto &count : report.cells)
        cells[nb::str(Geom::elementInfo(count.type).name.data(), Geom::elementInfo(count.type).name.size())] =
            count.count;
    nb::dict patches;
    for (const auto &patch : report.patches)
        patches[patch.name.c_str()] = patch.faces;
    nb::dict result;
    result["origin"] = report.origin;
    result["dimension"] = report.dimension;
    result["cells"] = cells;
    result["cells_total"] = report.cellsTotal;
    result["nodes"] = report.nodes;
    result["unused_nodes"] = report.unusedNodes;
    result["volume"] = report.volume;
    result["turned_cells"] = report.turnedCells;
    result["flat_cells"] = report.flatCells;
    result["lower"] = report.lower;
    result["upper"] = report.upper;
    result["patches"] = patches;
    result["inner_faces"] = report.innerFaces;
    result["boundary_faces"] = report.boundaryFaces;
    result["unassigned_faces"] = report.unassignedFaces;
    result["periodic_pairs"] = report.periodicPairs;
    result["warnings"] = report.warnings;
    return result;
}

std::unique_ptr<Field> makeField(const Mesh &mesh, nb::handle width, nb::handle dtype, std::string_view at,
                                 std::string name) {
    const Geom::MeshEntities &entities = entitiesOf(mesh, at);
    const FieldOptions options{std::move(name), elementKindOf(dtype), RowKind::Fixed, width.is_none()};
    auto field = std::make_unique<Field>(mesh.comm, options, entities.owned, width, nb::none());
    const nb::gil_scoped_release others;
    field->usePattern(entities.pattern);
    return field;
}

/// Mesh.build of what SourceMesh.`maker` gives; `options` of either are told apart by `ofSource`.
nb::object readAndBuild(const char *maker, const nb::args &arguments, const nb::dict &given,
                        std::initializer_list<const char *> ofSource) {
    nb::dict forSource;
    nb::dict forBuild;
    for (const auto &[name, value] : given) {
        const auto word = nb::cast<std::string>(name);
        const bool mine = std::find(ofSource.begin(), ofSource.end(), word) != ofSource.end();
        (mine ? forSource : forBuild)[name] = value;
    }
    const nb::object source = nb::type<Source>().attr(maker)(*arguments, **forSource);
    return nb::type<Mesh>().attr("build")(source, **forBuild);
}

const char *const buildText =
    R"(Partitions a mesh over the ranks of its communicator, finds faces and ghosts. Collective.

`partitioner` is "graph" (PT-Scotch, fewest faces between ranks) or "curve" (pieces of a Hilbert curve, fast); `part`
[block of the source] gives ranks instead. Ghosts are `ghost_layers` of cells that share "nodes" or "faces" with the layer
before. `cell_order` is "curve" or "reverse-cuthill-mckee". `progress` is called with the name of each step that begins.
Raises DataError or ArgumentError on all ranks.)";

} // namespace

const Geom::MeshEntities &entitiesOf(const Mesh &mesh, std::string_view at) {
    if (at == "cells")
        return mesh.mesh().cells;
    if (at == "nodes")
        return mesh.mesh().nodes;
    DNDS_CHECK(at == "faces", ArgumentError, "there are no fields at '{}': at is cells, nodes or faces", at);
    return mesh.mesh().faces;
}

void bindMesh(nb::module_ &module) {
    nb::class_<Mesh>(module, "Mesh",
                     R"(One rank's part of a mesh: cells, nodes and faces with ghosts, and all that connects them.

In all lists owned entities come first, then ghosts; entries are local numbers unless they say otherwise. Lists are NumPy
arrays without copying, read-only, that outlive the mesh.

    mesh = dnds.Mesh.read("wing.cgns")
    u = mesh.field(5)
    with u.start_pull():
        ...
)")
        .def_static("build", &buildMesh, "source"_a, nb::kw_only(), "partitioner"_a = "graph", "imbalance"_a = 0.03,
                    "seed"_a = 1, "part"_a.none() = nb::none(), "ghosts_by"_a = "nodes", "ghost_layers"_a = 1,
                    "cell_order"_a = "curve", "progress"_a.none() = nb::none(),
                    nb::sig("def build(source: SourceMesh, *, partitioner: str = 'graph', imbalance: float = 0.03, "
                            "seed: int = 1, part: numpy.typing.ArrayLike | None = None, ghosts_by: str = 'nodes', "
                            "ghost_layers: int = 1, cell_order: str = 'curve', "
                            "progress: collections.abc.Callable[[str], object] | None = None) -> Mesh"),
                    buildText)
        .def_static(
            "read",
            [](const nb::args &arguments, const nb::kwargs &options) {
                return readAndBuild("read", arguments, options, {"path", "comm", "base", "join_coincident_nodes"});
            },
            nb::sig("def read(path: str | os.PathLike[str], comm: mpi4py.MPI.Comm | None = None, *, base: str = '', "
                    "join_coincident_nodes: bool = False, partitioner: str = 'graph', imbalance: float = 0.03, "
                    "seed: int = 1, part: numpy.typing.ArrayLike | None = None, ghosts_by: str = 'nodes', "
                    "ghost_layers: int = 1, cell_order: str = 'curve', "
                    "progress: collections.abc.Callable[[str], object] | None = None) -> Mesh"),
            "Mesh.build of SourceMesh.read, with the options of both. Collective.")
        .def_static(
            "box",
            [](const nb::args &arguments, const nb::kwargs &options) {
                return readAndBuild("box", arguments, options,
                                    {"fill", "cells", "lengths", "jitter", "shuffled", "periodic", "comm"});
            },
            nb::sig("def box(fill: str = 'tetrahedra', cells: collections.abc.Sequence[int] = (8, 8, 8), *, "
                    "lengths: collections.abc.Sequence[float] = (1, 1, 1), jitter: float = 0.0, "
                    "shuffled: bool = False, periodic: collections.abc.Sequence[bool] = (), "
                    "comm: mpi4py.MPI.Comm | None = None, partitioner: str = 'graph', imbalance: float = 0.03, "
                    "seed: int = 1, part: numpy.typing.ArrayLike | None = None, ghosts_by: str = 'nodes', "
                    "ghost_layers: int = 1, cell_order: str = 'curve', "
                    "progress: collections.abc.Callable[[str], object] | None = None) -> Mesh"),
            "Mesh.build of SourceMesh.box, with the options of both (`seed` is that of the partition). Collective.")
        .def_prop_ro(
            "comm", [](const Mesh &self) { return self.comm->python; }, nb::sig("def comm(self) -> mpi4py.MPI.Comm"),
            "The communicator.")
        .def("__repr__",
             [](const Mesh &self) {
                 const Geom::MeshEntities &cells = self.mesh().cells;
                 return fmt::format("<dnds.Mesh of {}: {} owned cells, {} ghosts, {} cells on all ranks>",
                                    self.mesh().origin, cells.owned, cells.ghosts,
                                    cells.mapping().global()->globalSize());
             })
        .def_prop_ro(
            "origin", [](const Mesh &self) { return self.mesh().origin; }, "The file, or what made it.")
        .def_prop_ro(
            "dimension", [](const Mesh &self) { return self.mesh().dimension; }, "Of cells: 2 or 3.")
        .def_prop_ro(
            "report", &reportOf, nb::sig("def report(self) -> dict[str, typing.Any]"),
            R"(What was found: cells by type, patches, volume, bounding box, warnings, ... The same on all ranks and for
any number of ranks.)")
        .def(
            "field", &makeField, "width"_a.none() = nb::none(), "dtype"_a = "float64", nb::kw_only(), "at"_a = "cells",
            "name"_a = "field",
            nb::sig("def field(self, width: int | None = None, dtype: numpy.typing.DTypeLike = 'float64', *, "
                    "at: str = 'cells', name: str = 'field') -> Field"),
            R"(A field of zeros on cells, "nodes" or "faces", with their ghosts: data is [all, width], or [all] for width None.
Collective.)");
}

} // namespace DNDS::Python
