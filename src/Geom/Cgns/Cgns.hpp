/// @file Cgns.hpp
/// @brief CGNS files.
///
/// - `readCgns`: reads meshes from files of both file types and all versions, each rank its own part
/// - `writeCgns`: writes meshes and fields, in the order of their lists
#pragma once

#include "DNDS/Geom/Source/MeshSlice.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace DNDS::Geom {

/// Choices for `readCgns`; the same on all ranks.
struct CgnsOptions {
    std::string base; ///< the base to read; "" for the only one with cells of two or three dimensions

    /// Whether coincident nodes of different zones become one node, in addition to nodes that the file's connections
    /// join.
    bool joinCoincidentNodes = false;
    /// The largest distance of such nodes, relative to the longest side of the mesh's bounding box.
    real joinTolerance = 1e-9;

    /// Filled in with the file's solutions (FlowSolution_t at vertices and cell centres) if given. What is not a field
    /// of the whole mesh is skipped with a warning: other locations, parts of zones, arrays that some zones lack, rind
    /// planes of structured zones.
    MeshFields *fields = nullptr;
};

/// Throws ArgumentError on all ranks if their options differ. Collective; one reduction. Readers call it.
void requireSameOptions(CommunicatorView comm, const CgnsOptions &options);

/// Reads one base of a CGNS file. Collective.
///
/// Rank 0 reads the tree of small nodes and broadcasts it; every rank then reads its own slices of coordinates,
/// connectivity and point lists, so that the memory of a rank is in proportion to its part of the mesh.
///
/// Conversion of the file's contents:
/// - Zones follow each other. Nodes that Abutting1to1 or 1-to-1 connections (by vertices or faces) join become one.
/// Structured zones become HEXA_8 or QUAD_4 cells; connections may list their faces. Connections to zones of other
/// bases are left out with a warning.
/// - Cells are the elements of the base's cell dimension; NGON_n with NFACE_n, or with ParentElements only, give
/// polyhedra, or polygons in two dimensions. Elements more than one dimension below are skipped with a note. Files of
/// version 3.0, which numbered element types differently, are read accordingly.
/// - Each boundary condition is a patch of the same name; conditions of one name in several zones are one patch. If it
/// is FamilySpecified, its kind is that of its family. Point sets of elements mark faces, those of vertices mark nodes.
/// Faces in no boundary condition are in no patch; but if the file has no boundary condition, each section of faces is
/// a patch, without the faces of periodic connections.
/// - In structured zones a range of vertices marks the faces of one side, and I-, J- and KFaceCenter the listed faces.
/// FaceCenter (EdgeCenter in two dimensions) and CellCenter, the cells at the faces, take the direction from
/// InwardNormalIndex, or from the one index in which the range is a side of the zone. A condition with ambiguous faces
/// is skipped with a warning that names it, and so is one with an invalid range.
/// - Faces given only by their parents (ParentData, or ParentElements and ParentElementsPosition), also those with
/// zeros for nodes, become faces of these cells.
/// - Abutting1to1 connections with Periodic_t are periodic; of two that describe the same one from both sides one is
/// kept.
///
/// The result does not depend on the number of ranks, except where lists are cut. Errors, the same on all ranks:
/// DataError, with file, zone, section and element, if the file is not a CGNS file, is damaged, contradicts itself, or
/// has several bases with cells and none is chosen; ArgumentError for an unknown base; NotBuiltError for a file type
/// that this build cannot read.
///
/// Sources: CGNS Standard Interface Data Structures (SIDS) and SIDS file mapping manual, versions 2.5 to 4.5.
SourceMesh readCgns(CommunicatorView comm, const std::string &path, const CgnsOptions &options = {});

enum class CgnsFileType : std::uint8_t { Hdf5, Adf };

/// Choices for `writeCgns`; the same on all ranks.
struct CgnsWriteOptions {
    CgnsFileType fileType = CgnsFileType::Hdf5;
    std::string base = "Base";
    std::string zone = "Zone";
};

/// Writes a mesh, its boundary conditions and fields to a file of one base and one zone, through the CGNS library.
/// Collective.
///
/// Cells are the section "Cells", followed by the faces in "Faces": of one type, or MIXED with offsets. Polyhedra
/// become NGON_n and NFACE_n, with faces numbered in the order in which cells first list them. Patches become boundary
/// conditions with their list of faces (or of nodes, where the mesh marks nodes). Periodic connections become two
/// GridConnectivity_t of the zone with itself, "<name>" from the first side to the second and "<name>_back", with the
/// pairs of faces (or nodes) that coincide: see `matchPeriodic`. The standard's arrays of Periodic_t have single
/// precision; a UserDefinedData_t "DoublePrecision" below repeats them in double, and `readCgns` uses those. Faces or
/// nodes without a partner become a boundary condition, "<name>_first" or "<name>_second". Names are cut to the 32
/// characters of the standard. Fields of three components become three arrays "<name>X", ...; others of several
/// "<name>1", "<name>2", ...: "FlowSolution" at cells, "FlowSolutionVertex" at points.
///
/// The other ranks send their blocks to rank 0 piece by piece, in order: no rank holds more than its block and a few
/// megabytes. Numbers are 32 bits wide if they fit. The file is called `path` + ".part" until it is complete.
///
/// Errors, the same on all ranks: ArgumentError for fields that do not match the mesh or differ between ranks;
/// DataError (IndexError for a node out of range) for marks that name no patch and no connection; DataError, with the
/// path, if the file cannot be written; NotBuiltError if DNDS was built without the CGNS library.
///
/// Format: CGNS/SIDS-to-file mapping, version 3.4 (https://cgns.github.io).
void writeCgns(CommunicatorView comm, const std::string &path, const SourceMesh &mesh,
               std::span<const FieldSlice> pointFields = {}, std::span<const FieldSlice> cellFields = {},
               const CgnsWriteOptions &options = {});

/// Whether this build can write. Local.
bool canWriteCgns() noexcept;

} // namespace DNDS::Geom
