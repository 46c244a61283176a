/// @file WriteMesh.hpp
/// @brief Writes partitioned meshes and their fields in the order of the original file.
///
/// - `FileOrder`: restores that order of a partitioned mesh and its fields, for other formats
/// - `vtkCells`: the cells of this rank for VTK's objects in memory, as in-situ tools take them
#pragma once

#include "DNDS/Geom/Cgns/Cgns.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Geom/Source/MeshSlice.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Geom/Vtk/VtkHdfWriter.hpp"
#include "DNDS/Index/Mappings.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS::Geom {

/// A mesh in the order of its file, cut into blocks of nearly equal size, one per rank. Apart from the cuts, the blocks
/// do not depend on the partition or the number of ranks.
///
/// Memory is in proportion to a rank's part of the mesh and its block. All functions but `mesh` and `comm` are
/// Collective.
class FileOrder {
  public:
    /// Sends cells, coordinates and boundary faces to their blocks. Two sparse exchanges for each of them.
    ///
    /// Nodes of no cell were dropped when the mesh was built: later nodes have lower numbers than in the file. Boundary
    /// faces are in the order of their cells in the file, with their corners only; sides of periodic connections are
    /// marked as in the source; faces of no patch are omitted.
    explicit FileOrder(const UnstructuredMesh &mesh);

    /// This rank's blocks, in the form of readers. Local.
    const SourceMesh &mesh() const noexcept { return source_; }
    SourceMesh &&take() noexcept { return std::move(source_); }
    const CommunicatorView &comm() const { return context_->comm(); }

    /// The rows of this rank's block of cells (nodes) from the owned rows of all ranks: `owned` are [owned x
    /// components], the result is [block x components]. Throws ArgumentError on all ranks if sizes do not match.
    std::vector<real> cellValues(std::span<const real> owned, int components) const;
    std::vector<real> nodeValues(std::span<const real> owned, int components) const;

  private:
    /// Destinations of owned entities, and places of received ones.
    /// Made once: fields of every step take the same way.
    struct Route {
        std::vector<int> ranks;    ///< [owned] rank of the block
        std::vector<index> places; ///< [block] block row of the k-th entity received
    };
    void sendNodes(const UnstructuredMesh &mesh);
    void sendCells(const UnstructuredMesh &mesh);
    void sendFaces(const UnstructuredMesh &mesh);
    std::vector<real> sendValues(const Route &route, std::span<const real> owned, int components) const;

    std::shared_ptr<CommunicatorContext> context_;
    /// This rank's block.
    SourceMesh source_;
    Route cells_;
    Route nodes_;
    std::vector<index> newNumbers_; ///< [nodes of the mesh] in the file order, without unused ones
};

/// The reverse of FileOrder: sends values in file order to the owners of entities. `blockValues` are [own rows of the
/// SourceMesh x components], as in `MeshField`; the result is [owned entities x components]. Collective; two sparse
/// exchanges. Throws ArgumentError on all ranks if the blocks do not cover all entities.
std::vector<real> takeFromFileOrder(const UnstructuredMesh &mesh, const MeshEntities &entities,
                                    std::span<const real> blockValues, int components = 1);

/// The owned rows of an array of cells or nodes as a field of a file. Local. O(1) for `real`: the array must outlive
/// it; other numbers are copied. Matrices are written column by column. Rows of one width, also one chosen at run time.
template <class T, rowsize width, rowsize most>
FieldSlice fieldOf(std::string name, const ParArray<T, width, most> &owned) {
    static_assert(width > 0 || width == DynamicSize, "fields of files have the same number of components in all rows");
    const auto components = static_cast<int>(std::max(owned.width(), rowsize{0})); // ranks without rows may have none
    const std::span<const T> values(owned.data(), static_cast<std::size_t>(owned.dataSize()));
    if constexpr (std::is_same_v<T, real>) {
        return {std::move(name), components, values};
    } else {
        const auto copy = std::make_shared<std::vector<real>>(values.size());
        std::ranges::transform(values, copy->begin(), [](T value) { return static_cast<real>(value); });
        return {std::move(name), components, *copy, copy};
    }
}
/// The same for a field with ghosts, which are not written: an ArrayPair or an ArrayDof.
template <class TArray>
FieldSlice fieldOf(std::string name, const ArrayPair<TArray> &field) {
    return fieldOf(std::move(name), std::as_const(*field.father));
}
/// Deleted for temporaries, whose values would be destroyed before they are written: name the field first.
template <class T, rowsize width, rowsize most>
FieldSlice fieldOf(std::string name, ParArray<T, width, most> &&temporary) = delete;
template <class TArray>
FieldSlice fieldOf(std::string name, ArrayPair<TArray> &&temporary) = delete;
/// One component as a field of its own, copied. Local, O(rows). Throws IndexError for a component that rows do not
/// have.
///
///     writer.writeStep(time, {.cells = {fieldOf("density", u, 0), fieldOf("energy", u, 4)}});
template <class TField>
FieldSlice fieldOf(std::string name, const TField &field, int component) {
    return componentOf(fieldOf(std::move(name), field), component);
}

/// Choices for `MeshWriter`; the same on all ranks.
struct MeshWriterOptions {
    bool ranks = false; ///< adds the cell field "rank": the owner
};

/// A VTKHDF file of a partitioned mesh and of fields at any number of times.
///
///     MeshWriter writer(mesh, "flow.vtkhdf");
///     for (...)
///         writer.writeStep(time, {.cells = {fieldOf("u", u), fieldOf("pressure", p)}, .nodes = {fieldOf("x", x)}});
///     writer.close();
///
/// Cells and nodes are in the order of the file that the mesh was read from: results of any two runs can be compared,
/// and the content does not depend on the number of ranks (except the field "rank"). Each step sends the fields to
/// blocks in file order, one sparse exchange per field. A writer destroyed without `close` leaves path + ".part" and
/// says so on stderr. All functions are Collective and throw as those of VtkHdfWriter.
class MeshWriter {
  public:
    /// Starts the file and writes the mesh, which may end before the writer does.
    MeshWriter(const UnstructuredMesh &mesh, std::string path, const MeshWriterOptions &options = {});

    /// Fields have the rows of owned cells or nodes: see `fieldOf`. Throws ArgumentError with the field's name if it
    /// has another number of rows, or is missing in the first step or on some rank.
    void writeStep(real time, const StepFields &fields);
    /// Copies the steps of a complete file of the same mesh up to the time `last`, so that a restarted program
    /// continues its series: see `VtkHdfWriter::continueFrom`. On any number of ranks, except for the field "rank".
    index continueFrom(const std::string &path, real last = std::numeric_limits<real>::infinity());
    /// Continues with the repartitioned mesh: fields of later steps have the rows of this one. Costs as much as making
    /// the writer, except for the file. Throws ArgumentError for another mesh: sizes, cells and coordinates are
    /// compared.
    void moved(const UnstructuredMesh &mesh);
    /// Completes the file.
    void close();

  private:
    void setRanks();

    /// Routes of the present partition.
    FileOrder order_;
    /// Rows that fields of this rank must have.
    index ownedNodes_;
    index ownedCells_;
    bool writesRanks_;
    std::vector<real> ranks_; ///< [owned cells], or empty
    VtkHdfWriter writer_;
};

/// Writes a partitioned mesh, its boundary patches and fields of owned nodes and cells as a CGNS file, in the order of
/// the original file: the content does not depend on the number of ranks. Collective. Boundary faces are written with
/// their corners only. Errors: those of `writeCgns`.
///
///     writeCgnsMesh(mesh, "flow.cgns", {.cells = {fieldOf("u", u)}, .nodes = {fieldOf("x", x)}});
void writeCgnsMesh(const UnstructuredMesh &mesh, const std::string &path, const StepFields &fields = {},
                   const CgnsWriteOptions &options = {});

/// The first `cells` local cells, by local node numbers: `mesh.cells.owned` of them, or `mesh.cells.size()` with
/// ghosts. Points are `mesh.coordinates`. Local. Throws ArgumentError if there are fewer cells.
VtkCells vtkCells(const UnstructuredMesh &mesh, index cells);

} // namespace DNDS::Geom
