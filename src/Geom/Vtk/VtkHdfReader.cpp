#include "DNDS/Geom/Vtk/VtkHdfReader.hpp"

#include "DNDS/Geom/File/MeshFile.hpp"
#include "DNDS/Geom/Vtk/VtkLists.hpp"
#include "DNDS/Mpi/EvenSplit.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Serialize/HdfObject.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <tuple>
#include <type_traits>

namespace DNDS::Geom {

namespace {

using DNDS::Detail::HdfObject;
using DNDS::Detail::HdfQuiet;

/// The best ratio of HDF5's compressors: a larger data set cannot be in the file.
constexpr hsize_t maxCompression = 1100;

/// The group VTKHDF of a file that this rank reads independently.
/// Ranks read independently: a damaged part that one rank reads cannot leave the others in a collective call.
class GridFile {
  public:
    explicit GridFile(std::string path)
        : path_(std::move(path)), bytes_(static_cast<index>(std::filesystem::file_size(path_))) {
        const HdfQuiet quiet;
        const HdfObject access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
        H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
        file_ = HdfObject(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose);
        DNDS_CHECK(file_.valid(), DataError, "{} cannot be opened as an HDF5 file", path_);
    }

    bool has(const std::string &name) const {
        const HdfQuiet quiet;
        return H5Lexists(file_.get(), fmt::format("VTKHDF/{}", name).c_str(), H5P_DEFAULT) > 0;
    }
    /// The number of rows of a data set, which must have this many columns.
    index rows(const std::string &name, index columns = 1) const { return open(name, columns).rows; }
    /// The number of columns of a data set.
    index columns(const std::string &name) const { return open(name, anyColumns).columns; }
    /// The names in a group; none without it.
    std::vector<std::string> names(const std::string &group) const {
        const HdfQuiet quiet;
        const HdfObject data(H5Gopen2(file_.get(), ("VTKHDF/" + group).c_str(), H5P_DEFAULT), H5Gclose);
        std::vector<std::string> result;
        std::array<char, 256> name{};
        while (data.valid() && H5Lget_name_by_idx(data.get(), ".", H5_INDEX_NAME, H5_ITER_INC, result.size(),
                                                  name.data(), name.size(), H5P_DEFAULT) >= 0)
            result.emplace_back(name.data());
        return result;
    }

    /// Rows [first, first + count) of a data set.
    template <class T>
    std::vector<T> read(const std::string &name, index first, index count, index columns = 1) const {
        const HdfQuiet quiet;
        const Table table = open(name, columns);
        if (first < 0 || count < 0 || first + count > table.rows)
            fail(name, fmt::format("has {} rows, and {} are needed", table.rows, first + count));
        std::vector<T> values(static_cast<std::size_t>(count * columns));
        if (count == 0)
            return values;
        const std::array<hsize_t, 2> start{static_cast<hsize_t>(first), 0};
        const std::array<hsize_t, 2> size{static_cast<hsize_t>(count), static_cast<hsize_t>(columns)};
        const HdfObject space(H5Dget_space(table.data.get()), H5Sclose, name);
        const HdfObject memory(H5Screate_simple(columns == 1 ? 1 : 2, size.data(), nullptr), H5Sclose, name);
        const hid_t type = std::is_same_v<T, real> ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64;
        if (H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, size.data(), nullptr) < 0 ||
            H5Dread(table.data.get(), type, memory.get(), space.get(), H5P_DEFAULT, values.data()) < 0)
            fail(name, "cannot be read: the file is damaged");
        return values;
    }

    /// The attribute Type; "" without one.
    std::string type() const {
        const HdfQuiet quiet;
        const HdfObject attribute(H5Aopen_by_name(file_.get(), "VTKHDF", "Type", H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
        const HdfObject kind(attribute.valid() ? H5Aget_type(attribute.get()) : -1, H5Tclose);
        const HdfObject space(attribute.valid() ? H5Aget_space(attribute.get()) : -1, H5Sclose);
        if (!kind.valid() || !space.valid() || H5Tget_class(kind.get()) != H5T_STRING ||
            H5Sget_simple_extent_npoints(space.get()) != 1)
            return "";
        if (H5Tis_variable_str(kind.get()) > 0) {
            char *text = nullptr;
            std::string result = H5Aread(attribute.get(), kind.get(), &text) >= 0 && text != nullptr ? text : "";
            H5free_memory(text);
            return result;
        }
        std::string text(std::min<std::size_t>(H5Tget_size(kind.get()), 256), '\0');
        if (H5Tget_size(kind.get()) != text.size() || H5Aread(attribute.get(), kind.get(), text.data()) < 0)
            return "";
        return text.substr(0, text.find('\0'));
    }

    [[noreturn]] void fail(std::string_view name, const std::string &message) const {
        throw DataError(fmt::format("{}: VTKHDF/{} {}", path_, name, message));
    }

  private:
    static constexpr index anyColumns = -1;

    /// An open data set and its size; vectors are tables of one column.
    struct Table {
        HdfObject data;
        index rows;
        index columns;
    };

    /// Opens a data set of numbers and checks that the file can hold it: HDF5 1.10 reads beyond its buffers where a
    /// damaged file reserves less room than the extent needs.
    Table open(const std::string &name, index columns) const {
        const HdfQuiet quiet;
        HdfObject data(H5Dopen2(file_.get(), fmt::format("VTKHDF/{}", name).c_str(), H5P_DEFAULT), H5Dclose);
        if (!data.valid())
            fail(name, "is not there or cannot be opened");
        const HdfObject space(H5Dget_space(data.get()), H5Sclose, name);
        const HdfObject type(H5Dget_type(data.get()), H5Tclose, name);
        const HdfObject creation(H5Dget_create_plist(data.get()), H5Pclose, name);
        std::array<hsize_t, 2> size{0, 1};
        const int dimensions = H5Sget_simple_extent_ndims(space.get());
        if (dimensions < 1 || dimensions > 2 || H5Sget_simple_extent_dims(space.get(), size.data(), nullptr) < 0 ||
            size[1] == 0 || (columns != anyColumns && size[1] != static_cast<hsize_t>(columns)))
            fail(name, columns == anyColumns ? "is no table" : fmt::format("has not {} columns", columns));
        const H5T_class_t kind = H5Tget_class(type.get());
        const H5D_layout_t layout = H5Pget_layout(creation.get());
        if ((kind != H5T_INTEGER && kind != H5T_FLOAT) || layout == H5D_VIRTUAL || layout < 0 ||
            H5Pget_external_count(creation.get()) != 0)
            fail(name, "has no numbers in this file");
        const auto most = static_cast<hsize_t>(bytes_) * maxCompression;
        const hsize_t width = H5Tget_size(type.get());
        const hsize_t row = size[1] * width;
        if (size[1] > most / width || size[0] > most / row ||
            (size[0] > 0 && H5Dget_storage_size(data.get()) < (layout == H5D_CHUNKED ? 1 : size[0] * row)))
            fail(name, fmt::format("has {} rows, which are not all in the file", size[0]));
        return {std::move(data), static_cast<index>(size[0]), static_cast<index>(size[1])};
    }

    std::string path_;
    index bytes_;
    HdfObject file_;
};

// Sorted starts, none negative: ranges between them are valid.
void requireAscending(const GridFile &file, const char *name, const std::vector<index> &values) {
    if (values.front() < 0 || !std::ranges::is_sorted(values))
        file.fail(name, "does not ascend");
}

/// Reads the range of faces that this rank's polyhedra name.
/// A rank reads the span from its least to its greatest face. Files number the faces in the order of cells, so the
/// span is about as long as the list; otherwise it may be the whole list.
void readFaces(const GridFile &file, IndexRange own, VtkLists &lists) {
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
void readCells(const GridFile &file, IndexRange own, VtkLists &lists) {
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
void requireOneMesh(const GridFile &file, const std::string &path) {
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
FieldPlace placeOf(const GridFile &file, const std::string &group, const std::string &name, index global) {
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
std::vector<MeshField> readFields(CommunicatorView comm, const GridFile &file, const std::string &group, index global,
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
    std::optional<GridFile> file;
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
