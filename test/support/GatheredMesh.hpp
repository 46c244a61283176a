/// @file GatheredMesh.hpp
/// @brief For tests only: whole meshes on every rank, and plain serial measures of them.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace DNDS::Geom::test {

/// All ranks' lists, one after the other. Collective.
template <class T>
std::vector<T> gatherAll(CommunicatorView comm, const std::vector<T> &mine) {
    return comm.allGatherV(std::span<const T>(mine));
}

/// The blocks of all ranks, joined, on each of them; checks that they follow each other without gaps. Collective.
SourceMesh gatherMesh(CommunicatorView comm, const SourceMesh &mesh);

/// Expects two whole meshes, or two blocks of elements, to be the same.
void expectSame(const SourceMesh &a, const SourceMesh &b);
void expectSame(const ElementBlock &a, const ElementBlock &b);

using Face = std::vector<index>;

/// The faces of an element, corners only, seen from outside counter-clockwise.
std::vector<Face> facesOf(const ElementBlock &block, index element);

/// The corners of a boundary element.
Face cornersOf(const ElementBlock &block, index element);

/// A hash of the set of corners, for matching faces.
Face sorted(Face face);

/// Volume or area from corner nodes, of one cell or of all, signed as the file orders them; faces are fans around the
/// mean of their corners.
real measure(const SourceMesh &mesh, index cell);
real measure(const SourceMesh &mesh);

/// {x low, x high, y low, ...}
std::array<real, 6> boundingBox(const SourceMesh &mesh);

/// The number of elements of each type, by its name in the standard.
std::map<ElementType, index> countTypes(const ElementBlock &block);
std::map<std::string, index> countNames(const ElementBlock &block);

/// Marked faces and marked nodes of each mark.
std::map<int, index> facesOfMarks(const SourceMesh &mesh);
std::map<int, index> nodesOfMarks(const SourceMesh &mesh);

} // namespace DNDS::Geom::test
