/// @file PartitionReport.hpp
/// @brief Divides the cells of a mesh into any number of parts and measures such a division.
#pragma once

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Partition/GraphPartition.hpp"

#include <span>
#include <vector>

namespace DNDS::Geom {

/// The part, in [0, parts), of each owned cell of a mesh: [owned]. Collective.
///
/// `parts` need not be the number of ranks. Curve gives the same parts for every number of ranks; Graph (PT-Scotch)
/// does not. `weights` are the costs of owned cells, at least 1, or empty on all ranks: equal costs. The mesh needs a
/// layer of ghosts unless it is on one rank. Errors, the same on all ranks: ArgumentError for Given, for fewer than one
/// part, for options that differ between ranks, for weights that do not match, and for a mesh without ghosts;
/// StateError for a mesh that was moved from; those of `partitionGraph`.
std::vector<int> partitionCells(const UnstructuredMesh &mesh, int parts, Partitioner partitioner,
                                const PartitionOptions &options = {}, std::span<const index> weights = {});

/// The load and communication of one part.
struct PartitionReport {
    struct Part {
        index cells = 0;
        index ghosts = 0; ///< copies of others' cells in one layer; periodic images count
        index faces = 0;  ///< shared with other parts
        int peers = 0;    ///< parts with ghosts on this one
        index weight = 0; ///< sum over its cells
    };
    struct Link {
        int part;
        int other;    ///< the owner of the ghosts
        index ghosts; ///< copies on `part` of cells of `other`
    };
    std::vector<Part> parts;
    std::vector<Link> links; ///< on rank 0 only, ascending
    index cut = 0;           ///< faces between different parts
    index innerFaces = 0;    ///< all faces with cells on both sides, periodic pairs counted once
    real imbalance = 0.0;    ///< weight of the heaviest part over the average, minus 1
};

/// Measures a division of cells: `part` is [owned cells], `weights` as above; if empty, each cell has weight 1.
/// Collective. O(parts) memory, on rank 0 O(links) too.
///
/// The mesh must have a layer of ghosts of the kind in question (`MeshOptions::ghostsBy`), even on one rank. Errors,
/// the same on all ranks: ArgumentError for lists of another length or a part outside [0, parts).
PartitionReport reportPartition(const UnstructuredMesh &mesh, std::span<const int> part, int parts,
                                GhostNeighbours ghostsBy = GhostNeighbours::Nodes, std::span<const index> weights = {});

} // namespace DNDS::Geom
