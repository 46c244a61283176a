/// @file BoxMesh.hpp
/// @brief Generates meshes of a box, each rank its own block: for tests, benchmarks and first programs.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace DNDS::Geom {

/// The cells of a box. The grid of `BoxMeshOptions::cells` consists of bricks (rectangles in two dimensions), which are
/// divided into cells.
enum class BoxCells : std::uint8_t {
    Triangles,      ///< 2-D: two per rectangle
    Quadrilaterals, ///< 2-D: one per rectangle
    MixedSurface,   ///< 2-D: quadrilaterals in the half at x-, triangles in the other
    Tetrahedra,     ///< six per brick, around its diagonal (Kuhn's subdivision)
    Hexahedra,      ///< one per brick
    Prisms,         ///< two per brick, on top of each other in z
    MixedVolume,    ///< from x- to x+: hexahedra, prisms, a layer of pyramids and tetrahedra, tetrahedra
    Polyhedra       ///< hexagonal columns, cut in z: polyhedra of eight faces, fewer where a side cuts them
};

/// A side in y that rises from x = `start` on: a compression corner on the floor, a diverging ceiling, a tunnel.
struct BoxRamp {
    real start = 0; ///< x of the corner
    real angle = 0; ///< degrees, rising with x; 0: the side is flat

    /// The rise of the side at `x`, in units of length: 0 up to `start`, negative for negative angles.
    real heightAt(real x) const;
};

/// A step of the floor in two dimensions: what lies beyond x = `start` and below y = `height` is left out. Its front
/// and its top belong to y-.
struct BoxStep {
    real start = 0;
    real height = 0; ///< 0: no step
};

/// The mesh to generate. The same on all ranks.
struct BoxMeshOptions {
    BoxCells fill = BoxCells::Tetrahedra;
    std::array<index, 3> cells{8, 8, 8};  ///< bricks in each direction; the third is ignored in two dimensions
    std::array<real, 3> lengths{1, 1, 1}; ///< the box is [0, lengths[0]] x ...
    real jitter = 0;                      ///< random displacement of inner nodes, in bricks: [0, 0.15]
    bool shuffled = false;                ///< number nodes, cells and faces at random: blocks are bad partitions
    std::array<bool, 3> periodic{};       ///< directions whose sides are periodic connections "x", "y", "z"
    std::uint64_t seed = 1;
    BoxRamp floor{};   ///< ramp of y-
    BoxRamp ceiling{}; ///< ramp of y+
    BoxStep step{};    ///< step of y-
    /// TRI_6, QUAD_9, TETRA_10, PENTA_18 and HEXA_27 instead of linear elements, with straight edges: to curve them,
    /// move `SourceMesh::coordinates` by a smooth map.
    bool secondOrder = false;
};

/// The kind of cells for a user's word: "triangles", "mixed-surface", ... Local. Throws ArgumentError for an unknown
/// word, listing all.
BoxCells boxCellsOf(std::string_view word);

/// Makes block `part` of `parts`; all blocks together are the same mesh, to the bit, for every `parts`. Local.
///
/// Sides that are not periodic are the patches "x-", "x+", "y-", ... in this order. Nodes of periodic sides exist
/// twice. All cells have positive volume and together fill the box exactly for any `jitter`, because surface nodes do
/// not move. Ramps move nodes only in y, in proportion to the gap between floor and ceiling at their x: faces stay
/// plane. Cost and memory O(own nodes + own cells + own faces); no other block is made.
///
/// Throws ArgumentError for options out of range; for MixedVolume with fewer than four bricks in x or with periodic
/// sides in x, which do not match; and for ramps whose corner is not at an edge of bricks, that meet the other side,
/// with jitter, or on periodic sides that would no longer match. A step needs triangles or quadrilaterals, both corners
/// at edges of bricks inside the box, no jitter, and sides that are not periodic. Second-order cells have neither steps
/// nor jitter, and there are no MixedVolume and Polyhedra of second order.
SourceMesh makeBoxMesh(const BoxMeshOptions &options, int part, int parts);

/// The block of this rank. Local.
inline SourceMesh makeBoxMesh(const BoxMeshOptions &options, CommunicatorView comm) {
    return makeBoxMesh(options, comm.rank(), comm.size());
}

} // namespace DNDS::Geom
