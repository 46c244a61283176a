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
    std::string base; ///< the base to read; "" for the first that has cells of two or three dimensions

    /// Whether nodes of different zones that lie in the same place become one node, besides those that the file's
    /// connections join.
    bool joinCoincidentNodes = false;
    /// How far such nodes may lie apart, in parts of the longest side of the mesh's bounding box.
    real joinTolerance = 1e-9;

    /// Filled in with the file's solutions (FlowSolution_t at vertices and cell centres) if given. What cannot be read
    /// as a field of the whole mesh is left out with a warning: other locations, parts of zones, arrays that some zones
    /// have and others have not, rind planes of structured zones.
    MeshFields *fields = nullptr;
};

/// Reads one base of a CGNS file. Collective.
///
/// Rank 0 reads the tree of small nodes and broadcasts it; every rank then reads its own slices of coordinates,
/// connectivity and point lists, so that the memory of a rank is in proportion to its part of the mesh.
///
/// What becomes of the file's content:
/// - Zones follow each other. Nodes that Abutting1to1 or 1-to-1 connections (by vertices or by faces) join become one.
///   Structured zones become HEXA_8 or QUAD_4 cells.
/// - Cells are the elements of the base's cell dimension; NGON_n with NFACE_n, or with ParentElements alone, give
///   polyhedra, or polygons in two dimensions. Elements more than one dimension below are left out with a warning.
/// - Each boundary condition is a patch under its own name; those of several zones with one name are one patch. Where
///   it says FamilySpecified, its kind is that of its family. Point sets of elements mark faces, those of vertices mark
///   nodes. Faces in no boundary condition are in no patch; but where the file has no boundary condition at all, each
///   section of faces is a patch, without the faces of periodic connections.
/// - In structured zones a range of vertices marks the faces of one side, and I-, J- and KFaceCenter the faces that it
///   counts. FaceCenter (EdgeCenter in two dimensions) and CellCenter, the cells behind the faces, take the direction
///   from InwardNormalIndex, or from the one index in which the range is a side of the zone. A condition whose faces
///   cannot be told is left out with a warning that names it.
/// - Faces that are given by their parents alone (ParentData, or ParentElements and ParentElementsPosition) become the
///   faces of these cells.
/// - Abutting1to1 connections with Periodic_t are periodic; of two that say the same from both sides one is kept.
///
/// The result does not depend on the number of ranks, but for where lists are cut. Errors, the same on all ranks:
/// DataError, naming file, zone, section and element, where the file is no CGNS file, is damaged, or contradicts
/// itself; ArgumentError for a base that is not there; NotBuiltError for a file type that this build cannot read.
///
/// Sources: CGNS Standard Interface Data Structures (SIDS) and SIDS file mapping manual, versions 2.5 to 4.5.
SourceMesh readCgns(CommunicatorView comm, const std::string &path, const CgnsOptions &options = {});

} // namespace DNDS::Geom
