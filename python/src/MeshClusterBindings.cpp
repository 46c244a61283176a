#include "Errors.hpp"
#include "Integers.hpp"
#include "MeshHandle.hpp"
#include "NumpyViews.hpp"
#include "SparseHandle.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

const Geom::MeshClusters &clustersOf(const Mesh &mesh) {
    DNDS_CHECK(mesh.data->clusters != nullptr, StateError,
               "{} was not built of clusters: give cells_per_cluster, for example 4096, to Mesh.read or Mesh.build, or "
               "clusters to Mesh.build",
               mesh.mesh().origin);
    return *mesh.data->clusters;
}

SparseHandle sparseFieldOf(const Mesh &mesh, const std::string &name, rowsize components, nb::handle dtype, int stages,
                           real allocationThreshold, real deallocationThreshold, int deallocationCount,
                           bool sendBelowThreshold, nb::handle defaultValue) {
    return makeSparseField(
        mesh.comm, clustersOf(mesh).pattern(), mesh.data->fingerprint,
        {name,
         dtype,
         defaultValue,
         {components, stages, allocationThreshold, deallocationThreshold, deallocationCount, sendBelowThreshold}});
}

nb::object cellsOf(const Mesh &mesh, int block) { return numpyOf(clustersOf(mesh).cells(block), mesh.data); }

nb::tuple neighboursOf(const Mesh &mesh, int block) {
    const Geom::MeshClusters &clusters = clustersOf(mesh);
    (void)clusters.cells(block); // throws for unknown blocks
    const index own = clusters.pattern()->blocks()[toSize(block)].cells.size();
    const auto starts = std::make_shared<std::vector<index>>(1, 0);
    const auto all = std::make_shared<std::vector<LocalIndex>>();
    for (index cell = 0; cell < own; ++cell) {
        const auto next = clusters.neighbours(block, cell);
        all->insert(all->end(), next.begin(), next.end());
        starts->push_back(static_cast<index>(all->size()));
    }
    return nb::make_tuple(numpyOf(std::span<const index>(*starts), starts),
                          numpyOf(std::span<const LocalIndex>(*all), all));
}

Clusters cutSource(const Source &source, index cellsPerCluster) {
    const Geom::SourceMesh *mesh = nullptr;
    guarded(source.comm()->view, [&] { mesh = source.mesh().get(); });
    const nb::gil_scoped_release others;
    return {source.comm(), std::make_shared<const Geom::SourceClusters>(
                               Geom::cutClusters(source.comm()->view, *mesh, cellsPerCluster))};
}

Clusters clustersGiven(const Source &source, nb::handle clusterOf) {
    const CommunicatorView comm = source.comm()->view;
    Geom::SourceClusters cut;
    guarded(comm, [&] {
        const Integers numbers(clusterOf, "clusters of cells");
        cut.clusterOf.assign(numbers.span().begin(), numbers.span().end());
        const std::size_t cells = source.mesh()->cells.types.size();
        DNDS_CHECK(cut.clusterOf.size() == cells, ArgumentError, "{} clusters are given for {} cells of this block",
                   cut.clusterOf.size(), cells);
        for (const index cluster : cut.clusterOf)
            cut.count = std::max(cut.count, cluster + 1);
    });
    const nb::gil_scoped_release others;
    cut.count = comm.allReduce(cut.count, MPI_MAX);
    const std::vector<index> sizes = comm.allGather(static_cast<index>(cut.clusterOf.size()));
    cut.firstCells.assign(1, 0);
    for (const index size : sizes)
        cut.firstCells.push_back(cut.firstCells.back() + size);
    comm.guarded([&] { cut.require(comm); });
    return {source.comm(), std::make_shared<const Geom::SourceClusters>(std::move(cut))};
}

nb::object ranksOf(std::vector<int> ranks) {
    const auto held = std::make_shared<const std::vector<int>>(std::move(ranks));
    return numpyOf(std::span<const int>(*held), held);
}

nb::object parts(const Clusters &self, nb::handle costs) {
    std::optional<std::vector<real>> numbers;
    guarded(self.comm->view, [&] { numbers = costsOrNone(costs, "costs"); });
    std::vector<int> made;
    {
        const nb::gil_scoped_release others;
        made = partsOf(self.comm->view, *self.cut, numbers);
    }
    return ranksOf(std::move(made));
}

nb::object targets(const Mesh &mesh, nb::handle costs, real imbalance) {
    const Geom::MeshClusters *clusters = nullptr;
    std::optional<std::vector<real>> numbers;
    guarded(mesh.comm->view, [&] {
        clusters = &clustersOf(mesh);
        numbers = costsOrNone(costs, "costs");
        DNDS_CHECK(numbers, ArgumentError, "the costs of clusters are missing");
    });
    std::vector<int> made;
    {
        const nb::gil_scoped_release others;
        made = Geom::repartitionTargets(*clusters, *numbers, imbalance);
    }
    return ranksOf(std::move(made));
}

SparseHandle movedTo(const SparseHandle &self, const Mesh &mesh) {
    const Geom::MeshClusters *clusters = nullptr;
    guarded(self.comm->view, [&] { clusters = &clustersOf(mesh); });
    const nb::gil_scoped_release others;
    return {mesh.comm, self.field->moved(clusters->pattern()), mesh.data->fingerprint};
}

} // namespace

std::optional<std::vector<real>> costsOrNone(nb::handle given, const char *what) {
    if (given.is_none())
        return std::nullopt;
    const nb::object list = nb::module_::import_("numpy").attr("ascontiguousarray")(given, "float64");
    nb::ndarray<const real, nb::ndim<1>, nb::c_contig, nb::device::cpu> numbers;
    DNDS_CHECK(nb::try_cast(list, numbers), ArgumentError, "{} are no list of numbers", what);
    return std::vector<real>(numbers.data(), numbers.data() + numbers.size());
}

std::vector<int> partsOf(CommunicatorView comm, const Geom::SourceClusters &cut,
                         const std::optional<std::vector<real>> &costs) {
    if (comm.allReduce(costs ? 1 : 0, MPI_MAX) == 0)
        return cut.parts(comm.size());
    return cut.parts(comm, costs.value_or(std::vector<real>{}));
}

std::vector<int> targetsOf(CommunicatorView comm, const MeshData &data, const std::optional<std::vector<real>> &costs) {
    const bool given = comm.allReduce(costs ? 1 : 0, MPI_MAX) != 0;
    std::vector<real> ofClusters;
    comm.guarded([&] {
        const index cells = data.mesh.cells.owned;
        DNDS_CHECK(!given || (costs && static_cast<index>(costs->size()) == cells), ArgumentError,
                   "{} weights are given for {} own cells", costs ? costs->size() : 0, cells);
        const auto blocks = data.clusters->pattern()->blocks();
        for (int b = 0; b < static_cast<int>(blocks.size()); ++b) {
            real &sum = ofClusters.emplace_back(0);
            for (const LocalIndex cell : data.clusters->cells(b).first(toSize(blocks[toSize(b)].cells.size())))
                sum += given ? (*costs)[toSize(cell)] : 1;
        }
    });
    return Geom::repartitionTargets(*data.clusters, ofClusters);
}

void bindSourceClusters(nb::module_ &module) {
    nb::class_<Clusters>(module, "SourceClusters",
                         R"(The cluster of each cell of a mesh before it is partitioned. Ranks own whole clusters, any.

    source = dnds.SourceMesh.read("wing.cgns")
    cut = dnds.SourceClusters.cut(source)
    mesh = dnds.Mesh.build(source, clusters=cut, part=cut.parts(costs))
)")
        .def(
            "__init__",
            [](Clusters *self, const Source &source, nb::handle clusterOf) {
                new (self) Clusters(clustersGiven(source, clusterOf));
            },
            "source"_a, "cluster_of"_a,
            nb::sig("def __init__(self, source: SourceMesh, cluster_of: numpy.typing.ArrayLike) -> None"),
            "A program's own: numbers from 0 of the clusters of the cells [block]. Collective. Raises ArgumentError on "
            "all "
            "ranks.")
        .def_static("cut", &cutSource, "source"_a, "cells_per_cluster"_a = 4096,
                    nb::sig("def cut(source: SourceMesh, cells_per_cluster: int = 4096) -> SourceClusters"),
                    "Pieces of a Hilbert curve of about so many cells, the same on any number of ranks. Collective.")
        .def(
            "parts", &parts, "costs"_a.none() = nb::none(),
            nb::sig(
                "def parts(self, costs: numpy.typing.ArrayLike | None = None) -> numpy.typing.NDArray[numpy.int32]"),
            R"(A rank for each cell [block], for `Mesh.build`: each rank gets a run of clusters, equally many, or equal shares of the
costs of the cells [block], in any unit, at most 1 % more than the best such cut. Collective. Raises ArgumentError on all ranks.)")
        .def_prop_ro(
            "count", [](const Clusters &self) { return self.cut->count; }, "Clusters of all ranks.")
        .def_prop_ro(
            "cluster_of",
            [](const Clusters &self) { return numpyOf(std::span<const index>(self.cut->clusterOf), self.cut); },
            nb::sig("def cluster_of(self) -> numpy.typing.NDArray[numpy.int64]"),
            "The cluster of each cell of this rank's block: [block].");
}

void bindMeshClusters(nb::module_ &module) {
    nb::borrow<nb::class_<SparseHandle>>(module.attr("SparseField"))
        .def("moved", &movedTo, "mesh"_a, nb::sig("def moved(self, mesh: Mesh) -> SparseField"),
             R"(The same on the clusters of a mesh of `repartition`.

    mesh, (gas,) = mesh.repartition(mesh.repartition_targets(costs), fields=[gas])
    dust = dust.moved(mesh)
)");
    nb::class_<Mesh> type = nb::borrow<nb::class_<Mesh>>(module.attr("Mesh"));
    type.def("sparse_field", &sparseFieldOf, "name"_a = "field", "components"_a = 1, "dtype"_a = "float64",
             nb::kw_only(), "stages"_a = 1, "allocation_threshold"_a = 0.0, "deallocation_threshold"_a = 0.0,
             "deallocation_count"_a = 5, "send_below_threshold"_a = true, "default"_a = 0,
             nb::sig(
                 "def sparse_field(self, name: str = 'field', components: int = 1, dtype: DTypeLike = 'float64', "
                 "*, stages: int = 1, allocation_threshold: float = 0.0, deallocation_threshold: float = 0.0, "
                 "deallocation_count: int = 5, send_below_threshold: bool = True, default: float = 0) -> SparseField"),
             R"(A field that has memory only in clusters of cells in which something is. Collective.

The mesh was built with `cells_per_cluster` or `clusters`. Views of a block have the cluster's cells, in the order of the file, and
with ghosts=True behind them its ghosts, in layers as the mesh has them: see `cluster_cells` and `cluster_neighbours`.
Raises StateError for other meshes.)")
        .def_prop_ro(
            "clusters",
            [](const Mesh &mesh) {
                std::vector<int> numbers;
                if (mesh.data->clusters)
                    for (const BlockMemory &block : mesh.data->clusters->pattern()->blocks())
                        numbers.push_back(block.block);
                return ranksOf(std::move(numbers));
            },
            nb::sig("def clusters(self) -> numpy.typing.NDArray[numpy.int32]"),
            "The numbers of this rank's clusters, the blocks of its sparse fields; none of a mesh without clusters.")
        .def(
            "repartition_targets", &targets, "costs"_a, "imbalance"_a = 0.1,
            nb::sig("def repartition_targets(self, costs: numpy.typing.ArrayLike, imbalance: float = 0.1) -> "
                    "numpy.typing.NDArray[numpy.int32]"),
            R"(Targets for `repartition` by which ranks have equal shares of the costs of clusters: [own cells]. Collective.

`costs` are those of this rank's clusters, in any unit. Ranks get runs of clusters; few move. Raises ArgumentError on all ranks.)")
        .def("cluster_cells", &cellsOf, "block"_a,
             nb::sig("def cluster_cells(self, block: int) -> numpy.typing.NDArray[numpy.int32]"),
             "The mesh's cells of a cluster of this rank: own ones, then its ghosts. Local.")
        .def("cluster_neighbours", &neighboursOf, "block"_a,
             nb::sig("def cluster_neighbours(self, block: int) -> tuple[numpy.typing.NDArray[numpy.int64], "
                     "numpy.typing.NDArray[numpy.int32]]"),
             R"(Across the faces of each cell of a cluster, places in views with ghosts: (starts, places), of cell i
places[starts[i]:starts[i + 1]], -1 at the boundary. Local; makes the lists anew.)");
}

} // namespace DNDS::Python
