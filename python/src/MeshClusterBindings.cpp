#include "Errors.hpp"
#include "MeshHandle.hpp"
#include "NumpyViews.hpp"
#include "SparseHandle.hpp"

#include <nanobind/stl/string.h>

#include <string>
#include <vector>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

const Geom::MeshClusters &clustersOf(const Mesh &mesh) {
    DNDS_CHECK(mesh.data->clusters != nullptr, StateError,
               "{} was not built of clusters: give cells_per_cluster, for example 4096, to Mesh.read or Mesh.build",
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

} // namespace

void bindMeshClusters(nb::module_ &module) {
    nb::class_<Mesh> type = nb::borrow<nb::class_<Mesh>>(module.attr("Mesh"));
    type.def("sparse_field", &sparseFieldOf, "name"_a = "field", "components"_a = 1, "dtype"_a = "float64",
             nb::kw_only(), "stages"_a = 1, "allocation_threshold"_a = 0.0, "deallocation_threshold"_a = 0.0,
             "deallocation_count"_a = 5, "send_below_threshold"_a = true, "default"_a = 0,
             nb::sig(
                 "def sparse_field(self, name: str = 'field', components: int = 1, dtype: DTypeLike = 'float64', "
                 "*, stages: int = 1, allocation_threshold: float = 0.0, deallocation_threshold: float = 0.0, "
                 "deallocation_count: int = 5, send_below_threshold: bool = True, default: float = 0) -> SparseField"),
             R"(A field that has memory only in clusters of cells in which something is. Collective.

The mesh was built with `cells_per_cluster`. Views of a block have the cluster's cells, in the order of the file, and
with ghosts=True behind them its ghosts, in layers as the mesh has them: see `cluster_cells` and `cluster_neighbours`.
Raises StateError for other meshes.)")
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
