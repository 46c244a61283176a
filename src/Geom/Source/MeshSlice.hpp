/// @file MeshSlice.hpp
/// @brief One rank's block of a mesh and of its fields, as writers of files take them.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace DNDS::Geom {

/// Rank r's points are numbered after those of the ranks before it, and so are its cells: the order of the file.
/// Everything is owned by someone else.
struct MeshSlice {
    int cellDimension = 0;
    int physicalDimension = 0;
    index globalPoints = 0;
    index firstPoint = 0;
    std::span<const std::array<real, 3>> points;
    index globalCells = 0;
    index firstCell = 0;
    std::span<const ElementType> types; ///< [own cells]
    std::span<const index> starts;      ///< [own cells + 1], into `nodes`
    std::span<const index> nodes;       ///< global points, listed as `ElementBlock` does

    index cells() const noexcept { return static_cast<index>(types.size()); }
    std::span<const index> nodesOf(index cell) const {
        const auto c = static_cast<std::size_t>(cell);
        return nodes.subspan(static_cast<std::size_t>(starts[c]), static_cast<std::size_t>(starts[c + 1] - starts[c]));
    }
};

/// The slice of a mesh that was read or generated. Local, O(1).
inline MeshSlice sliceOf(const SourceMesh &mesh) {
    return {mesh.cellDimension,    mesh.physicalDimension, mesh.globalNodes, mesh.firstNode,    mesh.coordinates,
            mesh.cells.globalSize, mesh.cells.first,       mesh.cells.types, mesh.cells.starts, mesh.cells.nodes};
}

/// The values of a field at this rank's points or cells: [own x components]. All ranks name the same fields in the same
/// order.
struct FieldSlice {
    std::string name;
    int components = 1;
    std::span<const real> values;
};

/// The fields of one step of a file.
struct StepFields {
    std::vector<FieldSlice> cells{};
    std::vector<FieldSlice> nodes{};
};

/// Throws ArgumentError that names the field where it has no usable name or not a value for each of `rows` rows. `what`
/// is "cell" or "point". Local.
void checkField(const FieldSlice &field, index rows, std::string_view what);

/// Throws ArgumentError on all ranks where they name different fields: the first that differs from rank 0's.
/// Collective.
void needSameFields(CommunicatorView comm, std::span<const FieldSlice> pointFields,
                    std::span<const FieldSlice> cellFields);

} // namespace DNDS::Geom
