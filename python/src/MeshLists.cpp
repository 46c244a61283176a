#include "Errors.hpp"
#include "Integers.hpp"
#include "MeshHandle.hpp"
#include "NumpyViews.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <utility>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;
using Geom::UnstructuredMesh;

namespace {

// Views are read-only; the casts are for functions that return writable ones, too.
nb::object viewOf(const ArrayBase &array) { return elementsOf(const_cast<ArrayBase &>(array), false); }

/// [n] for one number per row, instead of [n, 1].
nb::object numbersOf(const ArrayBase &array) { return viewOf(array).attr("reshape")(-1); }

template <class T>
nb::object listOf(const Mesh &self, const std::vector<T> &list) {
    return numpyOf(std::span<const T>(list), self.data);
}

template <class T>
void addList(nb::class_<Mesh> &type, const char *name, std::vector<T> UnstructuredMesh::*list, const char *text) {
    type.def_prop_ro(
        name, [list](const Mesh &self) { return listOf(self, self.mesh().*list); },
        nb::sig(("def " + std::string(name) + "(self) -> numpy.typing.NDArray").c_str()), text);
}

void addAdjacency(nb::class_<Mesh> &type, const char *name, Geom::LocalAdjacency UnstructuredMesh::*rows,
                  const char *text) {
    type.def_prop_ro(
        name,
        [rows](const Mesh &self) {
            return Adjacency{std::shared_ptr<const Geom::LocalAdjacency>(self.data, &(self.mesh().*rows))};
        },
        text);
}

Adjacency adjacencyOf(const Mesh &self, std::string_view from, std::string_view to) {
    const Geom::MeshEntityKind ofKind = chosen(from, "kind of entities", entityKinds);
    const Geom::MeshEntityKind toKind = chosen(to, "kind of entities", entityKinds);
    const nb::gil_scoped_release others;
    return {std::shared_ptr<const Geom::LocalAdjacency>(self.data, &self.mesh().adjacency(ofKind, toKind))};
}

nb::object rowOf(const Adjacency &self, index row) {
    DNDS_CHECK(row >= 0 && row < self.rows->size(), IndexError, "'{}': row {} is outside [0, {})", self.rows->label(),
               row, self.rows->size());
    return numpyOf(std::span<const LocalIndex>(self.rows->row(row)), self.rows);
}

/// The entries of some rows, one row after another, and for each of them the place of its row in the list.
nb::tuple pairsOf(const Adjacency &self, nb::handle list) {
    const Integers rows(list, "rows");
    const auto places = std::make_shared<std::vector<index>>(), entries = std::make_shared<std::vector<index>>();
    for (std::size_t place = 0; place < rows.span().size(); ++place) {
        const index row = rows.span()[place];
        DNDS_CHECK(row >= 0 && row < self.rows->size(), IndexError, "'{}': row {} is outside [0, {})",
                   self.rows->label(), row, self.rows->size());
        for (const LocalIndex entry : self.rows->row(row)) {
            places->push_back(static_cast<index>(place));
            entries->push_back(entry);
        }
    }
    return nb::make_tuple(numpyOf(std::span<const index>(*places), places),
                          numpyOf(std::span<const index>(*entries), entries));
}

nb::list patchesOf(const Mesh &self) {
    nb::list patches;
    for (const Geom::MeshPatch &patch : self.mesh().patches) {
        nb::dict entry;
        entry["name"] = stringOf(patch.name);
        entry["kind"] = patch.kind;
        entry["family"] = stringOf(patch.family);
        entry["faces"] = listOf(self, patch.faces);
        patches.append(entry);
    }
    return patches;
}

nb::object facesOfPatch(const Mesh &self, const std::string &name, bool owned) {
    const Geom::MeshPatch &patch = self.mesh().patch(name);
    return owned ? numpyOf(patch.ownFaces(), self.data) : listOf(self, patch.faces);
}

nb::list imagesOf(const Mesh &self) {
    nb::list images;
    for (const Geom::MeshImage &image : self.mesh().images) {
        nb::dict entry;
        entry["matrix"] = nb::module_::import_("numpy").attr("array")(image.motion.matrix).attr("reshape")(3, 3);
        entry["shift"] = nb::module_::import_("numpy").attr("array")(image.motion.shift);
        images.append(entry);
    }
    return images;
}

void bindAdjacency(nb::module_ &module) {
    nb::class_<Adjacency>(module, "Adjacency",
                          R"(Rows of local numbers, of different sizes: row i is data[offsets[i]:offsets[i + 1]].

In place of a number, -1 means that the mesh ends there, -2 an entity of which this rank has no copy.)")
        .def_prop_ro(
            "data", [](const Adjacency &self) { return viewOf(*self.rows); },
            nb::sig("def data(self) -> numpy.typing.NDArray[numpy.int32]"),
            "All entries, row after row, read-only, without copying: [entries].")
        .def_prop_ro(
            "offsets", [](const Adjacency &self) { return offsetsOf(const_cast<Geom::LocalAdjacency &>(*self.rows)); },
            nb::sig("def offsets(self) -> numpy.typing.NDArray[numpy.int64]"),
            "Where rows start in `data`, read-only, without copying: [rows + 1].")
        .def(
            "__len__", [](const Adjacency &self) { return self.rows->size(); }, "The number of rows.")
        .def("__repr__",
             [](const Adjacency &self) {
                 return fmt::format("<dnds.Adjacency '{}': {} rows, {} entries>", self.rows->name(), self.rows->size(),
                                    self.rows->dataSize());
             })
        .def("__getitem__", &rowOf, "row"_a,
             nb::sig("def __getitem__(self, row: int, /) -> numpy.typing.NDArray[numpy.int32]"),
             "The entries of a row, read-only, without copying.")
        .def(
            "pairs", &pairsOf, "rows"_a,
            nb::sig("def pairs(self, rows: numpy.typing.ArrayLike) -> tuple[numpy.typing.NDArray[numpy.int64], "
                    "numpy.typing.NDArray[numpy.int64]]"),
            R"(The entries of some rows in one array, and where in `rows` the row of each stands. Sums over neighbours are

    place, faces = mesh.cell_faces.pairs(cells)
    np.bincount(place, flux[faces], len(cells)))");
}

void bindEntities(nb::module_ &module) {
    nb::class_<Entities>(module, "Entities", "The cells, nodes, faces or edges of this rank: owned ones, then ghosts.")
        .def_prop_ro(
            "owned", [](const Entities &self) { return self.entities->owned; }, "How many are owned.")
        .def_prop_ro(
            "ghosts", [](const Entities &self) { return self.entities->ghosts; }, "How many are ghosts.")
        .def(
            "__len__", [](const Entities &self) { return self.entities->size(); }, "Owned ones and ghosts.")
        .def("__repr__",
             [](const Entities &self) {
                 const auto &mesh = self.owner.mesh();
                 const CommunicatorView &comm = self.owner.comm->view;
                 return fmt::format("<dnds.Entities: {} of {}, on rank {} of {}: {} owned, {} ghosts, {} on all ranks>",
                                    self.name(), mesh.origin, comm.rank(), comm.size(), self.entities->owned,
                                    self.entities->ghosts, self.entities->mapping().global()->globalSize());
             })
        .def_prop_ro(
            "global_count", [](const Entities &self) { return self.entities->mapping().global()->globalSize(); },
            "How many there are on all ranks.")
        .def_prop_ro(
            "global_numbers",
            [](const Entities &self) {
                const GhostMapping &mapping = self.entities->mapping();
                auto numbers = std::make_shared<std::vector<index>>();
                for (index local = 0; local < self.entities->size(); ++local)
                    numbers->push_back(mapping.toGlobal(local));
                return numpyOf(std::span<const index>(*numbers), numbers);
            },
            nb::sig("def global_numbers(self) -> numpy.typing.NDArray[numpy.int64]"),
            "The global number of each: [all].")
        .def_prop_ro(
            "file_numbers", [](const Entities &self) { return listOf(self.owner, self.entities->fileNumbers); },
            nb::sig("def file_numbers(self) -> numpy.typing.NDArray[numpy.int64]"),
            "The position of each in the file, from 0; of faces and edges -1: [all].")
        .def_prop_ro(
            "own_file_numbers",
            [](const Entities &self) { return numpyOf(self.entities->ownFileNumbers(), self.owner.data); },
            nb::sig("def own_file_numbers(self) -> numpy.typing.NDArray[numpy.int64]"),
            "`file_numbers` of owned ones, as checkpoints take them: [owned].")
        .def_prop_ro(
            "images", [](const Entities &self) { return listOf(self.owner, self.entities->images); },
            nb::sig("def images(self) -> numpy.typing.NDArray[numpy.int32]"),
            "The number of each in Mesh.images, 0 for the mesh itself: [all].")
        .def_prop_ro(
            "owners",
            [](const Entities &self) {
                const GhostMapping &mapping = self.entities->mapping();
                auto owners = std::make_shared<std::vector<int>>(static_cast<std::size_t>(self.entities->owned),
                                                                 self.owner.comm->view.rank());
                const RankLists &peers = mapping.ownerPeers();
                for (std::size_t k = 0; k < peers.size(); ++k)
                    owners->insert(owners->end(), static_cast<std::size_t>(peers.starts[k + 1] - peers.starts[k]),
                                   peers.ranks[k]);
                return numpyOf(std::span<const int>(*owners), owners);
            },
            nb::sig("def owners(self) -> numpy.typing.NDArray[numpy.int32]"), "The rank that owns each: [all].");
}

void bindMetrics(nb::module_ &module) {
    using Metrics = Geom::MeshMetrics;
    struct List {
        const char *name;
        nb::object (*view)(const Metrics &);
        const char *text;
    };
    nb::class_<Metrics> type(module, "Metrics",
                             R"(Volumes, areas and centres, read-only; periodic images at their own positions.

In two dimensions "volume" is area and "area" is length.)");
    for (const List &list :
         {List{"volumes", [](const Metrics &m) { return numbersOf(m.volumes); }, "Of each cell: [cells]."},
          List{"centroids", [](const Metrics &m) { return viewOf(m.centroids); }, "Of each cell: [cells, 3]."},
          List{"areas", [](const Metrics &m) { return numbersOf(m.areas); }, "Of each face: [faces]."},
          List{"area_vectors", [](const Metrics &m) { return viewOf(m.areaVectors); },
               "Normals times areas, away from the first cell of each face: [faces, 3]."},
          List{"surface_areas", [](const Metrics &m) { return numbersOf(m.surfaceAreas); },
               "Areas of the faces themselves, which may be curved: [faces], or none unless `curved`."},
          List{"face_centres", [](const Metrics &m) { return viewOf(m.faceCentres); },
               "Centres of area of each face: [faces, 3]."}})
        type.def_prop_ro(
            list.name, list.view,
            nb::sig(("def " + std::string(list.name) + "(self) -> numpy.typing.NDArray[numpy.float64]").c_str()),
            list.text);
    type.def("__repr__", [](const Metrics &m) {
        return fmt::format("<dnds.Metrics of {} cells and {} faces, ghosts included: closure {:.1e}>", m.volumes.size(),
                           m.areas.size(), m.closure);
    });
    type.def_ro("inverted_cells", &Metrics::invertedCells,
                "How many cells of all ranks are inverted at a quadrature point; 0 unless `curved`.");
    type.def_ro(
        "closure", &Metrics::closure,
        R"(The largest sum of outward area vectors over the sum of their lengths, of all cells of all ranks: about 1e-15.)");
}

void bindEntitiesOf(nb::class_<Mesh> &type) {
    type.def_prop_ro(
            "cells",
            [](const Mesh &self) {
                return Entities{self, &self.mesh().cells};
            },
            "Cells: numbers and owners.")
        .def_prop_ro(
            "nodes",
            [](const Mesh &self) {
                return Entities{self, &self.mesh().nodes};
            },
            "Nodes: numbers and owners.")
        .def_prop_ro(
            "faces",
            [](const Mesh &self) {
                return Entities{self, &self.mesh().faces};
            },
            "Faces: numbers and owners.")
        .def(
            "edges",
            [](const Mesh &self) {
                const nb::gil_scoped_release others;
                return Entities{self, &self.mesh().entities(Geom::MeshEntityKind::Edges)};
            },
            "Edges: numbers and owners; in two dimensions the faces. Collective the first time, then local and kept.")
        .def("adjacency", &adjacencyOf, "from_"_a, "to"_a,
             nb::sig("def adjacency(self, from_: str, to: str) -> Adjacency"),
             R"(The "cells", "faces", "edges" or "nodes" `to` of each local one of another kind, by local numbers.

Collective the first time that edges are asked for, else local; kept. Rows of smaller entities are complete, those of larger
ones have local entities, all of them around own cells where ghosts are by nodes. Raises ArgumentError for twice the same kind.

    cells_of_edges = mesh.adjacency("edges", "cells")
    sums = np.add.reduceat(values[cells_of_edges.data], cells_of_edges.offsets[:-1]))")
        .def_prop_ro(
            "coordinates", [](const Mesh &self) { return viewOf(self.mesh().coordinates); },
            nb::sig("def coordinates(self) -> numpy.typing.NDArray[numpy.float64]"),
            "Of each node, images at their own positions: [nodes, 3].")
        .def_prop_ro(
            "cell_types",
            [](const Mesh &self) {
                const auto &types = self.mesh().cellTypes;
                static_assert(sizeof(Geom::ElementType) == 1);
                const auto *values = reinterpret_cast<const std::uint8_t *>(types.data());
                return numpyOf(std::span<const std::uint8_t>(values, types.size()), self.data);
            },
            nb::sig("def cell_types(self) -> numpy.typing.NDArray[numpy.uint8]"),
            "The type of each cell by its number in the CGNS standard, see `element_name`: [cells].")
        .def_prop_ro(
            "face_cells", [](const Mesh &self) { return viewOf(self.mesh().faceCells); },
            nb::sig("def face_cells(self) -> numpy.typing.NDArray[numpy.int32]"),
            "The cell that a face's normal leaves, and the one that it enters, or -1 or -2: [faces, 2].")
        .def_prop_ro("patches", &patchesOf, nb::sig("def patches(self) -> list[dict[str, typing.Any]]"),
                     "Parts of the boundary: name, kind, family, and the local faces [owned and ghosts], ascending.")
        .def("patch", &facesOfPatch, "name"_a, nb::kw_only(), "owned"_a = false,
             nb::sig("def patch(self, name: str, *, owned: bool = False) -> numpy.typing.NDArray[numpy.int32]"),
             "The local faces of a part of the boundary: all, or those that this rank owns, for sums. Raises "
             "ArgumentError that lists the names.")
        .def_prop_ro("images", &imagesOf, nb::sig("def images(self) -> list[dict[str, numpy.typing.NDArray]]"),
                     "The motions x -> matrix x + shift of periodic images; the first is the mesh itself.");
    addList(type, "cell_layers", &UnstructuredMesh::cellLayers,
            "0 for owned cells, 1 for the first ghosts, ...: [cells].");
    addList(type, "boundary_faces", &UnstructuredMesh::boundaryFaces, "Local faces with one cell, ascending.");
    addList(type, "boundary_cells", &UnstructuredMesh::boundaryCells, "The cell of each of `boundary_faces`.");
    addList(type, "shared_faces", &UnstructuredMesh::sharedFaces,
            "Faces of own cells that another rank owns, ascending. With the owned faces, these are all faces of own "
            "cells.");
    type.def_prop_ro(
        "face_patches", [](const Mesh &self) { return numbersOf(self.mesh().facePatches); },
        nb::sig("def face_patches(self) -> numpy.typing.NDArray[numpy.int32]"),
        "The number of the first patch of each face in `patches`, -1 inside the mesh and at periodic boundaries: "
        "[faces].");
}

} // namespace

void bindMeshLists(nb::module_ &module) {
    bindAdjacency(module);
    bindEntities(module);
    bindMetrics(module);
    nb::class_<Mesh> type = nb::borrow<nb::class_<Mesh>>(module.attr("Mesh"));
    bindEntitiesOf(type);
    addAdjacency(type, "cell_nodes", &UnstructuredMesh::cellNodes,
                 "The nodes of each cell in the order of the CGNS standard.");
    addAdjacency(type, "cell_faces", &UnstructuredMesh::cellFaces, "The faces of each cell.");
    addAdjacency(type, "cell_cells", &UnstructuredMesh::cellCells, "The cell across each of `cell_faces`.");
    addAdjacency(type, "node_cells", &UnstructuredMesh::nodeCells,
                 "All local cells around each node, in the order of the file.");
    addAdjacency(type, "face_nodes", &UnstructuredMesh::faceNodes, "The corners of each face.");
    type.def(
        "metrics",
        [](Mesh &self, bool curved) {
            std::shared_ptr<const Geom::MeshMetrics> &metrics = self.metrics[curved ? 1 : 0];
            if (!metrics) {
                const nb::gil_scoped_release others;
                metrics =
                    std::make_shared<const Geom::MeshMetrics>(Geom::computeMetrics(self.mesh(), {.curved = curved}));
            }
            return std::const_pointer_cast<Geom::MeshMetrics>(metrics);
        },
        nb::kw_only(), "curved"_a = false,
        R"(Volumes, centroids, areas, normals. Collective the first time, then kept.

From corners; with `curved` from the maps of all nodes, so that volumes and normals of second-order elements follow their
curved faces.)");
    module.def(
        "element_name",
        [](int number) {
            DNDS_CHECK(Geom::isElementType(number), ArgumentError, "{} is not an element type", number);
            return std::string(Geom::elementInfo(static_cast<Geom::ElementType>(number)).name);
        },
        "type"_a, "The name of a type of `Mesh.cell_types` in the CGNS standard, for example TETRA_4. Local.");
}

} // namespace DNDS::Python
