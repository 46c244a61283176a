/// @file VtkHdfWriter.hpp
/// @brief Writes meshes and fields for ParaView: VTKHDF, through parallel HDF5.
///
/// `VtkCells`: cells as VTK lists them.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Geom/Source/ElementType.hpp"
#include "DNDS/Geom/Source/MeshSlice.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace DNDS::Geom {

/// Cells as a vtkUnstructuredGrid has them; offsets are the ends of cells and of faces. Plain data, not collective.
struct VtkCells {
    std::vector<std::uint8_t> types; ///< [cells] VTK's numbers
    std::vector<index> connectivity;
    std::vector<index> offsets;           ///< [cells]
    std::vector<index> faceConnectivity;  ///< faces of polyhedra only; normals point outwards
    std::vector<index> faceOffsets;       ///< [faces of polyhedra]
    std::vector<index> polyhedronToFaces; ///< 0, 1, ...: faces are not shared
    std::vector<index> polyhedronOffsets; ///< [cells]

    /// Adds a cell with its nodes in the order of the CGNS standard; a polyhedron as the number of corners and the
    /// corners of each of its faces. Local. Throws ArgumentError for an invalid polyhedron.
    void add(ElementType type, std::span<const index> nodes);
};

/// A VTKHDF file with one mesh and its fields at any number of times.
///
///     VtkHdfWriter writer(comm, "flow.vtkhdf", sliceOf(mesh));
///     for (...)
///         writer.writeStep(time, pointFields, cellFields);
///     writer.close();
///
/// A restarted program continues the steps of its last file, up to the time of its checkpoint:
///
///     VtkHdfWriter writer(comm, "flow.vtkhdf", sliceOf(mesh));
///     writer.continueFrom("flow.vtkhdf", timeOfCheckpoint);
///
/// The file is one piece in the order of the slices: its content does not depend on the number of ranks. It is called
/// `path` + ".part" until `close` renames it: a file at `path` is complete. All ranks write their own rows together;
/// memory is in proportion to a rank's slice. Polyhedra need VTK 9.5 or newer (version 2.5 of the format).
///
/// All functions are Collective and throw the same on all ranks: ArgumentError for slices that do not match; DataError,
/// with the path, if the file cannot be written; StateError after `close`; NotBuiltError if DNDS was built without
/// parallel HDF5.
///
/// Format: https://docs.vtk.org/en/latest/vtk_file_formats/vtkhdf_file_format/
class VtkHdfWriter {
  public:
    /// Opens the file and writes the mesh. The slice is not needed afterwards.
    VtkHdfWriter(CommunicatorView comm, std::string path, const MeshSlice &mesh);
    VtkHdfWriter(VtkHdfWriter &&) noexcept;
    VtkHdfWriter &operator=(VtkHdfWriter &&) noexcept;
    /// Leaves the file unfinished unless `close` was called, and says so on stderr. Collective, too; but an exception
    /// that destroys the writer may be known to this rank only: then the unfinished file is abandoned and removed
    /// without waiting for others.
    ~VtkHdfWriter();

    /// Appends fields at a time. The first call sets the names and components; later ones must give the same, in any
    /// order.
    void writeStep(real time, std::span<const FieldSlice> pointFields, std::span<const FieldSlice> cellFields);

    /// Copies the steps of a complete file of the same mesh, which may be the one that this writer replaces, up to and
    /// including the time `last`; before the first `writeStep`. Returns how many. Cost: reads and writes them all.
    /// Throws ArgumentError for a file of another mesh, StateError after a step, DataError for files of other programs.
    index continueFrom(const std::string &path, real last = std::numeric_limits<real>::infinity());

    /// Completes the file. Without any step it holds only the mesh.
    void close();

    /// Whether this build can write. Local.
    static bool built() noexcept;

  private:
    class Implementation;
    std::unique_ptr<Implementation> implementation_;
};

} // namespace DNDS::Geom
