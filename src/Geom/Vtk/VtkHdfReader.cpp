#include "DNDS/Geom/Vtk/VtkHdfReader.hpp"

#include "DNDS/Geom/File/MeshFile.hpp"
#include "DNDS/Geom/Vtk/VtkHdfFile.hpp"
#include "DNDS/Geom/Vtk/VtkLists.hpp"
#include "DNDS/Mpi/EvenSplit.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <algorithm>
#include <optional>
#include <tuple>

namespace DNDS::Geom {

namespace {

using Detail::VtkHdfFile;

// Sorted starts, none negative: ranges between them are valid.
void requireAscending(const VtkHdfFile &file, const char *name, const std::vector<index> &values) {
    if (values.front() < 0 || !std::ranges::is_sorted(values))
        file.fail(name, "does not ascend");
}

/// Reads the range of faces that this rank's polyhedra name.
/// A rank reads the span from its least to its greatest face. Files number the faces in the order of cells, so the
/// span is about as long as the list; otherwise it may be the whole list.
void readFaces(const VtkHdfFile &file, IndexRange own, VtkLists &lists) {
    VtkFaces faces;
    faces.starts = file.read<index>("PolyhedronOffsets", own.begin, own.size() + 1);
    requireAscending(file, "PolyhedronOffsets", faces.starts);
    faces.faces =
        file.read<index>("PolyhedronToFaces", faces.starts.front(), faces.starts.back() - faces.starts.front());
    if (!faces.faces.empty()) {
        const auto [lowest, highest] = std::ranges::minmax_element(faces.faces);
        faces.first = *lowest;
        if (*lowest < 0 || *highest >= file.rows("FaceOffsets"))
            file.fail("PolyhedronToFaces", "has numbers of faces that do not exist");
        faces.cornerStarts = file.read<index>("FaceOffsets", faces.first, *highest - faces.first + 2);
        requireAscending(file, "FaceOffsets", faces.cornerStarts);
        faces.corners = file.read<index>("FaceConnectivity", faces.cornerStarts.front(),
                                         faces.cornerStarts.back() - faces.cornerStarts.front());
    }
    listFaces(faces, lists.faceStarts, lists.faces);
}

/// This rank's cells. Local.
void readCells(const VtkHdfFile &file, IndexRange own, VtkLists &lists) {
    lists.firstCell = own.begin;
    lists.types = file.read<index>("Types", own.begin, own.size());
    lists.starts = file.read<index>("Offsets", own.begin, own.size() + 1);
    requireAscending(file, "Offsets", lists.starts);
    lists.nodes = file.read<index>("Connectivity", lists.starts.front(), lists.starts.back() - lists.starts.front());
    lists.points = file.rows("Points", 3);
    if (std::ranges::count(lists.types, vtkPolyhedron) > 0)
        readFaces(file, own, lists);
}

/// Throws unless the file is one piece, the same at all steps. Local.
void requireOneMesh(const VtkHdfFile &file, const std::string &path) {
    const std::string type = file.type();
    DNDS_CHECK(type == "UnstructuredGrid", DataError,
               "{} is a VTKHDF file of type '{}'; only an UnstructuredGrid is a mesh", path, shown(type));
    index pieces = file.rows("NumberOfPoints");
    if (file.has("Steps")) {
        const index steps = file.rows("Steps/NumberOfParts");
        DNDS_CHECK(steps == 0 || pieces == file.read<index>("Steps/NumberOfParts", 0, 1)[0], DataError,
                   "{} has a mesh that changes with time: save one step", path);
    }
    DNDS_CHECK(pieces == 1, DataError,
               "{} has {} pieces, and each lists the nodes between them: merge them first (in ParaView: the filter "
               "Clean to Grid, then save)",
               path, pieces);
    for (const auto &[count, list, columns] : {std::tuple{"NumberOfPoints", "Points", index{3}},
                                               {"NumberOfCells", "Types", 1},
                                               {"NumberOfConnectivityIds", "Connectivity", 1}})
        if (const index rows = file.rows(list, columns), stated = file.read<index>(count, 0, 1)[0]; rows != stated)
            file.fail(list, fmt::format("has {} rows, but {} is {}: the mesh changes with time, so save one step; or "
                                        "the file is damaged, so write it again",
                                        rows, count, stated));
}

/// The values of a field's last step in its data set.
struct FieldPlace {
    index columns; ///< components
    index first;   ///< row of the first point or cell
};

/// Throws DataError, the same on all ranks, if there are not numbers for `global` points or cells. Local.
FieldPlace placeOf(const VtkHdfFile &file, const std::string &group, const std::string &name, index global) {
    const std::string data = fmt::format("{}/{}", group, name);
    const std::string offsets = fmt::format("Steps/{}Offsets/{}", group, name);
    const index columns = file.columns(data);
    const index rows = file.rows(data, columns);
    const index steps = file.has(offsets) ? file.rows(offsets) : 0;
    const index first = steps > 0 ? file.read<index>(offsets, steps - 1, 1)[0] : 0;
    if (first < 0 || rows - global < first || (steps == 0 && rows != global))
        file.fail(data, fmt::format("has {} rows, and not {} from row {} on", rows, global, first));
    return {columns, first};
}

/// This rank's values of the fields of a group with `global` points or cells, at those of its rows that are `kept`. A
/// warning names each data set that is no field of the whole mesh and is left out. Collective: one
/// agreement after the reads.
std::vector<MeshField> readFields(CommunicatorView comm, const VtkHdfFile &file, const std::string &group, index global,
                                  const std::vector<bool> &kept, std::vector<std::string> &warnings) {
    std::vector<MeshField> fields;
    comm.guarded([&] {
        const IndexRange own = EvenSplit(global, comm.size()).part(comm.rank());
        for (const std::string &name : file.names(group)) {
            FieldPlace place{};
            try {
                place = placeOf(file, group, name, global);
            } catch (const DataError &error) {
                warnings.push_back(error.message() + ", so it is left out");
                continue;
            }
            addVtkFields(
                group, name, place.columns,
                file.read<real>(fmt::format("{}/{}", group, name), place.first + own.begin, own.size(), place.columns),
                kept, fields);
        }
    });
    return fields;
}

/// One agreement for each list, so that the first error of the file is named on any number of ranks.
SourceMesh readParts(CommunicatorView comm, const std::string &path, MeshFields *fields) {
    std::optional<VtkHdfFile> file;
    VtkLists lists;
    comm.guarded([&] {
        file.emplace(path);
        requireOneMesh(*file, path);
    });
    comm.guarded([&] {
        const IndexRange own = EvenSplit(file->rows("Points", 3), comm.size()).part(comm.rank());
        lists.coordinates = file->read<real>("Points", own.begin, own.size(), 3);
    });
    comm.guarded([&] { readCells(*file, EvenSplit(file->rows("Types"), comm.size()).part(comm.rank()), lists); });
    std::vector<bool> kept;
    SourceMesh mesh = meshOfVtk(comm, path, std::move(lists), kept);
    if (fields != nullptr) {
        const std::vector<bool> all(mesh.coordinates.size(), true);
        fields->nodes = readFields(comm, *file, "PointData", mesh.globalNodes, all, mesh.warnings);
        fields->cells = readFields(comm, *file, "CellData", file->rows("Types"), kept, mesh.warnings);
    }
    return mesh;
}

} // namespace

SourceMesh readVtkHdf(CommunicatorView comm, const std::string &path, MeshFields *fields) {
    return failTogether(comm, [&] { return readParts(comm, path, fields); });
}

} // namespace DNDS::Geom
