#include "DNDS/Geom/Vtk/VtkHdfReader.hpp"

#include "DNDS/Geom/File/ElementBlocks.hpp"
#include "DNDS/Geom/File/MeshFile.hpp"
#include "DNDS/Geom/Vtk/VtkElements.hpp"
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
    [[noreturn]] void failAt(index cell, const std::string &message) const {
        throw DataError(fmt::format("{}: cell {} {}", path_, cell, message));
    }

  private:
    static constexpr index anyColumns = -1;

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

/// VTK's types whose points are in rows along x, both in the same direction.
constexpr index voxel = 11;
constexpr index pixel = 8;

/// The element of a VTK type.
std::optional<ElementType> elementOf(index vtk) {
    static const auto elements = [] {
        std::array<std::optional<ElementType>, 256> byType;
        for (int value = 255; value >= 0; value--) { // of several, the first one counts
            const auto type = static_cast<ElementType>(value);
            if (isElementType(value) && type != ElementType::Mixed && type != ElementType::Pyra14)
                byType[vtkElement(type).type] = type;
        }
        byType[voxel] = ElementType::Hexa8;
        byType[pixel] = ElementType::Quad4;
        return byType;
    }();
    return vtk >= 0 && vtk < std::ssize(elements) ? elements[static_cast<std::size_t>(vtk)] : std::nullopt;
}

/// This rank's cells, of all dimensions.
class CellReader {
  public:
    CellReader(const GridFile &file, IndexRange own) : file_(file), first_(own.begin) {
        vtkTypes_ = file.read<index>("Types", own.begin, own.size());
        offsets_ = file.read<index>("Offsets", own.begin, own.size() + 1);
        requireAscending("Offsets", offsets_);
        nodes_ = file.read<index>("Connectivity", offsets_.front(), offsets_.back() - offsets_.front());
        points_ = file.rows("Points", 3);
        for (std::size_t c = 0; c < vtkTypes_.size(); c++) {
            const std::optional<ElementType> type = elementOf(vtkTypes_[c]);
            if (!type)
                file.failAt(number(c), fmt::format("has VTK's type {}, which is not supported", vtkTypes_[c]));
            types_.push_back(*type);
        }
        if (std::ranges::count(types_, ElementType::Polyhedron) > 0)
            readFaces(own);
    }

    const std::vector<ElementType> &types() const { return types_; }

    /// Appends cell `c` of this rank's.
    void append(std::size_t c, ElementBlock &block) const {
        if (types_[c] == ElementType::Polyhedron)
            return appendElement(block, types_[c], polyhedron(c), number(c));
        const std::span<const index> vtk =
            std::span(nodes_).subspan(static_cast<std::size_t>(offsets_[c] - offsets_[0]),
                                      static_cast<std::size_t>(offsets_[c + 1] - offsets_[c]));
        const int width = elementInfo(types_[c]).nodes;
        if ((width > 0 && std::ssize(vtk) != width) || (width == 0 && vtk.size() < 3))
            file_.failAt(number(c), fmt::format("has VTK's type {} and {} nodes", vtkTypes_[c], vtk.size()));
        requireNodes(c, vtk);
        std::vector<index> nodes(vtk.begin(), vtk.end());
        const auto order = vtkElement(types_[c]).order;
        for (std::size_t k = 0; k < order.size(); k++)
            nodes[order[k]] = vtk[k];
        if (vtkTypes_[c] == voxel || vtkTypes_[c] == pixel)
            for (std::size_t k = 0; k < nodes.size(); k += 4) // rows in x, both of them forward
                std::swap(nodes[k + 2], nodes[k + 3]);
        appendElement(block, types_[c], nodes, number(c));
    }

  private:
    index number(std::size_t c) const { return first_ + static_cast<index>(c) + 1; }

    void requireAscending(const char *name, const std::vector<index> &values) const {
        if (values.front() < 0 || !std::ranges::is_sorted(values))
            file_.fail(name, "does not ascend");
    }
    void requireNodes(std::size_t c, std::span<const index> nodes) const {
        for (const index node : nodes)
            if (node < 0 || node >= points_)
                file_.failAt(number(c), fmt::format("has point {} of {}", node, points_));
    }

    /// Reads the range of faces that this rank's polyhedra name.
    void readFaces(IndexRange own) {
        faceStarts_ = file_.read<index>("PolyhedronOffsets", own.begin, own.size() + 1);
        requireAscending("PolyhedronOffsets", faceStarts_);
        faces_ = file_.read<index>("PolyhedronToFaces", faceStarts_.front(), faceStarts_.back() - faceStarts_.front());
        if (faces_.empty())
            return;
        const auto [lowest, highest] = std::ranges::minmax_element(faces_);
        firstFace_ = *lowest;
        if (*lowest < 0 || *highest >= file_.rows("FaceOffsets"))
            file_.fail("PolyhedronToFaces", "has numbers of faces that do not exist");
        cornerStarts_ = file_.read<index>("FaceOffsets", firstFace_, *highest - firstFace_ + 2);
        requireAscending("FaceOffsets", cornerStarts_);
        corners_ =
            file_.read<index>("FaceConnectivity", cornerStarts_.front(), cornerStarts_.back() - cornerStarts_.front());
    }

    /// The list of a polyhedron, as in ElementBlock.
    std::vector<index> polyhedron(std::size_t c) const {
        std::vector<index> list;
        for (index f = faceStarts_[c] - faceStarts_[0]; f < faceStarts_[c + 1] - faceStarts_[0]; f++) {
            const auto face = static_cast<std::size_t>(faces_[static_cast<std::size_t>(f)] - firstFace_);
            const auto corners =
                std::span(corners_).subspan(static_cast<std::size_t>(cornerStarts_[face] - cornerStarts_[0]),
                                            static_cast<std::size_t>(cornerStarts_[face + 1] - cornerStarts_[face]));
            requireNodes(c, corners);
            list.push_back(std::ssize(corners));
            list.insert(list.end(), corners.begin(), corners.end());
        }
        return list;
    }

    const GridFile &file_;
    index first_;
    index points_ = 0;
    std::vector<index> vtkTypes_, offsets_, nodes_; ///< as in the file; offsets [own cells + 1]
    std::vector<ElementType> types_;
    std::vector<index> faceStarts_, faces_, cornerStarts_, corners_; ///< polyhedra: all faces in a range
    index firstFace_ = 0;
};

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
            const auto columns = static_cast<std::size_t>(place.columns);
            const std::vector<real> values =
                file.read<real>(fmt::format("{}/{}", group, name), place.first + own.begin, own.size(), place.columns);
            for (std::size_t c = 0; c < columns; c++) {
                const std::string end = columns == 3 ? std::string(1, "XYZ"[c]) : std::to_string(c + 1);
                MeshField &field = fields.emplace_back(MeshField{group, name + (columns == 1 ? "" : end), {}});
                for (std::size_t row = 0; row < kept.size(); row++)
                    if (kept[row])
                        field.values.push_back(values[row * columns + c]);
            }
        }
    });
    return fields;
}

SourceMesh readParts(CommunicatorView comm, const std::string &path, MeshFields *fields) {
    std::optional<GridFile> file;
    std::optional<CellReader> reader;
    SourceMesh mesh;
    mesh.origin = path;
    comm.guarded([&] {
        file.emplace(path);
        requireOneMesh(*file, path);
    });
    comm.guarded([&] {
        const IndexRange own = EvenSplit(file->rows("Points", 3), comm.size()).part(comm.rank());
        const std::vector<real> numbers = file->read<real>("Points", own.begin, own.size(), 3);
        for (std::size_t at = 0; at < numbers.size(); at += 3)
            mesh.coordinates.push_back({numbers[at], numbers[at + 1], numbers[at + 2]});
    });
    comm.guarded([&] {
        reader.emplace(*file, EvenSplit(file->rows("Types"), comm.size()).part(comm.rank()));
        for (const ElementType type : reader->types())
            mesh.cellDimension = std::max(mesh.cellDimension, elementInfo(type).dimension);
    });
    mesh.cellDimension = comm.allReduce(mesh.cellDimension, MPI_MAX);
    DNDS_CHECK(mesh.cellDimension >= 2, DataError, "{} has no cells of two or three dimensions", path);
    index left = 0;
    comm.guarded([&] {
        for (std::size_t c = 0; c < reader->types().size(); c++)
            if (elementInfo(reader->types()[c]).dimension == mesh.cellDimension)
                reader->append(c, mesh.cells);
            else
                left++;
    });
    left = comm.allReduce(left, MPI_SUM);
    if (left > 0)
        mesh.notes.push_back(
            fmt::format("{}: {} cells of fewer than {} dimensions are left out", path, left, mesh.cellDimension));
    numberNodes(comm, mesh);
    numberBlock(comm, mesh.cells);
    if (fields != nullptr) {
        const std::vector<bool> all(mesh.coordinates.size(), true);
        std::vector<bool> kept;
        for (const ElementType type : reader->types())
            kept.push_back(elementInfo(type).dimension == mesh.cellDimension);
        fields->nodes = readFields(comm, *file, "PointData", mesh.globalNodes, all, mesh.warnings);
        fields->cells = readFields(comm, *file, "CellData", mesh.cells.globalSize + left, kept, mesh.warnings);
    }
    return mesh;
}

} // namespace

SourceMesh readVtkHdf(CommunicatorView comm, const std::string &path, MeshFields *fields) {
    return failTogether(comm, [&] { return readParts(comm, path, fields); });
}

} // namespace DNDS::Geom
