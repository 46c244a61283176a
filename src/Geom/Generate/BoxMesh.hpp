/// @file BoxMesh.hpp
/// @brief Generates meshes of a box, each rank its own block: for tests, benchmarks and first steps.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace DNDS::Geom {

/// What a box is filled with. The grid of `BoxMeshOptions::cells` is made of bricks (rectangles in two dimensions),
/// which are cut into cells.
enum class BoxCells : std::uint8_t {
    Triangles,      ///< 2-D: two a rectangle
    Quadrilaterals, ///< 2-D: one a rectangle
    MixedSurface,   ///< 2-D: quadrilaterals in the half at x-, triangles in the other
    Tetrahedra,     ///< six a brick, around its diagonal (Kuhn's subdivision)
    Hexahedra,      ///< one a brick
    Prisms,         ///< two a brick, one above the other in z
    MixedVolume,    ///< from x- to x+: hexahedra, prisms, a layer of pyramids and tetrahedra, tetrahedra
    Polyhedra       ///< hexagonal columns, cut in z: polyhedra of eight faces, fewer where a side cuts them
};

/// A side in y that rises from one place on: a compression corner on the floor, a diverging ceiling, a tunnel.
struct BoxRamp {
    real start = 0; ///< x of the corner
    real angle = 0; ///< degrees, rising with x; 0: the side is flat

    real heightAt(real x) const;
};

/// What the mesh should be like. All ranks must ask for the same.
struct BoxMeshOptions {
    BoxCells fill = BoxCells::Tetrahedra;
    std::array<index, 3> cells{8, 8, 8};  ///< bricks in each direction; the third is ignored in two dimensions
    std::array<real, 3> lengths{1, 1, 1}; ///< the box is [0, lengths[0]] x ...
    real jitter = 0;                      ///< how far inner nodes move at random, in bricks: [0, 0.15]
    bool shuffled = false;          ///< number nodes, cells and faces at random, so that blocks are bad partitions
    std::array<bool, 3> periodic{}; ///< directions whose sides are periodic connections "x", "y", "z"
    std::uint64_t seed = 1;
    BoxRamp floor{};   ///< of y-
    BoxRamp ceiling{}; ///< of y+
};

/// The words by which programs let their users choose: "triangles", "mixed-surface", ... Local. Throws ArgumentError
/// for an unknown word, listing all.
BoxCells boxCellsOf(std::string_view word);

/// Makes block `part` of `parts`; all blocks together are the same mesh, to the bit, for every `parts`. Local.
///
/// Sides that are not periodic are the patches "x-", "x+", "y-", ... in this order. Nodes of periodic sides are there
/// twice. All cells have positive volume; together they fill the box exactly, whatever `jitter` is, because nodes on
/// the surface stay where they are. With ramps, nodes move in y alone, by shares of what is left between floor and
/// ceiling above their x: faces stay plane. Cost and memory O(own nodes + own cells + own faces); no other block is
/// made.
///
/// Errors: ArgumentError for options out of range, for MixedVolume with fewer than four bricks in x, and where its
/// sides in x are to be periodic, since they do not fit each other; for ramps whose corner is at no edge of bricks,
/// that meet the other side, with jitter, or on periodic sides that would no longer fit each other.
SourceMesh makeBoxMesh(const BoxMeshOptions &options, int part, int parts);

/// The block of this rank. Local.
inline SourceMesh makeBoxMesh(const BoxMeshOptions &options, CommunicatorView comm) {
    return makeBoxMesh(options, comm.rank(), comm.size());
}

} // namespace DNDS::Geom
