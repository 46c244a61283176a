/// @file RefineUniformly.hpp
/// @brief Cuts each cell of a mesh into smaller ones, before it is partitioned.
#pragma once

#include "DNDS/Geom/Source/ElementType.hpp"
#include "DNDS/Geom/Source/MeshSlice.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <span>
#include <vector>

namespace DNDS::Geom {

/// Parents of the cells of a refined mesh.
struct RefinedCells {
    std::vector<index> parents; ///< [own cells] the cell of the coarse mesh, in file order: one of this rank's block
    std::vector<Point> at;      ///< [own cells] the cell's centroid, in reference coordinates of the parent
};

/// Choices for `refineUniformly`; the same on all ranks.
struct RefineOptions {
    int levels = 1; ///< number of times that each cell is cut
    /// Fields of the coarse mesh, or null: become those of the refined one. At cells the parent's value, at nodes that
    /// of the shape functions of the parent.
    MeshFields *fields = nullptr;
    RefinedCells *cells = nullptr; ///< if not null, filled in
};

/// The mesh with each cell cut into smaller ones of its kind: segments into 2, triangles and quadrilaterals into 4,
/// tetrahedra, prisms and hexahedra into 8, pyramids into 6 pyramids and 4 tetrahedra. Collective.
///
/// Works on the source, where a mesh has no ghosts, faces or partition yet: blocks stay where they are, so that the
/// refined mesh is the same to the bit on any number of ranks, and `buildMesh` partitions what it will compute on.
/// Children follow each other in the order of their parents (8 c + i for the hexahedra of a mesh of hexahedra). Nodes
/// keep their numbers; new ones follow in the order of their corners, those inside cells last.
///
/// Second-order cells stay of second order, and new nodes lie on the map of the cell: polynomial maps are those of the
/// children exactly, also of serendipity elements; of pyramids, whose functions are rational, the faces are kept.
/// Neighbours that list different nodes on a common edge or face, within 0.001 of its size, share the one with the
/// least number; on a face between a linear and a second-order cell, the map of the latter counts.
///
/// Patches, marks of faces and of nodes, and periodic connections are kept. Tetrahedra: see Bey, Tetrahedral grid
/// refinement, Computing 55, 1995: no more than three shapes of each, whatever the number of levels.
///
/// Cost of a level: memory for own coarse and refined cells, and seven sparse exchanges. Errors, the same on all ranks:
/// those of `checkSource`; ArgumentError for a negative number of levels and for fields that do not fit the mesh;
/// DataError for polygons of more than four corners and for polyhedra, for cells that list a corner twice, and for
/// neighbours that bend a common edge or face differently, with the first of them. After an error, fields and `cells`
/// are unchanged.
///
///     SourceMesh fine = refineUniformly(comm, readMesh(comm, path), {.levels = 2});
///     UnstructuredMesh mesh = buildMesh(comm, std::move(fine));
SourceMesh refineUniformly(CommunicatorView comm, const SourceMesh &coarse, const RefineOptions &options = {});

/// A field at the cells of a refined mesh, linear in each parent: value + gradient . (centroid - centroid of the
/// parent), with centroids as the map of the parent has them. Integrals stay the same where this map is affine: in
/// simplices, and in other cells with parallel sides. `values` and `gradients` are those of own coarse cells, [own
/// cells]; `cells` is what `refineUniformly` filled in. Collective; one query of coordinates. Throws ArgumentError on
/// all ranks for lists of other lengths, and for parents that are not cells of `coarse` on this rank.
std::vector<real> prolongLinear(CommunicatorView comm, const SourceMesh &coarse, const RefinedCells &cells,
                                std::span<const real> values, std::span<const Point> gradients);

} // namespace DNDS::Geom
