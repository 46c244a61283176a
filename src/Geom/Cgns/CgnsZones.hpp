/// @file CgnsZones.hpp
/// @brief The structured zones of a CGNS file as index spaces: touching faces and positions of cells.
#pragma once

#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <string>
#include <vector>

namespace DNDS::Geom {

/// The zones of one base as index spaces of a `BlockGrid`:
///
///     const CgnsZones zones = readCgnsZones(comm, "wing.cgns");
///     const auto grid = BlockGrid::blocksOf(comm, zones.spaces, std::vector<index>{32, 32, 32}, zones.connections);
/// The same on all ranks.
struct CgnsZones {
    /// Zones in the order of the file, their cells numbered from 0. Dimensions are in the order of memory: the last one
    /// is the file's first index, so that `view.fortran()(i, j, k)` has the file's indices, less one.
    std::vector<IndexSpace> spaces;
    /// The 1-to-1 connections, including periodic ones: values are copied as they are, neither moved nor
    /// turned.
    std::vector<Connection> connections;
    int physicalDimension = 0; ///< coordinates of a point
    std::vector<std::string> warnings;
};

/// Reads the zones and connections of a base ("": the only one with cells of two or three dimensions). Collective. Rank
/// 0 reads the tree of small nodes and broadcasts it. Throws on all ranks as `readCgns`, and DataError for zones that
/// are not structured: read these by `readCgns`.
CgnsZones readCgnsZones(CommunicatorView comm, const std::string &path, const std::string &base = "");

/// Reads the centres of all cells, the mean of their vertices: `centres` is a field on blocks of the zones with as many
/// components as a point has coordinates. Ghosts are not filled: exchange them. Collective; each rank reads the planes
/// of vertices that its blocks need. Throws on all ranks as above, and ArgumentError if the field does not fit.
void readCgnsCentres(CommunicatorView comm, const std::string &path, BlockField<real> &centres,
                     const std::string &base = "");

} // namespace DNDS::Geom
