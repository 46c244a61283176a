#include "Errors.hpp"
#include "MeshHandle.hpp"
#include "NumpyViews.hpp"

#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Read/ReadMesh.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <utility>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;
using Geom::SourceMesh;

namespace {

Source readSource(nb::handle file, nb::handle comm, const std::string &base, bool joinNodes) {
    CommPtr shared = commOf(comm);
    std::string path;
    guarded(shared->view, [&] { path = pathOf(file); });
    Geom::CgnsOptions options;
    options.base = base;
    options.joinCoincidentNodes = joinNodes;
    const auto read = [&] {
        const nb::gil_scoped_release others;
        return Geom::readMesh(shared->view, path, options);
    };
    return {shared, read()};
}

Source makeBox(std::string_view fill, std::vector<index> cells, std::vector<real> lengths, real jitter, bool shuffled,
               std::vector<bool> periodic, std::uint64_t seed, nb::handle comm) {
    DNDS_CHECK(cells.size() == 2 || cells.size() == 3, ArgumentError,
               "a box has cells in two or three directions, not in {}", cells.size());
    DNDS_CHECK(lengths.size() <= 3 && periodic.size() <= 3, ArgumentError, "a box has at most three directions");
    CommPtr shared = commOf(comm);
    Geom::BoxMeshOptions options;
    options.fill = Geom::boxCellsOf(fill);
    cells.resize(3, 1);
    lengths.resize(3, 1);
    periodic.resize(3, false);
    std::copy(cells.begin(), cells.end(), options.cells.begin());
    std::copy(lengths.begin(), lengths.end(), options.lengths.begin());
    std::copy(periodic.begin(), periodic.end(), options.periodic.begin());
    options.jitter = jitter;
    options.shuffled = shuffled;
    options.seed = seed;
    const auto make = [&] {
        const nb::gil_scoped_release others;
        return Geom::makeBoxMesh(options, shared->view);
    };
    return {shared, make()};
}

} // namespace

const std::shared_ptr<SourceMesh> &Source::mesh() const {
    DNDS_CHECK(mesh_ != nullptr, StateError, "this SourceMesh was used up: read or make it again");
    return mesh_;
}

SourceMesh Source::take() {
    (void)mesh();
    const std::shared_ptr<SourceMesh> taken = std::exchange(mesh_, nullptr);
    SourceMesh own = std::move(*taken);
    if (taken.use_count() > 1) {
        taken->coordinates = std::move(own.coordinates); // their memory is what views show
        own.coordinates = taken->coordinates;
    }
    return own;
}

void bindSource(nb::module_ &module) {
    nb::class_<Source>(module, "SourceMesh",
                       R"(A mesh from a file or a generator: each rank has a block of each list.

`Mesh.build` partitions and consumes it: later uses raise StateError.)")
        .def_static(
            "read", &readSource, "path"_a.none(), "comm"_a.none() = nb::none(), nb::kw_only(), "base"_a = "",
            "join_coincident_nodes"_a = false,
            nb::sig("def read(path: str | os.PathLike[str], comm: mpi4py.MPI.Comm | None = None, *, "
                    "base: str = '', join_coincident_nodes: bool = False) -> SourceMesh"),
            R"(Reads a CGNS, Gmsh, SU2, UGRID, VTKHDF or VTU file, or a case of OpenFOAM, each rank its share. Collective.

`base` is the base of a CGNS file (needed where several have cells), or the zone of an SU2 file or the region
of a case of OpenFOAM that has several;
with `join_coincident_nodes`, coincident nodes of different zones of a CGNS file become one. Raises DataError on all ranks, with the file and the element.)")
        .def_static("box", &makeBox, "fill"_a = "tetrahedra", "cells"_a = std::vector<index>{8, 8, 8}, nb::kw_only(),
                    "lengths"_a = std::vector<real>{1, 1, 1}, "jitter"_a = 0.0, "shuffled"_a = false,
                    "periodic"_a = std::vector<bool>{}, "seed"_a = 1, "comm"_a.none() = nb::none(),
                    nb::sig("def box(fill: str = 'tetrahedra', cells: collections.abc.Sequence[int] = (8, 8, 8), *, "
                            "lengths: collections.abc.Sequence[float] = (1, 1, 1), jitter: float = 0.0, "
                            "shuffled: bool = False, periodic: collections.abc.Sequence[bool] = (), seed: int = 1, "
                            "comm: mpi4py.MPI.Comm | None = None) -> SourceMesh"),
                    R"(A box [0, lengths[0]] x ... of bricks divided into cells; the same mesh on any number of ranks.

`fill` is triangles, quadrilaterals, mixed-surface (two dimensions), tetrahedra, hexahedra, prisms, mixed-volume or
polyhedra. Inner nodes move at random by `jitter` bricks, at most 0.15; `shuffled` numbers everything at random;
`periodic` lists directions. Sides that are not periodic are the patches "x-", "x+", "y-", ... Local.)")
        .def_prop_ro(
            "origin", [](const Source &self) { return self.mesh()->origin; }, "The file or generator.")
        .def_prop_ro(
            "dimension", [](const Source &self) { return self.mesh()->cellDimension; }, "Of cells: 2 or 3.")
        .def_prop_ro(
            "cell_count", [](const Source &self) { return self.mesh()->cells.globalSize; }, "Cells on all ranks.")
        .def_prop_ro(
            "node_count", [](const Source &self) { return self.mesh()->globalNodes; }, "Nodes on all ranks.")
        .def_prop_ro(
            "coordinates",
            [](const Source &self) {
                auto &points = self.mesh()->coordinates;
                Block block;
                block.data = points.data();
                block.shape = {points.size(), 3};
                block.strides = {3, 1};
                return numpyOf(block, self.mesh(), true);
            },
            nb::sig("def coordinates(self) -> numpy.typing.NDArray[numpy.float64]"),
            "The nodes of this rank's block: [block, 3], writable, without copying.")
        .def_prop_ro(
            "cell_types",
            [](const Source &self) {
                static_assert(sizeof(Geom::ElementType) == 1);
                // a copy: the mesh takes its lists when it is built
                const auto types = std::make_shared<const std::vector<Geom::ElementType>>(self.mesh()->cells.types);
                const auto *values = reinterpret_cast<const std::uint8_t *>(types->data());
                return numpyOf(std::span<const std::uint8_t>(values, types->size()), types);
            },
            nb::sig("def cell_types(self) -> numpy.typing.NDArray[numpy.uint8]"),
            "The type of each cell of this rank's block by its number in the CGNS standard, see `element_name`: "
            "[block].")
        .def_prop_ro(
            "patches",
            [](const Source &self) {
                nb::list names;
                for (const Geom::BoundaryPatch &patch : self.mesh()->patches)
                    names.append(stringOf(patch.name));
                return names;
            },
            nb::sig("def patches(self) -> list[str]"), "The names of the parts of the boundary.")
        .def_prop_ro(
            "warnings", [](const Source &self) { return stringsOf(self.mesh()->warnings); },
            nb::sig("def warnings(self) -> list[str]"), "What was doubtful in the file.");
}

} // namespace DNDS::Python
