/// @file RepeatedCells.hpp
/// @brief Drops cells that a Gmsh file of version 2 lists several times. Part of GmshReader.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <span>

namespace DNDS::Geom::Detail {

/// Whether cells of one entity are in several groups, so that the file may list each of them once per group: [own
/// cells]. Collective; one gathering of the distinct pairs.
bool mayRepeat(CommunicatorView comm, std::span<const index> entities, std::span<const index> groups);

/// Drops all but the first of the cells that have the same nodes, in any order; numbers the rest. Returns how many were
/// dropped on all ranks. Collective; O(own cells) memory on average, two sparse exchanges.
index dropRepeated(CommunicatorView comm, ElementBlock &cells);

} // namespace DNDS::Geom::Detail
