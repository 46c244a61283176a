#include "Arguments.hpp"
#include "BlockEnd.hpp"
#include "Errors.hpp"
#include "Field.hpp"
#include "MeshHandle.hpp"
#include "NumpyViews.hpp"
#include "SparseHandle.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Geom/Write/WriteMesh.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;
using Geom::FieldSlice;

namespace {

/// Fields of a file from a dict of names and Field objects, or NumPy arrays [owned] or [owned, components].
/// Sparse fields among those of cells, on clusters of `mesh`, become two fields each.
class FieldSlices {
  public:
    explicit FieldSlices(const Mesh &mesh) : mesh_(mesh) {}

    /// None is no field. Local.
    void add(nb::handle fields) {
        if (fields.is_none())
            return;
        nb::dict named;
        DNDS_CHECK(nb::try_cast(fields, named), ArgumentError, "fields must be a dict of names and values");
        for (const auto [name, values] : named)
            add(nb::cast<std::string>(name), values);
    }
    const std::vector<FieldSlice> &list() const noexcept { return slices_; }

  private:
    using Values = nb::ndarray<const real, nb::c_contig, nb::device::cpu>;

    void add(std::string name, nb::handle given) {
        if (nb::isinstance<SparseHandle>(given))
            return addSparse(name, nb::cast<const SparseHandle &>(given));
        const nb::object values = nb::isinstance<Field>(given) ? given.attr("owned") : nb::borrow(given);
        const nb::object plain = numbersOf(name, values);
        const auto numbers = nb::cast<Values>(plain);
        DNDS_CHECK(numbers.ndim() == 1 || numbers.ndim() == 2, ArgumentError,
                   "the values of '{}' have {} dimensions: they are [owned] or [owned, components]", name,
                   numbers.ndim());
        const int components = numbers.ndim() == 1 ? 1 : static_cast<int>(numbers.shape(1));
        slices_.push_back({std::move(name), components, {numbers.data(), numbers.size()}});
        kept_.push_back(plain);
    }

    /// Under the name that the file shall have.
    void addSparse(const std::string &name, const SparseHandle &field) {
        DNDS_CHECK(mesh_.data->clusters != nullptr && field.core().grid() == nullptr, ArgumentError,
                   "'{}' is not on the clusters of this mesh", name);
        for (FieldSlice &slice : field.field->fields(*mesh_.data->clusters)) {
            slice.name.replace(0, field.core().name().size(), name);
            slices_.push_back(std::move(slice));
        }
    }

    static nb::object numbersOf(const std::string &name, const nb::object &values) {
        const nb::module_ numpy = nb::module_::import_("numpy");
        try {
            return numpy.attr("ascontiguousarray")(values, "float64");
        } catch (const nb::python_error &error) {
            if (!error.matches(PyExc_TypeError) && !error.matches(PyExc_ValueError))
                throw;
            throw ArgumentError(fmt::format("the values of '{}' are not numbers: {}", name, error.what()));
        }
    }

    const Mesh &mesh_;
    std::vector<FieldSlice> slices_;
    std::vector<nb::object> kept_;
};

/// A VTKHDF file of a mesh, which it keeps.
class VtkFile {
  public:
    VtkFile(const Mesh &mesh, nb::handle path, bool ranks) : mesh_(mesh) {
        guarded(mesh_.comm->view, [&] { path_ = pathOf(path); });
        const nb::gil_scoped_release others;
        end_ = std::make_unique<BlockEnd>(mesh_.comm->view);
        writer_ = std::make_unique<Geom::MeshWriter>(mesh_.mesh(), path_, Geom::MeshWriterOptions{ranks});
    }
    VtkFile(const VtkFile &) = delete;
    VtkFile &operator=(const VtkFile &) = delete;
    /// Python destroys objects at different times on each rank, so closing must not involve other ranks.
    ~VtkFile() {
        if (writer_ == nullptr)
            return;
        if (mesh_.comm->view.rank() == 0)
            warn("{0} is not complete: its VtkFile was neither closed nor used by 'with'. What was written is in "
                 "{0}.part",
                 path_);
        abandon();
    }

    void write(real time, nb::handle cells, nb::handle nodes) {
        FieldSlices atCells(mesh_);
        FieldSlices atNodes(mesh_);
        guarded(mesh_.comm->view, [&] {
            (void)opened();
            atCells.add(cells);
            atNodes.add(nodes);
        });
        const nb::gil_scoped_release others;
        opened().writeStep(time, {.cells = atCells.list(), .nodes = atNodes.list()});
    }
    index continueFrom(nb::handle path, real last) {
        std::string old;
        guarded(mesh_.comm->view, [&] {
            (void)opened();
            old = pathOf(path);
        });
        const nb::gil_scoped_release others;
        return opened().continueFrom(old, last);
    }
    void close() {
        (void)opened();
        const nb::gil_scoped_release others;
        const std::unique_ptr<Geom::MeshWriter> writer = std::move(writer_); // destroyed on all ranks in any case
        writer->close();
    }
    /// Completes the file unless some rank failed; then abandons it. Collective, but a rank that failed waits for some
    /// seconds only.
    void finish(bool failed) {
        if (writer_ == nullptr)
            return;
        const BlockEnd::Outcome outcome = [&] {
            const nb::gil_scoped_release others;
            return end_->meet(failed);
        }();
        if (outcome == BlockEnd::Outcome::Whole)
            return close();
        if (outcome == BlockEnd::Outcome::Failed) {
            const nb::gil_scoped_release others;
            writer_.reset();
        } else {
            abandon();
        }
        if (!failed)
            throw PeerError(fmt::format("{} is not complete: an exception left the block on another rank", path_));
    }

  private:
    Geom::MeshWriter &opened() {
        DNDS_CHECK(writer_ != nullptr, StateError, "{} is closed", path_);
        return *writer_;
    }
    /// Closing the file is collective, and other ranks may not do it. HDF5 closes it when MPI ends.
    void abandon() noexcept {
        (void)writer_.release();
        (void)end_.release();
    }

    Mesh mesh_;
    std::string path_;
    std::unique_ptr<BlockEnd> end_;
    std::unique_ptr<Geom::MeshWriter> writer_;
};

constexpr Words<Geom::CgnsFileType, 2> cgnsFileTypes{
    {{"hdf5", Geom::CgnsFileType::Hdf5}, {"adf", Geom::CgnsFileType::Adf}}};

void writeCgns(const Mesh &self, nb::handle path, nb::handle cells, nb::handle nodes, std::string_view fileType) {
    std::string file;
    FieldSlices atCells(self);
    FieldSlices atNodes(self);
    Geom::CgnsWriteOptions options;
    guarded(self.comm->view, [&] {
        file = pathOf(path);
        options.fileType = chosen(fileType, "CGNS file type", cgnsFileTypes);
        atCells.add(cells);
        atNodes.add(nodes);
    });
    const nb::gil_scoped_release others;
    Geom::writeCgnsMesh(self.mesh(), file, {.cells = atCells.list(), .nodes = atNodes.list()}, options);
}

/// The lists of Geom::VtkCells, for dnds/vtk.py.
nb::dict vtkCellsOf(const Mesh &self, index cells) {
    const auto grid = std::make_shared<const Geom::VtkCells>(Geom::vtkCells(self.mesh(), cells));
    nb::dict lists;
    lists["types"] = numpyOf(std::span<const std::uint8_t>(grid->types), grid);
    lists["connectivity"] = numpyOf(std::span<const index>(grid->connectivity), grid);
    lists["offsets"] = numpyOf(std::span<const index>(grid->offsets), grid);
    lists["face_connectivity"] = numpyOf(std::span<const index>(grid->faceConnectivity), grid);
    lists["face_offsets"] = numpyOf(std::span<const index>(grid->faceOffsets), grid);
    lists["polyhedron_offsets"] = numpyOf(std::span<const index>(grid->polyhedronOffsets), grid);
    return lists;
}

} // namespace

void bindMeshOutput(nb::module_ &module) {
    nb::class_<VtkFile>(
        module, "VtkFile",
        R"(A VTKHDF file for ParaView: a mesh and fields at any number of times, in the order of the mesh file.

    with dnds.VtkFile(mesh, "flow.vtkhdf") as file:
        file.write(time, {"u": u})

The file has the name path + ".part" until it is closed. A block that an exception leaves on any rank does not complete
it: the exception leaves the block within seconds, and ranks that had finished raise PeerError. A file destroyed without
`with` or `close` is not complete either, as a message on stderr says.)")
        .def(
            nb::init<const Mesh &, nb::handle, bool>(), "mesh"_a, "path"_a.none(), nb::kw_only(), "ranks"_a = false,
            nb::sig("def __init__(self, mesh: Mesh, path: str | os.PathLike[str], *, ranks: bool = False) -> None"),
            R"(Opens the file and writes the mesh; `ranks` adds the field "rank" at cells. Collective. Raises DataError if the
file cannot be written, NotBuiltError without parallel HDF5.)")
        .def(
            "write", &VtkFile::write, "time"_a = 0.0, "cells"_a.none() = nb::none(), "nodes"_a.none() = nb::none(),
            nb::sig("def write(self, time: float = 0.0, "
                    "cells: collections.abc.Mapping[str, Field | SparseField | numpy.typing.ArrayLike] | None = None, "
                    "nodes: collections.abc.Mapping[str, Field | numpy.typing.ArrayLike] | None = None) -> None"),
            R"(Appends fields at a time: by name fields, or arrays [owned] or [owned, components], on cells and nodes. Later calls
use the same names. A sparse field of cells is the default where clusters are absent, and is followed by
`<name>.allocated`, 1 where they are there. Collective.)")
        .def(
            "continue_from", &VtkFile::continueFrom, "path"_a.none(), "last"_a = std::numeric_limits<real>::infinity(),
            nb::sig("def continue_from(self, path: str | os.PathLike[str], last: float = float('inf')) -> int"),
            R"(Copies the steps of a complete file of the same mesh up to and including the time `last`, and returns how many: a
program that restarts goes on with its series. `path` may be this file's own. Before the first `write`. Collective.
Raises ArgumentError for a file of another mesh, DataError for files of other programs.)")
        .def("close", &VtkFile::close, "Completes the file. Collective.")
        .def(
            "__enter__", [](nb::object self) { return self; }, nb::sig("def __enter__(self) -> VtkFile"))
        .def(
            "__exit__", [](VtkFile &self, nb::handle type, nb::handle, nb::handle) { self.finish(!type.is_none()); },
            "type"_a.none(), "value"_a.none(), "traceback"_a.none(),
            nb::sig("def __exit__(self, type: object, value: object, traceback: object) -> None"));
    nb::class_<Mesh> type = nb::borrow<nb::class_<Mesh>>(module.attr("Mesh"));
    type.def(
        "write_cgns", &writeCgns, "path"_a.none(), "cells"_a.none() = nb::none(), "nodes"_a.none() = nb::none(),
        nb::kw_only(), "file_type"_a = "hdf5",
        nb::sig("def write_cgns(self, path: str | os.PathLike[str], "
                "cells: collections.abc.Mapping[str, Field | SparseField | numpy.typing.ArrayLike] | None = None, "
                "nodes: collections.abc.Mapping[str, Field | numpy.typing.ArrayLike] | None = None, *, "
                "file_type: str = 'hdf5') -> None"),
        R"(Writes the mesh, its patches and fields as a CGNS file, "hdf5" or "adf", in the order of the mesh file. Collective.

Fields as in VtkFile.write. Raises DataError if the file cannot be written, NotBuiltError without the CGNS
library.)");
    type.def("_vtk_cells", &vtkCellsOf, "cells"_a, nb::sig("def _vtk_cells(self, cells: int) -> dict[str, NDArray]"),
             "The first local cells as VTK lists them, for dnds.vtk. Local.");
}

} // namespace DNDS::Python
