/// @file SparseHandle.hpp
/// @brief Sparse fields on the blocks of a grid or the clusters of a mesh, for Python.
#pragma once

#include "BlockHandles.hpp"
#include "Exchanger.hpp"
#include "NumpyViews.hpp"

#include "DNDS/Geom/Source/MeshSlice.hpp"
#include "DNDS/Sparse/SparseFields.hpp"
#include "DNDS/Sparse/SparseFile.hpp"
#include "DNDS/Sparse/SparseReductions.hpp"

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace DNDS::Geom {
class MeshClusters;
}

namespace DNDS::Python {

/// Blocks as rows of a checkpoint, and which are there.
class AnySparseRows : public AnyBlockRows {
  public:
    virtual ArrayBase &blocks() = 0;
};

/// A SparseField of any type, as Python uses it.
class AnySparseField {
  public:
    AnySparseField() = default;
    AnySparseField(const AnySparseField &) = delete;
    AnySparseField &operator=(const AnySparseField &) = delete;
    virtual ~AnySparseField() = default;

    virtual SparseFieldCore &core() = 0;
    virtual ElementKind kind() const = 0;
    virtual nanobind::object defaultValue() const = 0;
    /// The cells of a block, with or without ghosts. Throws as `SparseField::view`.
    virtual Block view(int local, int stage, bool ghosts) = 0;
    /// Collective.
    virtual std::vector<real> sums() const = 0;
    virtual std::vector<real> norms2() const = 0;
    virtual std::vector<Extrema> extrema() const = 0;
    /// See DroppedSums, of which this begins one. Local.
    virtual void countDropped() = 0;
    /// Collective. Throws StateError where nothing is counted.
    virtual std::vector<real> dropped() const = 0;
    /// Local. Throw ArgumentError for another element type, and what `toDense` throws.
    virtual void toDense(AnyBlockField &dense) const = 0;
    virtual void fromDense(AnyBlockField &dense) = 0;
    virtual std::unique_ptr<AnySparseRows> rows() = 0;
    /// For files: of grids, collective; of clusters, local. Throw as SparseResults::add and `Geom::fieldsOf`.
    virtual void addTo(SparseResults &results) const = 0;
    virtual std::vector<Geom::FieldSlice> fields(const Geom::MeshClusters &clusters) const = 0;
    /// The sums of what was dropped go with the moved field. Collective. Throws as `SparseField::moved`.
    virtual std::shared_ptr<AnySparseField> moved(const std::shared_ptr<const SparsePattern> &to) = 0;
};

struct SparseHandle {
    CommPtr comm;
    std::shared_ptr<AnySparseField> field;
    std::uint64_t fingerprint = 0; ///< of the grid's blocks, or the mesh: identifies matching checkpoints

    SparseFieldCore &core() const { return field->core(); }
};

/// The arguments of `sparse_field`, of grids and meshes.
struct SparseArguments {
    std::string name;
    nanobind::handle dtype;
    nanobind::handle defaultValue;
    SparseFieldOptions options;
};

/// Collective over `comm`: what is wrong on one rank raises on all.
SparseHandle makeSparseField(const CommPtr &comm, std::shared_ptr<const SparsePattern> pattern,
                             std::uint64_t fingerprint, const SparseArguments &arguments);

/// Writes fields on a grid as a VTKHDF file. Collective.
void writeVtk(const std::vector<std::shared_ptr<AnySparseField>> &fields, nanobind::handle path,
              const std::array<real, 3> &origin, const std::array<real, 3> &spacing, bool centres);
inline constexpr const char *writeVtkSignature = "def write_vtk(self, path: str | os.PathLike[str], *, "
                                                 "origin: collections.abc.Sequence[float] = (0, 0, 0), "
                                                 "spacing: collections.abc.Sequence[float] = (1, 1, 1), "
                                                 "centres: bool = False) -> None";
/// The counts as a dict.
nanobind::dict trafficOf(const SparseTraffic &traffic);
/// Pushes a field, or several, by the operation's word, and lets other threads of Python run.
template <class Pushed>
void pushGhosts(Pushed &pushed, std::string_view op) {
    const PushOp operation = chosen(op, "push operation", pushOps);
    const nanobind::gil_scoped_release others;
    pushed.pushGhosts(operation);
}
inline constexpr const char *pushGhostsText =
    R"(Adds what was deposited into ghosts to the cells that they stand for; ghosts are the default afterwards.

An absent block is allocated where a deposit for it is above the allocation threshold; else the deposit is dropped, which
`dropped_sums` counts. "min" and "max" take the least or the largest; the default value must be what changes nothing: 0,
infinity or -infinity. Deposits are applied by the number of their block: the same bits on any number of ranks. Collective
the first time, then between peers.)";

/// The fields, and `sparse_field` of grids; after those.
void bindSparse(nanobind::module_ &module);
/// `SparseFields`; after the fields.
void bindSparseGroups(nanobind::module_ &module);

} // namespace DNDS::Python
