#include "DNDS/Geom/Vtk/VtkHdfWriter.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Base/Error.hpp"
#include "DNDS/Geom/Vtk/VtkHdfFile.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Serialize/HdfSharedFile.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

namespace DNDS::Geom {

namespace {

using DNDS::Detail::HdfObject;
using DNDS::Detail::HdfRows;
using DNDS::Detail::HdfSharedFile;

// This rank's cells in VTK's order of nodes.
VtkCells vtkCells(const MeshSlice &mesh) {
    VtkCells cells;
    cells.types.reserve(mesh.types.size());
    cells.offsets.reserve(mesh.types.size());
    cells.connectivity.reserve(mesh.nodes.size());
    for (index c = 0; c < mesh.cells(); c++)
        cells.add(mesh.types[static_cast<std::size_t>(c)], mesh.nodesOf(c));
    return cells;
}

// All later steps rely on it: nodesOf stays within the list of nodes.
void checkSlice(const MeshSlice &mesh) {
    DNDS_CHECK(mesh.starts.size() == mesh.types.size() + 1 && mesh.starts.front() >= 0 &&
                   mesh.starts.back() <= static_cast<index>(mesh.nodes.size()),
               ArgumentError, "{} cells need one start more, but {} are given", mesh.types.size(), mesh.starts.size());
    for (index c = 0; c < mesh.cells(); c++) {
        const ElementType type = mesh.types[static_cast<std::size_t>(c)];
        const index width = mesh.starts[static_cast<std::size_t>(c) + 1] - mesh.starts[static_cast<std::size_t>(c)];
        const int nodes = elementInfo(type).nodes;
        DNDS_CHECK(width >= 0 && (nodes == 0 || nodes == width), ArgumentError, "own cell {} is a {} of {} nodes", c,
                   elementInfo(type).name, width);
    }
}

/// The sum over lower ranks, and over all. Collective.
HdfRows rowsOf(CommunicatorView comm, index own) {
    const index before = comm.exclusiveScan(own);
    return {0, comm.allReduce(own, MPI_SUM), before, own};
}

/// A field of the file, at points or cells.
struct Field {
    std::string name;
    int components;
    HdfObject data;
    HdfObject offsets;
};

} // namespace

/// Writes the mesh once, then appends rows to growing data sets at each step. Errors are thrown on all ranks, which
/// then close the file together; after an MpiError that would hang, so the file is abandoned.
class VtkHdfWriter::Implementation {
  public:
    Implementation(CommunicatorView comm, std::string path)
        : path_(std::move(path)), temporary_(path_ + ".part"), output_(comm, temporary_, false) {}

    Implementation(const Implementation &) = delete;
    Implementation &operator=(const Implementation &) = delete;
    ~Implementation() {
        if (isOpen_ && !unwinding() && output_.comm().rank() == 0)
            warn("{} is not complete: its writer was destroyed without close(). What was written is in {}", path_,
                 temporary_);
    }

    CommunicatorView comm() const noexcept { return output_.comm(); }

    void writeMesh(const MeshSlice &mesh) {
        const CommunicatorView comm = output_.comm();
        VtkCells cells;
        comm.guarded([&] {
            checkSlice(mesh);
            cells = vtkCells(mesh);
        });
        points_ = rowsOf(comm, static_cast<index>(mesh.points.size()));
        cells_ = rowsOf(comm, mesh.cells());
        comm.guarded([&] {
            DNDS_CHECK(points_.global == mesh.globalPoints && points_.first == mesh.firstPoint &&
                           cells_.global == mesh.globalCells && cells_.first == mesh.firstCell,
                       ArgumentError, "the slices of all ranks, in order of rank, do not make up the mesh");
        });
        // Data sets of polyhedra need a later version of the format: without them older readers can read the file.
        polyhedra_ = comm.allReduce(cells.faceOffsets.empty() ? 0 : 1, MPI_MAX) == 1;
        root_ = output_.makeGroup(output_.file(), "VTKHDF");
        output_.writeNumbers(root_.get(), "Version", polyhedra_ ? std::vector<index>{2, 5} : std::vector<index>{2, 0});
        output_.writeText(root_.get(), "Type", "UnstructuredGrid");
        for (const char *name : {"PointData", "CellData", "FieldData"})
            output_.makeGroup(root_.get(), name);
        writeCells(mesh, cells);
        if (polyhedra_)
            writePolyhedra(cells);
        content_ = contentOf({reinterpret_cast<const real *>(mesh.points.data()), 3 * mesh.points.size()}, cells.types);
        isOpen_ = true;
    }

    void writeStep(real time, std::span<const FieldSlice> pointFields, std::span<const FieldSlice> cellFields) {
        output_.comm().guarded([&] {
            checkFields(pointFields, points_, pointFields_, "point");
            checkFields(cellFields, cells_, cellFields_, "cell");
        });
        requireSameFields(output_.comm(), pointFields, cellFields);
        if (steps_ == 0) // the first step tells the fields
            begin(pointFields, cellFields);
        append(times_, "Values", time);
        append(counts_, "NumberOfParts", index{1});
        for (HdfObject &zero : zeros_)
            append(zero, "offsets", index{0}); // every step has the same mesh
        appendFields(pointFields, points_, pointFields_);
        appendFields(cellFields, cells_, cellFields_);
        steps_++;
    }

    /// Step by step, so that a rank holds its rows of one old step. All ranks read the same times, hence keep the same
    /// steps and call `writeStep` equally often.
    index continueFrom(const std::string &path, real last) {
        const CommunicatorView comm = output_.comm();
        std::optional<Detail::VtkHdfFile> old;
        std::vector<real> times;
        index kept = 0;
        comm.guarded([&] {
            DNDS_CHECK(steps_ == 0, StateError, "{} has {} steps already: call continueFrom before writeStep", path_,
                       steps_);
            old.emplace(path);
            requireSameMesh(*old, path);
            times = old->times();
            while (kept < std::ssize(times) && times[toSize(kept)] <= last)
                kept++;
        });
        for (index step = 0; step < kept; step++) {
            OldStep points, cells;
            comm.guarded([&] {
                points = OldStep(*old, "PointData", step, points_);
                cells = OldStep(*old, "CellData", step, cells_);
            });
            writeStep(times[toSize(step)], points.slices, cells.slices);
        }
        return kept;
    }

    void close() {
        // The destructor need not warn from here on:
        isOpen_ = false; // failures throw
        if (steps_ > 0)
            output_.writeNumbers(stepsGroup_.get(), "NSteps", std::span(&steps_, 1));
        // Objects in the file first: MPI-IO cannot close a file while one of them is open.
        pointFields_.clear();
        cellFields_.clear();
        zeros_.clear();
        for (HdfObject *handle : {&times_, &counts_, &stepsGroup_, &root_})
            handle->close();
        output_.close();
        // Readers never see half a file: it gets its name when it is complete.
        output_.comm().guarded([&] {
            if (output_.comm().rank() == 0 && std::rename(temporary_.c_str(), path_.c_str()) != 0)
                throw DataError(fmt::format("{} cannot be renamed to {}", temporary_, path_));
        });
    }

    /// Whether an exception is active that was not when the file was opened.
    bool unwinding() const noexcept { return std::uncaught_exceptions() > exceptionsAtStart_; }

    /// Abandons the file without waiting for other ranks, which may not know: HDF5 closes it when MPI ends.
    static void abandon(std::unique_ptr<Implementation> writer) noexcept {
        static Implementation *abandoned = nullptr; // keeps them reachable for leak checkers
        if (writer->comm().rank() == 0)
            std::remove(writer->temporary_.c_str()); // so that another file can be opened by its name
        writer->next_ = abandoned;
        abandoned = writer.release();
    }

  private:
    /// This rank's rows of the fields of a step of another file.
    struct OldStep {
        std::vector<std::string> names;
        std::vector<std::vector<real>> values;
        std::vector<FieldSlice> slices;

        OldStep() = default;
        OldStep(const Detail::VtkHdfFile &file, const std::string &group, index step, const HdfRows &rows)
            : names(file.names(group)) {
            for (const std::string &name : names) {
                const std::string data = fmt::format("{}/{}", group, name);
                const index columns = file.columns(data);
                values.push_back(file.read<real>(data, step * rows.global + rows.first, rows.own, columns));
                slices.push_back({name, static_cast<int>(columns), values.back()});
            }
        }
    };

    /// A hash of this rank's points and types of cells. Coordinates in order identify a mesh well enough; a hash of the
    /// connectivity would require reading it, too.
    static std::uint64_t contentOf(std::span<const real> coordinates, std::span<const std::uint8_t> types) {
        ContentHash hash;
        hash.addBytes(coordinates.data(), coordinates.size_bytes());
        hash.addBytes(types.data(), types.size_bytes());
        return hash.value();
    }

    void requireSameMesh(const Detail::VtkHdfFile &old, const std::string &path) const {
        const index points = old.rows("Points", 3);
        const index cells = old.rows("Types");
        DNDS_CHECK(points == points_.global && cells == cells_.global, ArgumentError,
                   "{} has {} points and {} cells, but this mesh {} and {}: its steps cannot be continued", path,
                   points, cells, points_.global, cells_.global);
        DNDS_CHECK(contentOf(old.read<real>("Points", points_.first, points_.own, 3),
                             old.read<std::uint8_t>("Types", cells_.first, cells_.own)) == content_,
                   ArgumentError, "{} has another mesh of as many points and cells: its steps cannot be continued",
                   path);
    }

    /// `end` holds the end of each row of this rank, counted from its first entry, which is number `before` of all. n
    /// ends become n + 1 offsets: rank 0 writes the leading 0, and the rows of all ranks are shifted by one.
    void writeOffsets(const char *name, std::vector<index> end, index before) {
        for (index &value : end)
            value += before;
        HdfRows rows = rowsOf(output_.comm(), static_cast<index>(end.size()));
        rows.global++;
        rows.first++;
        if (output_.comm().rank() == 0) {
            end.insert(end.begin(), 0);
            rows.first--;
            rows.own++;
        }
        output_.writeRows(root_.get(), name, rows, end.data());
    }

    /// A table of one row, which rank 0 has: the counts that VTK reads for a part, of which a step has one.
    void writeValue(const char *name, index value) {
        output_.writeRows(root_.get(), name, HdfRows{0, 1, 0, comm().rank() == 0 ? 1 : 0}, &value);
    }

    void writeCells(const MeshSlice &mesh, const VtkCells &cells) {
        const HdfRows connectivity = rowsOf(output_.comm(), static_cast<index>(cells.connectivity.size()));
        writeValue("NumberOfPoints", points_.global);
        writeValue("NumberOfCells", cells_.global);
        writeValue("NumberOfConnectivityIds", connectivity.global);
        HdfRows points = points_;
        points.columns = 3;
        output_.writeRows(root_.get(), "Points", points, reinterpret_cast<const real *>(mesh.points.data()));
        output_.writeRows(root_.get(), "Types", cells_, cells.types.data());
        output_.writeRows(root_.get(), "Connectivity", connectivity, cells.connectivity.data());
        writeOffsets("Offsets", cells.offsets, connectivity.first);
    }

    /// Prefix sums over ranks turn numbers of own faces and corners into those of the file.
    void writePolyhedra(VtkCells &cells) {
        const HdfRows faces = rowsOf(output_.comm(), static_cast<index>(cells.faceOffsets.size()));
        const HdfRows corners = rowsOf(output_.comm(), static_cast<index>(cells.faceConnectivity.size()));
        writeValue("NumberOfFaces", faces.global);
        writeValue("NumberOfFaceConnectivityIds", corners.global);
        writeValue("NumberOfPolyhedronToFaceIds", faces.global);
        output_.writeRows(root_.get(), "FaceConnectivity", corners, cells.faceConnectivity.data());
        writeOffsets("FaceOffsets", cells.faceOffsets, corners.first);
        for (index &face : cells.polyhedronToFaces)
            face += faces.first;
        output_.writeRows(root_.get(), "PolyhedronToFaces", faces, cells.polyhedronToFaces.data());
        writeOffsets("PolyhedronOffsets", cells.polyhedronOffsets, faces.first);
    }

    // Fields of later steps must be those of the first, in any order.
    void checkFields(std::span<const FieldSlice> fields, const HdfRows &rows, const std::vector<Field> &known,
                     const char *what) const {
        for (std::size_t f = 0; f < fields.size(); f++) {
            const FieldSlice &field = fields[f];
            checkField(field, rows.own, what);
            for (std::size_t other = 0; other < f; other++)
                DNDS_CHECK(fields[other].name != field.name, ArgumentError, "two {} fields are called '{}'", what,
                           field.name);
            if (steps_ == 0)
                continue;
            const auto first = std::ranges::find(known, field.name, &Field::name);
            DNDS_CHECK(first != known.end(), ArgumentError, "{} field '{}' was not in the first step", what,
                       field.name);
            DNDS_CHECK(first->components == field.components, ArgumentError,
                       "{} field '{}' has {} components, but {} in the first step", what, field.name, field.components,
                       first->components);
        }
        for (const Field &field : known)
            DNDS_CHECK(std::ranges::find(fields, field.name, &FieldSlice::name) != fields.end(), ArgumentError,
                       "{} field '{}' of the first step is missing", what, field.name);
    }

    /// Creates the datasets that grow with every step.
    void begin(std::span<const FieldSlice> pointFields, std::span<const FieldSlice> cellFields) {
        stepsGroup_ = output_.makeGroup(root_.get(), "Steps");
        const HdfRows one{0, 1, 0, 1};
        // Offsets of cells have a column for each kind of cell set, which is one.
        const HdfRows column{1, 1, 0, 1};
        times_ = output_.makeGrowing<real>(stepsGroup_.get(), "Values", one);
        counts_ = output_.makeGrowing<index>(stepsGroup_.get(), "NumberOfParts", one);
        for (const char *name : {"PartOffsets", "PointOffsets"})
            zeros_.push_back(output_.makeGrowing<index>(stepsGroup_.get(), name, one));
        std::vector<const char *> names{"CellOffsets", "ConnectivityIdOffsets"};
        if (polyhedra_)
            names.insert(names.end(), {"FaceConnectivityOffsets", "FaceOffsetsOffsets", "PolyhedronToFaceIdOffsets"});
        for (const char *name : names)
            zeros_.push_back(output_.makeGrowing<index>(stepsGroup_.get(), name, column));
        makeFields("PointData", pointFields, points_, pointFields_);
        makeFields("CellData", cellFields, cells_, cellFields_);
    }

    // A growing data set for values, and one for the first row of each step.
    void makeFields(const std::string &group, std::span<const FieldSlice> fields, HdfRows rows,
                    std::vector<Field> &known) {
        HdfObject data(H5Gopen2(root_.get(), group.c_str(), H5P_DEFAULT), H5Gclose);
        HdfObject offsets = output_.makeGroup(stepsGroup_.get(), (group + "Offsets").c_str());
        for (const FieldSlice &field : fields) {
            rows.columns = field.components == 1 ? 0 : field.components;
            HdfObject values = output_.makeGrowing<real>(data.get(), field.name, rows);
            HdfObject places = output_.makeGrowing<index>(offsets.get(), field.name, HdfRows{0, 1, 0, 1});
            known.push_back({field.name, field.components, std::move(values), std::move(places)});
        }
    }

    // By name: the order of the caller may differ from step to step.
    void appendFields(std::span<const FieldSlice> fields, HdfRows rows, const std::vector<Field> &known) {
        for (const FieldSlice &field : fields) {
            const Field &there = *std::ranges::find(known, field.name, &Field::name);
            rows.columns = field.components == 1 ? 0 : field.components;
            append(there.offsets, field.name, steps_ * rows.global);
            output_.appendRows(there.data, field.name, rows, steps_ * rows.global, field.values.data());
        }
    }

    /// Appends one value, which rank 0 writes.
    template <class T>
    void append(const HdfObject &data, const std::string &name, T value) {
        const HdfObject space(H5Dget_space(data.get()), H5Sclose);
        HdfRows rows{H5Sget_simple_extent_ndims(space.get()) == 2 ? 1 : 0, 1, 0, output_.comm().rank() == 0 ? 1 : 0};
        output_.appendRows(data, name, rows, steps_, &value);
    }

    std::string path_;
    std::string temporary_;
    HdfSharedFile output_; ///< closed after all members below
    HdfObject root_, stepsGroup_, times_, counts_;
    std::vector<HdfObject> zeros_; ///< data sets that get a 0 at each step
    std::vector<Field> pointFields_, cellFields_;
    HdfRows points_, cells_;
    std::uint64_t content_ = 0; ///< hash of this rank's points and types of cells
    bool polyhedra_ = false, isOpen_ = false;
    index steps_ = 0; ///< written
    int exceptionsAtStart_ = std::uncaught_exceptions();
    Implementation *next_ = nullptr; ///< the next abandoned one
};

VtkHdfWriter::VtkHdfWriter(CommunicatorView comm, std::string path, const MeshSlice &mesh) {
    try {
        failTogether(comm, [&] {
            implementation_ = std::make_unique<Implementation>(comm, std::move(path));
            implementation_->writeMesh(mesh);
        });
    } catch (const MpiError
                 &) { // other ranks may not know; any other error is thrown on all ranks, which close the file together
        if (implementation_)
            Implementation::abandon(std::move(implementation_));
        throw;
    }
}
VtkHdfWriter::VtkHdfWriter(VtkHdfWriter &&) noexcept = default;
VtkHdfWriter &VtkHdfWriter::operator=(VtkHdfWriter &&) noexcept = default;
VtkHdfWriter::~VtkHdfWriter() {
    if (implementation_ && implementation_->unwinding())
        Implementation::abandon(std::move(implementation_));
}

void VtkHdfWriter::writeStep(real time, std::span<const FieldSlice> pointFields,
                             std::span<const FieldSlice> cellFields) {
    DNDS_CHECK(implementation_ != nullptr, StateError, "the file is closed");
    failTogether(implementation_->comm(), [&] { implementation_->writeStep(time, pointFields, cellFields); });
}

index VtkHdfWriter::continueFrom(const std::string &path, real last) {
    DNDS_CHECK(implementation_ != nullptr, StateError, "the file is closed");
    return failTogether(implementation_->comm(), [&] { return implementation_->continueFrom(path, last); });
}

void VtkHdfWriter::close() {
    DNDS_CHECK(implementation_ != nullptr, StateError, "the file is closed");
    failTogether(implementation_->comm(), [&] { implementation_->close(); });
    implementation_.reset();
}

bool VtkHdfWriter::built() noexcept { return true; }

} // namespace DNDS::Geom
