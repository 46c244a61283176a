/// @file VtkLists.hpp
/// @brief Makes meshes and fields of the lists that VTK's formats have in common. Part of their readers.
#pragma once

#include "DNDS/Geom/Source/MeshSlice.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <span>
#include <string>
#include <vector>

namespace DNDS::Geom {

/// VTK's number of polyhedra.
constexpr index vtkPolyhedron = 42;

/// Points and cells as both VTKHDF and VTU list them, by VTK's types, offsets and connectivity. Each rank has a
/// block of the points and a block of the cells, in the order of the file; cells name nodes of all blocks, from 0.
///
/// Cell `c` has the nodes from `starts[c] - starts[0]` to `starts[c + 1] - starts[0]`.
struct VtkLists {
    index firstCell = 0;           ///< number of this rank's first cell
    index points = 0;              ///< number of points of all ranks
    std::vector<real> coordinates; ///< [own points][3]
    std::vector<index> types;      ///< [own cells], VTK's numbers
    std::vector<index> starts{0};  ///< [own cells + 1], ascending
    std::vector<index> nodes;      ///< in VTK's order
    std::vector<index> faceStarts; ///< polyhedra: as `starts`, for `faces`; else empty
    std::vector<index> faces;      ///< polyhedra: as in ElementBlock
};

/// Faces of polyhedra by numbers. Cell `c` has those from `starts[c] - starts[0]` to `starts[c + 1] - starts[0]` in
/// `faces`; face `f` has the corners from `cornerStarts[f - first] - cornerStarts[0]` to that of `f + 1`.
struct VtkFaces {
    std::vector<index> starts{0};
    std::vector<index> faces;
    index first = 0; ///< face of the first entry of `cornerStarts`
    std::vector<index> cornerStarts{0};
    std::vector<index> corners;
};

/// Lists faces as `VtkLists` has them, with the starts. Local.
void listFaces(const VtkFaces &faces, std::vector<index> &starts, std::vector<index> &lists);

/// The mesh, of the cells of the highest dimension; the others are left out with a note. Voxels and pixels become
/// hexahedra and quadrilaterals, and nodes are brought to the order of CGNS. VTK's formats have no boundaries, so the
/// mesh has no patches. `kept` becomes [own cells]: which are in the mesh. Collective. Throws DataError on all ranks,
/// with the cell, if VTK's type is not supported, or does not fit the number of nodes, or a node does not exist.
SourceMesh meshOfVtk(CommunicatorView comm, const std::string &path, VtkLists lists, std::vector<bool> &kept);

/// Adds the fields of an array of `columns` components, [rows][columns], at the rows that are `kept`: "<name>", or
/// "<name>X", "<name>Y", "<name>Z" of three, or "<name>1", ... Local.
void addVtkFields(const std::string &group, const std::string &name, index columns, std::span<const real> values,
                  const std::vector<bool> &kept, std::vector<MeshField> &fields);

} // namespace DNDS::Geom
