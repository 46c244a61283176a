/// @file CgnsWriter.hpp
/// @brief Writes meshes and fields as CGNS files, in the order of their lists.
#pragma once

#include "DNDS/Geom/Source/MeshSlice.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace DNDS::Geom {

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
