/// @file CgnsReader.hpp
/// @brief Reads meshes from CGNS files of both file types and all versions, each rank its own part.
#pragma once

#include "DNDS/Geom/Source/MeshFields.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"

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

} // namespace DNDS::Geom
