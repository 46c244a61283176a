#include "Checkpoints.hpp"

#include "Arguments.hpp"
#include "Errors.hpp"
#include "Field.hpp"
#include "Integers.hpp"
#include "NumpyViews.hpp"
#include "SparseHandle.hpp"

#include "DNDS/Serialize/Checkpoint.hpp"
#include "DNDS/Sparse/SparseRows.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/// The owned rows of a field, or an array.
ArrayBase &rowsOf(nb::handle given) {
    if (nb::isinstance<Field>(given)) {
        const auto &field = nb::cast<const Field &>(given);
        field.requireLanded("be read or written");
        return field.father();
    }
    const auto &array = nb::cast<const AnyArray &>(given);
    array.requireLanded("be read or written");
    return *array.base;
}

void setValue(CheckpointWriter &file, const std::string &name, nb::handle value) {
    if (nb::isinstance<nb::str>(value))
        file.set(name, nb::cast<std::string>(value));
    else if (nb::isinstance<nb::int_>(value))
        file.set(name, nb::cast<index>(value));
    else if (nb::isinstance<nb::float_>(value))
        file.set(name, nb::cast<real>(value));
    else if (std::vector<index> integers; isList(value) && isIntegers(value) && nb::try_cast(value, integers))
        file.set(name, std::move(integers));
    else
        file.set(name, nb::cast<std::vector<real>>(value));
}

/// The meshes for which a checkpoint with this array may be: the first is the widest. The ids of fields on blocks are
/// those of cells, for any cut into blocks, but those of sparse fields are of the blocks themselves.
std::vector<std::uint64_t> meshesOf(nb::handle array) {
    if (const BlockFieldHandle *field = blockFieldOf(array))
        return {field->grid.grid->cellsSignature(), blocksFingerprint(*field->grid.grid)};
    if (nb::isinstance<SparseHandle>(array))
        return {nb::cast<const SparseHandle &>(array).fingerprint};
    if (nb::isinstance<Field>(array))
        if (const auto mesh = nb::cast<const Field &>(array).mesh())
            return {*mesh};
    return {};
}

/// Keeps those of the known meshes that are meshes of the array. Throws ArgumentError where there are none.
void joinMeshes(std::vector<std::uint64_t> &known, nb::handle array, const std::string &name) {
    const std::vector<std::uint64_t> its = meshesOf(array);
    if (known.empty() || its.empty()) {
        known.insert(known.end(), its.begin(), its.end());
        return;
    }
    std::erase_if(known, [&](std::uint64_t mesh) { return std::ranges::find(its, mesh) == its.end(); });
    DNDS_CHECK(!known.empty(), ArgumentError,
               "'{}' is a field of another mesh than the fields before it: a checkpoint is for one mesh", name);
}

/// The ids of an array's rows: those given, or the file numbers of a field on a mesh.
class RowIds {
  public:
    RowIds(nb::handle given, nb::handle array) {
        if (!given.is_none()) {
            given_.emplace(given, "ids");
            return;
        }
        if (nb::isinstance<Field>(array))
            ofMesh_ = nb::cast<const Field &>(array).ids();
        const ArrayBase &rows = rowsOf(array);
        DNDS_CHECK(!meshesOf(array).empty() && static_cast<index>(ofMesh_.size()) == rows.size(), ArgumentError,
                   "'{}' is no field on the cells or nodes of a mesh, whose file numbers would be its ids: give ids",
                   rows.label());
    }
    std::span<const index> span() const { return given_ ? given_->span() : ofMesh_; }

  private:
    std::optional<Integers> given_;
    std::span<const index> ofMesh_; ///< as long as the field lives
};

/// One mesh of all ranks: some may have none, because they add arrays that are not fields. Collective.
std::optional<std::uint64_t> meshOfAll(CommunicatorView comm, const std::optional<std::uint64_t> &mine) {
    std::array<std::uint64_t, 3> most{mine ? std::uint64_t{1} : 0, mine.value_or(0), mine ? ~*mine : 0};
    comm.allReduce(most.data(), 3, MPI_MAX);
    DNDS_CHECK(most[0] == 0 || most[1] == ~most[2], ArgumentError,
               "ranks have fields of different meshes: a checkpoint is for one mesh");
    return most[0] == 0 ? std::nullopt : std::optional(most[1]);
}

index writeCheckpoint(nb::handle path, nb::handle arrays, nb::handle ids, nb::handle values, nb::handle comm) {
    const CommPtr shared = commOf(comm);
    std::string where;
    std::optional<std::uint64_t> mesh;
    guarded(shared->view, [&] {
        std::vector<std::uint64_t> meshes;
        where = pathOf(path);
        nb::dict named;
        if (nb::try_cast(arrays, named)) // else what is wrong is said below
            for (const auto [key, array] : named)
                joinMeshes(meshes, array, nb::cast<std::string>(nb::str(key)));
        if (!meshes.empty())
            mesh = meshes.front();
    });
    {
        const nb::gil_scoped_release others;
        mesh = meshOfAll(shared->view, mesh);
    }
    std::optional<CheckpointWriter> file;
    std::vector<RowIds> kept;
    std::vector<std::unique_ptr<AnyBlockRows>> keptRows;
    guarded(shared->view, [&] {
        file.emplace(shared->view, where, CheckpointOptions{.mesh = mesh});
        try {
            const bool sameIds = !nb::isinstance<nb::dict>(ids);
            for (const auto [name, array] : nb::cast<nb::dict>(arrays)) {
                if (nb::isinstance<SparseHandle>(array)) {
                    auto rows = nb::cast<const SparseHandle &>(array).field->rows();
                    file->add(nb::cast<std::string>(name), std::as_const(rows->cells()), rows->ids());
                    file->add(nb::cast<std::string>(name) + ".blocks", std::as_const(rows->blocks()), rows->ids());
                    keptRows.push_back(std::move(rows));
                    continue;
                }
                if (const BlockFieldHandle *blocks = blockFieldOf(array)) {
                    blocks->requireLanded("be written");
                    AnyBlockRows &rows = *keptRows.emplace_back(cellRowsOf(*blocks->field));
                    file->add(nb::cast<std::string>(name), std::as_const(rows.cells()), rows.ids());
                    continue;
                }
                const nb::object its = sameIds ? nb::borrow(ids) : nb::object(ids.attr("get")(name));
                kept.emplace_back(its, array);
                file->add(nb::cast<std::string>(name), std::as_const(rowsOf(array)), kept.back().span());
            }
            if (!values.is_none())
                for (const auto [name, value] : nb::cast<nb::dict>(values))
                    setValue(*file, nb::cast<std::string>(name), value);
        } catch (const nb::cast_error &) {
            throw ArgumentError(
                "a checkpoint holds Field, Array, BlockField, NdArray and SparseField objects, and values that are "
                "numbers, lists of numbers, or text");
        }
    });
    const nb::gil_scoped_release others;
    return file->write();
}

/// A checkpoint file and its communicator. Each field states the mesh for which it reads.
struct Checkpoint {
    CommPtr comm;
    std::unique_ptr<CheckpointReader> file;
    bool warned = false; ///< has warned that the file does not state its mesh
};

/// Refuses rows of another mesh. Local; called on all ranks.
void requireMeshOf(Checkpoint &self, nb::handle array) {
    const std::vector<std::uint64_t> meshes = meshesOf(array);
    if (meshes.empty())
        return;
    const auto of = std::ranges::find_if(meshes, [&](std::uint64_t one) { return self.file->content().mesh == one; });
    self.file->requireMesh(of != meshes.end() ? *of : meshes.front());
    if (self.file->content().mesh || self.warned)
        return;
    self.warned = true;
    const std::string text = self.file->path() + " does not state its mesh: whether its ids are those of "
                                                 "this mesh was not checked";
    if (self.comm->view.rank() == 0 && PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) != 0)
        throw nb::python_error();
}

nb::dict valuesOf(const Checkpoint &self) {
    nb::dict values;
    for (const auto &[name, value] : self.file->content().values)
        values[name.c_str()] = std::visit(
            [](const auto &held) -> nb::object {
                if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::string>)
                    return nb::str(held.c_str(), held.size());
                else
                    return held.size() == 1 ? nb::cast(held.front()) : nb::cast(held);
            },
            value);
    return values;
}

void readSparse(Checkpoint &self, const std::string &name, nb::handle array, nb::handle ids, bool anyMesh) {
    const auto &into = nb::cast<const SparseHandle &>(array);
    std::unique_ptr<AnySparseRows> rows;
    guarded(self.comm->view, [&] {
        DNDS_CHECK(ids.is_none(), ArgumentError, "'{}' is a sparse field: it knows its ids itself", into.core().name());
        if (!anyMesh)
            requireMeshOf(self, array);
        rows = into.field->rows();
    });
    {
        const nb::gil_scoped_release others;
        self.file->read(name, rows->cells(), rows->ids());
        self.file->read(name + ".blocks", rows->blocks(), rows->ids());
    }
    guarded(self.comm->view, [&] { rows->restore(); });
}

void readBlocks(Checkpoint &self, const std::string &name, nb::handle array, nb::handle ids, bool anyMesh) {
    const BlockFieldHandle &into = *blockFieldOf(array);
    std::unique_ptr<AnyBlockRows> rows;
    guarded(self.comm->view, [&] {
        DNDS_CHECK(ids.is_none(), ArgumentError, "'{}' is a field on blocks: it knows its ids itself",
                   into.field->core().name());
        into.requireLanded("be read");
        if (!anyMesh)
            requireMeshOf(self, array);
        rows = cellRowsOf(*into.field);
    });
    {
        const nb::gil_scoped_release others;
        self.file->read(name, rows->cells(), rows->ids());
    }
    guarded(self.comm->view, [&] { rows->restore(); });
}

void readRows(Checkpoint &self, const std::string &name, nb::handle into, nb::handle ids, bool anyMesh) {
    if (nb::isinstance<SparseHandle>(into))
        return readSparse(self, name, into, ids, anyMesh);
    bool ofBlocks = false;
    guarded(self.comm->view, [&] { ofBlocks = blockFieldOf(into) != nullptr; });
    if (ofBlocks)
        return readBlocks(self, name, into, ids, anyMesh);
    std::optional<RowIds> list;
    ArrayBase *rows = nullptr;
    guarded(self.comm->view, [&] {
        list.emplace(ids, into);
        rows = &rowsOf(into);
        if (!anyMesh && nb::isinstance<Field>(into))
            requireMeshOf(self, into);
        const bool fixed = nb::isinstance<Field>(into) || nb::cast<const AnyArray &>(into).fixedRows;
        DNDS_CHECK(!fixed || static_cast<index>(list->span().size()) == rows->size(), ArgumentError,
                   "'{}' has {} owned rows, but {} ids", rows->label(), rows->size(), list->span().size());
    });
    const nb::gil_scoped_release others;
    self.file->read(name, *rows, list->span());
}

} // namespace

void bindCheckpoint(nb::module_ &module) {
    module.def(
        "write_checkpoint", &writeCheckpoint, "path"_a.none(), "arrays"_a, "ids"_a.none() = nb::none(),
        "values"_a.none() = nb::none(), nb::kw_only(), "comm"_a.none() = nb::none(),
        nb::sig("def write_checkpoint(path: str | os.PathLike[str], "
                "arrays: collections.abc.Mapping[str, Field | Array | BlockField | NdArray | SparseField], "
                "ids: numpy.typing.ArrayLike | collections.abc.Mapping[str, numpy.typing.ArrayLike] | None = None, "
                "values: collections.abc.Mapping[str, float | str | collections.abc.Sequence[float]] | None = None, "
                "*, comm: mpi4py.MPI.Comm | None = None) -> int"),
        R"(Writes arrays and values to an HDF5 file that is complete or absent, and returns its size in bytes. Collective.

`ids` [owned], for all arrays or by name, are unique numbers over all ranks: any number of ranks finds its rows by them. Fields
on the cells or nodes of a mesh have their file numbers where none are given; sparse fields and fields on blocks need none. Fields are
written without ghosts; those of a mesh (`Mesh.field`) are read only into fields of the same mesh, those on blocks into any blocks of a
grid with these cells. Raises DataError on all ranks if the
file cannot be written; an existing file then stays.)");
    nb::class_<Checkpoint>(module, "Checkpoint", R"(A checkpoint file, read on any number of ranks.

    file = dnds.Checkpoint("run.h5")
    time = file.values["time"]
    file.read("u", u)  # a field of a mesh; else with the ids of its rows
)")
        .def(
            "__init__",
            [](Checkpoint *self, nb::handle path, nb::handle comm) {
                CommPtr shared = commOf(comm);
                std::string name;
                guarded(shared->view, [&] { name = pathOf(path); });
                std::unique_ptr<CheckpointReader> file;
                {
                    const nb::gil_scoped_release others;
                    file =
                        std::make_unique<CheckpointReader>(shared->view, name, CheckpointReadOptions{.anyMesh = true});
                }
                new (self) Checkpoint{std::move(shared), std::move(file)};
            },
            "path"_a.none(), "comm"_a.none() = nb::none(),
            nb::sig("def __init__(self, path: str | os.PathLike[str], comm: mpi4py.MPI.Comm | None = None) -> None"),
            "Collective. Raises DataError on all ranks for a file that is missing, damaged, or no checkpoint.")
        .def_prop_ro("values", &valuesOf, nb::sig("def values(self) -> dict[str, typing.Any]"), "The values by name.")
        .def_prop_ro(
            "arrays",
            [](const Checkpoint &self) {
                nb::dict arrays;
                for (const CheckpointArray &array : self.file->content().arrays)
                    arrays[array.name.c_str()] = array.description();
                return arrays;
            },
            nb::sig("def arrays(self) -> dict[str, str]"), "Descriptions of the arrays by name.")
        .def(
            "read", &readRows, "name"_a, "into"_a, "ids"_a.none() = nb::none(), nb::kw_only(), "any_mesh"_a = false,
            nb::sig("def read(self, name: str, into: Field | Array | BlockField | NdArray | SparseField, "
                    "ids: numpy.typing.ArrayLike | None = None, *, any_mesh: bool = False) -> None"),
            R"(Fills the owned rows of a field, or an array (which gets that many rows), with the rows of these ids. Collective.

A field on the cells or nodes of a mesh has their file numbers where no ids are given. A sparse field, for which none are given, gets the blocks that the file has; ghosts and other stages have the default. A
BlockField or NdArray gets its cells; an exchange of ghosts brings it the points that blocks share.

Raises on all ranks: ArgumentError if the file was written with fields of another mesh than the field's, unless
`any_mesh`; LayoutError for another type or width, DataError for ids that the file lacks and damaged blocks. Warns if
the file does not state its mesh.)")
        .def(
            "own_block",
            [](const Checkpoint &self, const std::string &name) {
                const auto ids = std::make_shared<std::vector<index>>();
                {
                    const nb::gil_scoped_release others;
                    *ids = self.file->ownBlock(name);
                }
                return numpyOf(std::span<const index>(*ids), ids);
            },
            "name"_a, nb::sig("def own_block(self, name: str) -> numpy.typing.NDArray[numpy.int64]"),
            "The ids of this rank's share of rows, for reading without a partition. Collective.")
        .def(
            "verify", [](const Checkpoint &self) { self.file->verify(); }, nb::call_guard<nb::gil_scoped_release>(),
            "Compares all checksums. Collective. Raises DataError on all ranks.");
}

} // namespace DNDS::Python
