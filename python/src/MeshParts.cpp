#include "Arguments.hpp"
#include "Errors.hpp"
#include "Integers.hpp"
#include "MeshHandle.hpp"
#include "NumpyViews.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"

#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

nb::object partition(const Mesh &self, int parts, std::string_view partitioner, real imbalance, int seed,
                     nb::handle given) {
    Geom::Partitioner kind{};
    std::vector<index> weights;
    guarded(self.comm->view, [&] {
        kind = chosen(partitioner, "partitioner", partitioners);
        weights = integersOrNone(given, "weights");
    });
    const auto divided = std::make_shared<std::vector<int>>();
    {
        const nb::gil_scoped_release others;
        *divided = Geom::partitionCells(self.mesh(), parts, kind, {imbalance, seed}, weights);
    }
    return numpyOf(std::span<const int>(*divided), divided);
}

nb::dict reportOf(const Mesh &self, nb::handle part, int parts, std::string_view ghostsBy, nb::handle given) {
    std::vector<int> ranks;
    std::vector<index> weights;
    Geom::GhostNeighbours neighbours{};
    guarded(self.comm->view, [&] {
        neighbours = chosen(ghostsBy, "kind of ghosts", ghostNeighbours);
        weights = integersOrNone(given, "weights");
        const Integers list(part, "parts");
        for (const index number : list.span())
            ranks.push_back(number >= 0 && number < parts ? static_cast<int>(number) : -1);
    });
    const auto report = [&] {
        const nb::gil_scoped_release others;
        return Geom::reportPartition(self.mesh(), ranks, parts, neighbours, weights);
    }();
    nb::list costs;
    for (const auto &cost : report.parts) {
        nb::dict entry;
        entry["cells"] = cost.cells;
        entry["ghosts"] = cost.ghosts;
        entry["faces"] = cost.faces;
        entry["peers"] = cost.peers;
        entry["weight"] = cost.weight;
        costs.append(entry);
    }
    nb::dict result;
    result["parts"] = costs;
    result["cut"] = report.cut;
    result["inner_faces"] = report.innerFaces;
    result["imbalance"] = report.imbalance;
    return result;
}

} // namespace

void bindMeshParts(nb::module_ &module) {
    nb::class_<Mesh> type = nb::borrow<nb::class_<Mesh>>(module.attr("Mesh"));
    type.def("partition", &partition, "parts"_a, nb::kw_only(), "partitioner"_a = "graph", "imbalance"_a = 0.03,
             "seed"_a = 1, "weights"_a.none() = nb::none(),
             nb::sig(
                 "def partition(self, parts: int, *, partitioner: str = 'graph', imbalance: float = 0.03, "
                 "seed: int = 1, weights: numpy.typing.ArrayLike | None = None) -> numpy.typing.NDArray[numpy.int32]"),
             R"(Divides the cells into any number of parts: the part of each owned cell, [owned]. Collective.

`weights` [owned] are costs of cells, integers from 1: parts get equal shares. The mesh is not changed. It needs a layer
of ghosts unless it is on one rank.)")
        .def(
            "partition_report", &reportOf, "part"_a, "parts"_a, nb::kw_only(), "ghosts_by"_a = "nodes",
            "weights"_a.none() = nb::none(),
            nb::sig(
                "def partition_report(self, part: numpy.typing.ArrayLike, parts: int, *, "
                "ghosts_by: str = 'nodes', weights: numpy.typing.ArrayLike | None = None) -> dict[str, typing.Any]"),
            R"(Measures a division, `part` [owned cells]: faces cut, imbalance (of `weights` [owned cells], if given), and
cells, ghosts, faces, peers and weight of each part. Collective.)");
}

} // namespace DNDS::Python
