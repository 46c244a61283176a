#include "Errors.hpp"
#include "Field.hpp"
#include "FieldGroup.hpp"
#include "Integers.hpp"
#include "MeshHandle.hpp"
#include "NumpyViews.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Geom/Repartition/Repartition.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

constexpr Words<Geom::CellOrder, 2> orders{
    {{"curve", Geom::CellOrder::Curve}, {"reverse-cuthill-mckee", Geom::CellOrder::ReverseCuthillMcKee}}};

/// Calls a Python function with the name of each step until it raises; the exception is kept, since other ranks wait.
class Progress {
  public:
    explicit Progress(nb::handle function) : function_(nb::borrow(function)) {}

    void operator()(std::string_view step) {
        const nb::gil_scoped_acquire python;
        if (failure_)
            return;
        attempt(failure_, [&] { function_(nb::str(step.data(), step.size())); });
    }
    const std::exception_ptr &failure() const noexcept { return failure_; }

  private:
    nb::object function_;
    std::exception_ptr failure_;
};

/// The data of a mesh with its clusters, if it has any. Collective. Throws as MeshClusters.
std::shared_ptr<const MeshData> dataOf(Geom::UnstructuredMesh &&mesh, Geom::MeshReport report,
                                       const Geom::MeshOptions &options,
                                       const std::shared_ptr<const Geom::SourceClusters> &cut) {
    std::shared_ptr<const Geom::MeshClusters> clusters;
    if (cut)
        clusters = std::make_shared<const Geom::MeshClusters>(mesh, *cut);
    const std::uint64_t fingerprint = Geom::fingerprint(mesh);
    return std::make_shared<const MeshData>(MeshData{std::move(mesh), std::move(report), fingerprint, options.ghostsBy,
                                                     options.cellOrder, cut, std::move(clusters)});
}

Mesh buildMesh(Source &source, std::string_view partitioner, real imbalance, int seed, nb::handle part,
               nb::handle weights, std::string_view ghostsBy, int ghostLayers, std::string_view cellOrder,
               nb::handle cellsPerCluster, const Clusters *clusters, nb::handle given) {
    Geom::MeshOptions options;
    const CommPtr comm = source.comm();
    index clusterCells = 0;
    std::optional<std::vector<real>> costs;
    guarded(comm->view, [&] { // an error on one rank throws on all
        (void)source.mesh();
        options.partitioner = chosen(partitioner, "partitioner", partitioners);
        options.ghostsBy = chosen(ghostsBy, "kind of ghosts", ghostNeighbours);
        options.cellOrder = chosen(cellOrder, "order of cells", orders);
        if (!part.is_none()) {
            const Integers ranks(part, "parts");
            options.partitioner = Geom::Partitioner::Given;
            for (const index rank : ranks.span())
                options.givenPart.push_back(rank >= 0 && rank < comm->view.size() ? static_cast<int>(rank) : -1);
        }
        if (cellsPerCluster.is_none() && clusters == nullptr)
            options.cellWeights = integersOrNone(weights, "weights");
        else
            costs = costsOrNone(weights, "weights");
        DNDS_CHECK(cellsPerCluster.is_none() || (part.is_none() && clusters == nullptr), ArgumentError,
                   "ranks get whole clusters, cut now: leave out part and clusters, or cut them before by "
                   "SourceClusters.cut, and leave out cells_per_cluster");
        DNDS_CHECK(cellsPerCluster.is_none() || nb::try_cast(cellsPerCluster, clusterCells), ArgumentError,
                   "cells_per_cluster is no integer");
    });
    options.imbalance = imbalance;
    options.seed = seed;
    options.ghostLayers = ghostLayers;
    Progress progress(given);
    if (!given.is_none())
        options.progress = std::ref(progress);
    const auto data = [&] {
        Geom::MeshReport report;
        options.report = &report;
        Geom::SourceMesh taken = source.take();
        const nb::gil_scoped_release others;
        std::shared_ptr<const Geom::SourceClusters> cut = clusters == nullptr ? nullptr : clusters->cut;
        if (!cellsPerCluster.is_none())
            cut = std::make_shared<const Geom::SourceClusters>(Geom::cutClusters(comm->view, taken, clusterCells));
        if (cut && options.partitioner != Geom::Partitioner::Given) {
            options.partitioner = Geom::Partitioner::Given;
            options.givenPart = partsOf(comm->view, *cut, costs);
        }
        Geom::UnstructuredMesh mesh = Geom::buildMesh(comm->view, std::move(taken), options);
        return dataOf(std::move(mesh), std::move(report), options, cut);
    }();
    agree(comm->view, progress.failure());
    return {comm, data};
}

nb::dict reportOf(const Mesh &mesh) {
    const Geom::MeshReport &report = mesh.data->report;
    nb::dict cells;
    for (const auto &count : report.cells)
        cells[nb::str(Geom::elementInfo(count.type).name.data(), Geom::elementInfo(count.type).name.size())] =
            count.count;
    nb::dict patches;
    for (const auto &patch : report.patches)
        patches[stringOf(patch.name)] = patch.faces;
    nb::dict result;
    result["origin"] = report.origin;
    result["dimension"] = report.dimension;
    result["cells"] = cells;
    result["cells_total"] = report.cellsTotal;
    result["nodes"] = report.nodes;
    result["unused_nodes"] = report.unusedNodes;
    result["measure"] = report.measure;
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
    result["warnings"] = stringsOf(report.warnings);
    result["notes"] = report.notes;
    return result;
}

/// Tells a field that its rows are these of a mesh, which it keeps alive for their numbers.
void setMeshOf(Field &field, const Mesh &mesh, const Geom::MeshEntities &entities) {
    const std::span<const index> own = entities.ownFileNumbers();
    const bool numbered = own.empty() || own.front() >= 0; // faces are not
    field.setMesh(mesh.data->fingerprint, numbered ? own : std::span<const index>(), mesh.data);
}

std::unique_ptr<Field> makeField(const Mesh &mesh, nb::handle width, nb::handle dtype, std::string_view at,
                                 std::string name) {
    Geom::MeshEntityKind kind{};
    guarded(mesh.comm->view, [&] { kind = chosen(at, "place of fields", entityKinds); });
    const Geom::MeshEntities &entities = [&]() -> const Geom::MeshEntities & {
        const nb::gil_scoped_release others;
        return mesh.mesh().entities(kind);
    }();
    auto field = std::make_unique<Field>(
        mesh.comm, FieldOptions{std::move(name), entities.owned, dtype, "fixed", width, nb::none()});
    setMeshOf(*field, mesh, entities);
    const nb::gil_scoped_release others;
    field->usePattern(entities.pattern);
    return field;
}

std::unique_ptr<FieldGroup> firstLayers(const Mesh &mesh, int layers, const nb::sequence &sequence) {
    const auto fields = nb::borrow<nb::iterable>(sequence);
    // On all ranks or none before the pattern is made by all.
    std::unique_ptr<FieldGroup> group;
    FieldGroup::Pattern pattern;
    guarded(mesh.comm->view, [&] {
        const FieldGroup all(fields, [&](FieldGroup::Pattern ofFields) {
            DNDS_CHECK(ofFields == mesh.mesh().cells.pattern, ArgumentError,
                       "the fields of first_layers must be fields on the cells of the mesh");
            return ofFields;
        });
    });
    {
        const nb::gil_scoped_release others;
        pattern = mesh.mesh().firstLayers(layers);
    }
    guarded(mesh.comm->view, [&] {
        group = std::make_unique<FieldGroup>(fields, [&](const FieldGroup::Pattern &) { return pattern; });
    });
    return group;
}

/// Whether ranks make a source separately or together.
enum class Makes : bool { Alone, Together };

/// Mesh.build of what SourceMesh.`maker` gives; `options` of either are told apart by `ofSource`.
nb::object readAndBuild(const char *maker, Makes makes, const nb::args &arguments, const nb::dict &given,
                        std::initializer_list<const char *> ofSource) {
    nb::dict forSource;
    nb::dict forBuild;
    for (const auto &[name, value] : given) {
        const auto word = nb::cast<std::string>(name);
        const bool mine = std::find(ofSource.begin(), ofSource.end(), word) != ofSource.end();
        (mine ? forSource : forBuild)[name] = value;
    }
    const auto make = [&] { return nb::object(nb::type<Source>().attr(maker)(*arguments, **forSource)); };
    nb::object source;
    if (makes == Makes::Alone) // an error on one rank throws on all
        guarded(commOf(forSource.contains("comm") ? nb::object(forSource["comm"]) : nb::none())->view,
                [&] { source = make(); });
    else
        source = make();
    return nb::type<Mesh>().attr("build")(source, **forBuild);
}

/// The kind of entities that a field is on, by its ghosts.
Geom::MeshEntityKind kindOf(const Mesh &mesh, const Field &field) {
    for (const auto kind : {Geom::MeshEntityKind::Cells, Geom::MeshEntityKind::Nodes, Geom::MeshEntityKind::Faces})
        if (&field.pattern() == mesh.mesh().entities(kind).pattern.get())
            return kind;
    throw ArgumentError(
        fmt::format("'{}' is no field on cells, nodes or faces of this mesh as it is partitioned: fields "
                    "on edges do not move, make them on the new mesh by field(at=\"edges\"); others "
                    "belong to another mesh, or to this one on another partition",
                    field.father().label()));
}

/// Arguments of repartition, after all ranks have agreed on them.
struct Moving {
    Geom::MeshOptions options;
    Geom::RepartitionOptions how;
    std::optional<std::vector<int>> targets;
    std::vector<index> costs;
    std::optional<std::vector<real>> clusterCosts; ///< of cells of a mesh with clusters
    std::vector<nb::object> fields;                ///< as long as they move
    std::vector<Geom::MovingRows> rows;

    const Field &field(std::size_t k) const { return nb::cast<const Field &>(fields[k]); }
};

/// Throws ArgumentError on all ranks where they give different fields, or some of them targets. Collective.
void agreeOn(const Mesh &mesh, const Moving &moving) {
    const nb::gil_scoped_release others;
    requireSameSettings(mesh.comm->view, "repartition", [&] {
        return std::vector<std::string>{moving.targets ? "targets = given" : "targets = None"};
    });
    Geom::requireSameFields(mesh.comm->view, moving.rows);
}

/// Moves the fields, and pulls their ghosts. Collective.
std::vector<std::unique_ptr<Field>> moveFields(const Moving &moving, Geom::MovedMesh &mesh) {
    std::vector<std::unique_ptr<Field>> made;
    for (std::size_t k = 0; k < moving.fields.size(); ++k) {
        const Redistribute *rows = nullptr;
        {
            const nb::gil_scoped_release others;
            rows = &mesh.rows(moving.rows[k].kind);
        }
        made.push_back(moving.field(k).moved(*rows, mesh.entitiesOf(moving.rows[k].kind).pattern));
    }
    const nb::gil_scoped_release others;
    for (const auto &field : made)
        field->exchanger().startPull();
    for (const auto &field : made)
        field->exchanger().waitPull();
    return made;
}

nb::tuple repartition(const Mesh &self, nb::handle targets, nb::handle weights, const nb::iterable &fields,
                      std::string_view partitioner, std::optional<std::string_view> ghostsBy,
                      std::optional<int> ghostLayers, std::optional<std::string_view> cellOrder) {
    Moving moving;
    guarded(self.comm->view, [&] {
        DNDS_CHECK(targets.is_none() || weights.is_none(), ArgumentError,
                   "weights have no effect where targets are given: leave out one of them");
        moving.how.partitioner = chosen(partitioner, "partitioner", partitioners);
        moving.options.ghostsBy = ghostsBy ? chosen(*ghostsBy, "kind of ghosts", ghostNeighbours) : self.data->ghostsBy;
        moving.options.cellOrder = cellOrder ? chosen(*cellOrder, "order of cells", orders) : self.data->cellOrder;
        moving.options.ghostLayers = ghostLayers.value_or(self.mesh().ghostLayers);
        if (!targets.is_none()) {
            moving.targets.emplace();
            const Integers ranks(targets, "targets"); // may be a copy
            for (const index rank : ranks.span())
                moving.targets->push_back(rank >= 0 && rank < self.comm->view.size() ? static_cast<int>(rank) : -1);
        }
        if (self.data->cut)
            moving.clusterCosts = costsOrNone(weights, "weights");
        else
            moving.costs = integersOrNone(weights, "weights");
        for (const nb::handle field : fields) {
            if (!nb::isinstance<Field>(field))
                throw nb::type_error("what moves with a mesh are Field objects");
            moving.fields.push_back(nb::borrow(field));
            const auto &its = nb::cast<const Field &>(field);
            moving.rows.push_back({kindOf(self, its), &its.father()});
        }
    });
    agreeOn(self, moving);
    std::unique_ptr<Geom::MovedMesh> moved;
    {
        const nb::gil_scoped_release others;
        if (!moving.targets)
            moving.targets = self.data->cut ? targetsOf(self.comm->view, *self.data, moving.clusterCosts)
                                            : Geom::repartitionTargets(self.mesh(), moving.costs, moving.how);
        moved = std::make_unique<Geom::MovedMesh>(self.mesh(), *moving.targets, moving.options);
    }
    std::vector<std::unique_ptr<Field>> made = moveFields(moving, *moved);
    Mesh after{self.comm, nullptr};
    {
        const nb::gil_scoped_release others;
        after.data = dataOf(moved->take(), self.data->report, moving.options, self.data->cut);
    }
    nb::list list;
    for (std::size_t k = 0; k < made.size(); ++k) {
        setMeshOf(*made[k], after, after.mesh().entities(moving.rows[k].kind));
        list.append(nb::cast(std::move(made[k])));
    }
    return nb::make_tuple(std::move(after), std::move(list));
}

const char *const buildText =
    R"(Partitions a mesh over the ranks of its communicator, finds faces and ghosts. Collective.

`partitioner` is "graph" (PT-Scotch, fewest faces between ranks) or "curve" (pieces of a Hilbert curve, fast); `part`
[block of the source] gives ranks instead. `weights` [block of the source] are costs of cells, integers from 1: ranks get
equal shares, with `imbalance` 0.03 at most 3 % more; give them on all ranks or on none. `cells_per_cluster` cuts clusters
for sparse fields, of which ranks get equally many, or, with `weights`, equal shares; `clusters` are those of a SourceClusters, with
any `part` that keeps them whole. Ghosts are `ghost_layers` of
cells that share "nodes" or "faces" with the previous layer. `cell_order` is "curve" or "reverse-cuthill-mckee".
`progress` is called with the name of each step, on the ranks that give it; an exception ends its calls and is raised on
all ranks when the mesh is built.
Raises DataError or ArgumentError on all ranks.)";

void bindFieldsOf(nb::class_<Mesh> &type) {
    type.def(
            "field", &makeField, "width"_a.none() = nb::none(), "dtype"_a = "float64", nb::kw_only(), "at"_a = "cells",
            "name"_a = "field",
            nb::sig("def field(self, width: int | None = None, dtype: numpy.typing.DTypeLike = 'float64', *, "
                    "at: str = 'cells', name: str = 'field') -> Field"),
            R"(A field of zeros on cells, "nodes", "faces" or "edges", with their ghosts: data is [all, width], or [all] for
width None. Collective.)")
        .def("repartition", &repartition, "targets"_a.none() = nb::none(), nb::kw_only(),
             "weights"_a.none() = nb::none(), "fields"_a = nb::tuple(), "partitioner"_a = "curve",
             "ghosts_by"_a.none() = nb::none(), "ghost_layers"_a.none() = nb::none(),
             "cell_order"_a.none() = nb::none(),
             nb::sig("def repartition(self, targets: numpy.typing.ArrayLike | None = None, *, "
                     "weights: numpy.typing.ArrayLike | None = None, "
                     "fields: collections.abc.Iterable[Field] = (), partitioner: str = 'curve', "
                     "ghosts_by: str | None = None, ghost_layers: int | None = None, cell_order: str | None = None) "
                     "-> tuple[Mesh, list[Field]]"),
             R"(The mesh on another partition, and fields of this mesh moved to it, with current ghosts. Collective.

`targets` [own cells] are ranks; without them, shares of equal `weights` [own cells], integers from 1, are found with
"curve" or "graph". Clusters stay whole: see `repartition_targets`; weights are any numbers then, and sparse fields follow
by their `moved`. Ghosts and order of cells are those of this mesh, or given as in `build`. All ranks give the same
fields in the same order. This mesh and its fields stay as they are. Raises ArgumentError or StateError on all ranks.

    mesh, (u, p) = mesh.repartition(weights=costs, fields=[u, p])
)")
        .def("first_layers", &firstLayers, "layers"_a, "fields"_a,
             nb::sig("def first_layers(self, layers: int, fields: collections.abc.Sequence[Field]) -> FieldGroup"),
             R"(A group of fields on the cells that pulls the first layers of ghosts only; the others are left alone.
Collective; O(ghosts). Make it once, and pull in the time loop:

    near = mesh.first_layers(1, [u])
    near.pull()
)");
}

} // namespace

void bindMesh(nb::module_ &module) {
    nb::class_<Mesh> type(module, "Mesh",
                          R"(One rank's part of a mesh: cells, nodes and faces with ghosts, and their connectivity.

In all lists owned entities come first, then ghosts; entries are local numbers unless stated otherwise. Lists are
read-only NumPy arrays without copying, which may outlive the mesh.

    mesh = dnds.Mesh.read("wing.cgns")
    u = mesh.field(5)
    with u.start_pull():
        ...
)");
    type.def_static("build", &buildMesh, "source"_a, nb::kw_only(), "partitioner"_a = "graph", "imbalance"_a = 0.03,
                    "seed"_a = 1, "part"_a.none() = nb::none(), "weights"_a.none() = nb::none(),
                    "ghosts_by"_a = "nodes", "ghost_layers"_a = 1, "cell_order"_a = "curve",
                    "cells_per_cluster"_a.none() = nb::none(), "clusters"_a.none() = nb::none(),
                    "progress"_a.none() = nb::none(),
                    nb::sig("def build(source: SourceMesh, *, partitioner: str = 'graph', imbalance: float = 0.03, "
                            "seed: int = 1, part: numpy.typing.ArrayLike | None = None, "
                            "weights: numpy.typing.ArrayLike | None = None, ghosts_by: str = 'nodes', "
                            "ghost_layers: int = 1, cell_order: str = 'curve', cells_per_cluster: int | None = None, "
                            "clusters: SourceClusters | None = None, "
                            "progress: collections.abc.Callable[[str], object] | None = None) -> Mesh"),
                    buildText)
        .def_static(
            "read",
            [](const nb::args &arguments, const nb::kwargs &options) {
                return readAndBuild("read", Makes::Together, arguments, options,
                                    {"path", "comm", "base", "join_coincident_nodes"});
            },
            nb::sig("def read(path: str | os.PathLike[str], comm: mpi4py.MPI.Comm | None = None, *, base: str = '', "
                    "join_coincident_nodes: bool = False, partitioner: str = 'graph', imbalance: float = 0.03, "
                    "seed: int = 1, part: numpy.typing.ArrayLike | None = None, "
                    "weights: numpy.typing.ArrayLike | None = None, ghosts_by: str = 'nodes', "
                    "ghost_layers: int = 1, cell_order: str = 'curve', cells_per_cluster: int | None = None, "
                    "progress: collections.abc.Callable[[str], object] | None = None) -> Mesh"),
            "Mesh.build of SourceMesh.read, with the options of both. Collective.")
        .def_static(
            "box",
            [](const nb::args &arguments, const nb::kwargs &options) {
                return readAndBuild("box", Makes::Alone, arguments, options,
                                    {"fill", "cells", "lengths", "jitter", "shuffled", "periodic", "comm"});
            },
            nb::sig("def box(fill: str = 'tetrahedra', cells: collections.abc.Sequence[int] = (8, 8, 8), *, "
                    "lengths: collections.abc.Sequence[float] = (1, 1, 1), jitter: float = 0.0, "
                    "shuffled: bool = False, periodic: collections.abc.Sequence[bool] = (), "
                    "comm: mpi4py.MPI.Comm | None = None, partitioner: str = 'graph', imbalance: float = 0.03, "
                    "seed: int = 1, part: numpy.typing.ArrayLike | None = None, "
                    "weights: numpy.typing.ArrayLike | None = None, ghosts_by: str = 'nodes', "
                    "ghost_layers: int = 1, cell_order: str = 'curve', cells_per_cluster: int | None = None, "
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
            "origin", [](const Mesh &self) { return self.mesh().origin; }, "The file or generator.")
        .def_prop_ro(
            "dimension", [](const Mesh &self) { return self.mesh().dimension; }, "Of cells: 2 or 3.")
        .def_prop_ro(
            "report", &reportOf, nb::sig("def report(self) -> dict[str, typing.Any]"),
            R"(Findings: cells by type, patches, volume, bounding box, warnings, ... The same on all ranks and for
any number of ranks.)");
    bindFieldsOf(type);
}

} // namespace DNDS::Python
