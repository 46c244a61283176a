/// @file WholeMesh.hpp
/// @brief All blocks of a SourceMesh on every rank, and what can be counted and measured on them.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"
#include "Geom/SourceMesh.hpp"

#include <array>
#include <map>
#include <string>
#include <vector>

namespace DNDS::Geom::test {

/// All ranks' values, one after the other, on each of them. Collective.
std::vector<real> gather(CommunicatorView comm, const std::vector<real> &own);

/// The blocks of all ranks, joined, on each of them; checks that they follow each other without gaps. Collective.
SourceMesh gatherMesh(CommunicatorView comm, const SourceMesh &mesh);

/// Expects two whole meshes to be the same in all that they hold.
void expectSame(const SourceMesh &a, const SourceMesh &b);

/// How many elements there are of each type, by its name in the standard.
std::map<std::string, index> countTypes(const ElementBlock &block);

/// Volume or area from corner nodes, signed as the file orders them; faces are fans around the mean of their corners.
real measure(const SourceMesh &mesh);

/// {x low, x high, y low, ...}
std::array<real, 6> boundingBox(const SourceMesh &mesh);

/// Marked faces and marked nodes of each mark.
std::map<int, index> facesOfMarks(const SourceMesh &mesh);
std::map<int, index> nodesOfMarks(const SourceMesh &mesh);

} // namespace DNDS::Geom::test
