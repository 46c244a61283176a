/// @file MeshSlice.hpp
/// @brief One rank's block of a mesh and its fields, in the form that writers take, and fields read from a file, with
/// the mesh that they belong to.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace DNDS::Geom {

/// Points and cells are numbered after those of lower ranks, in the order of the file. All spans refer to memory owned
/// elsewhere.
/// Writers need nothing else of a mesh: a SourceMesh, a distributed mesh in file order (FileOrder.hpp) and refined
/// meshes are all written through it.
struct MeshSlice {
    /// 2 or 3; the dimension of all cells.
    int cellDimension = 0;
    /// Coordinates that a file stores of each point: 2 or 3. Points always have three here.
    int physicalDimension = 0;
    /// Points of all ranks; this rank has [firstPoint, firstPoint + points.size()).
    index globalPoints = 0;
    index firstPoint = 0;
    /// [own points]
    std::span<const std::array<real, 3>> points;
    /// Cells of all ranks; this rank has [firstCell, firstCell + cells()).
    index globalCells = 0;
    index firstCell = 0;
    std::span<const ElementType> types; ///< [own cells]
    std::span<const index> starts;      ///< [own cells + 1], into `nodes`
    std::span<const index> nodes;       ///< global points, listed as `ElementBlock` does

    /// The number of own cells.
    index cells() const noexcept { return static_cast<index>(types.size()); }
    /// The global points of own cell `cell`, counted from 0 on this rank.
    std::span<const index> nodesOf(index cell) const {
        const auto c = static_cast<std::size_t>(cell);
        return nodes.subspan(static_cast<std::size_t>(starts[c]), static_cast<std::size_t>(starts[c + 1] - starts[c]));
    }
};

/// The slice of a mesh read or generated. Local, O(1).
inline MeshSlice sliceOf(const SourceMesh &mesh) {
    return {mesh.cellDimension,    mesh.physicalDimension, mesh.globalNodes, mesh.firstNode,    mesh.coordinates,
            mesh.cells.globalSize, mesh.cells.first,       mesh.cells.types, mesh.cells.starts, mesh.cells.nodes};
}

/// A field's values at this rank's points or cells: [own x components]. All ranks name the same fields in the same
/// order.
/// Rows are this rank's points or cells of the slice, in its order.
struct FieldSlice {
    /// As files store it: not empty, without a slash.
    std::string name;
    int components = 1;
    std::span<const real> values;
    std::shared_ptr<const std::vector<real>> copy{}; ///< memory of `values`, if it has no other owner
};

/// The fields of one step.
struct StepFields {
    std::vector<FieldSlice> cells{};
    std::vector<FieldSlice> nodes{};
};

/// One component of a field, copied. Local. Throws IndexError.
FieldSlice componentOf(const FieldSlice &field, int component);

/// Throws ArgumentError with the field's name if the name is invalid or the number of values is not `rows` x
/// components. `what` is "cell" or "point". Local.
void checkField(const FieldSlice &field, index rows, std::string_view what);

/// Throws ArgumentError on all ranks if their fields differ, naming the first that differs from rank 0's. Collective.
void requireSameFields(CommunicatorView comm, std::span<const FieldSlice> pointFields,
                       std::span<const FieldSlice> cellFields);

/// An array of a file's solution, in file order: one number for each of this rank's nodes or cells of the SourceMesh.
/// All number types of the file are converted to double.
/// Values stay in file order on the ranks that read them; takeFromFileOrder (Write/FileOrder.hpp) sends them to the
/// owners of nodes and cells.
struct MeshField {
    std::string solution; ///< "FlowSolution"
    std::string name;     ///< "Density"
    std::vector<real> values;
};

/// All ranks have the same fields in the same order. Plain data.
struct MeshFields {
    std::vector<MeshField> nodes;
    std::vector<MeshField> cells;
};

/// Fields in the form that writers take; `fields` must outlive them. If two solutions have a field of the same name,
/// the second is called "<solution>.<name>". Local.
std::vector<FieldSlice> slicesOf(const std::vector<MeshField> &fields);

} // namespace DNDS::Geom
