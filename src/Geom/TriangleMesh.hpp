/// @file TriangleMesh.hpp
/// @brief Generates an unstructured mesh of the unit square, each rank its own block: for demonstrations, tests,
/// benchmarks.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <cstdint>
#include <vector>

namespace DNDS::Geom {

/// What the mesh should be like. All ranks must ask for the same.
struct TriangleMeshOptions {
    index cells = 20000; ///< wanted; the mesh has 2 n^2 cells with the nearest n >= 1
    real jitter = 0.25;  ///< how far nodes move at random, in grid spacings: [0, 0.4]
    real refinement =
        0.6; ///< [0, 0.9]: 0 spreads cells evenly; else they crowd around a circle, thinner by this fraction
    bool shuffled = true; ///< number nodes and cells at random, so that blocks of numbers are bad partitions
    std::uint64_t seed = 1;
};

/// One rank's block of the mesh. Rank r of p owns the nodes and cells numbered from N r / p to N (r + 1) / p.
struct TriangleMesh {
    index globalNodes = 0;
    index globalCells = 0;
    index firstNode = 0; ///< global number of the first node of this block
    index firstCell = 0;
    std::vector<real> coordinates; ///< [own nodes x 2]
    std::vector<index> cellNodes;  ///< [own cells x 3] global node numbers, counter-clockwise

    index nodes() const noexcept { return static_cast<index>(coordinates.size() / 2); }
    index cells() const noexcept { return static_cast<index>(cellNodes.size() / 3); }
};

/// Makes block `part` of `parts`; all blocks together are the same mesh, to the bit, for every `parts`. Local.
///
/// The nodes of a regular grid are moved at random and crowded around a circle; each quadrilateral is cut along the
/// diagonal that gives the better triangles, so that nodes have four to eight cells. All cells have positive area, the
/// total is 1. Cost O(own nodes + own cells); no other block is made. Throws ArgumentError where an option is outside
/// its range.
TriangleMesh makeTriangleMesh(const TriangleMeshOptions &options, int part, int parts);

/// The block of this rank. Local.
inline TriangleMesh makeTriangleMesh(const TriangleMeshOptions &options, CommunicatorView comm) {
    return makeTriangleMesh(options, comm.rank(), comm.size());
}

} // namespace DNDS::Geom
