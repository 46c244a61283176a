/// @file PartitionReport.hpp
/// @brief Divides the cells of a mesh into any number of parts, and says what such a division costs.
#pragma once

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Partition/GraphPartition.hpp"

#include <span>
#include <vector>

namespace DNDS::Geom {

/// The part, in [0, parts), of each owned cell of a mesh: [owned]. Collective.
///
/// `parts` need not be the number of ranks. Curve gives the same parts for every number of ranks; Graph, which is
/// PT-Scotch, does not. `weights` are what owned cells cost, at least 1, or empty on all ranks: all the same. The mesh
/// needs a layer of ghosts, unless it is on one rank. Errors, the same on all ranks: ArgumentError for Given, for fewer
/// than one part, for weights that do not fit, and for a mesh without ghosts; those of `partitionGraph`.
std::vector<int> partitionCells(const UnstructuredMesh &mesh, int parts, Partitioner partitioner,
                                const PartitionOptions &options = {}, std::span<const index> weights = {});

/// What each part of a division would be to the rank that gets it.
struct PartitionReport {
    struct Part {
        index cells = 0;
        index ghosts = 0; ///< copies of others' cells in one layer; periodic images count
        index faces = 0;  ///< that it shares with other parts
        int peers = 0;    ///< parts that it has ghosts of
        index weight = 0; ///< of its cells
    };
    struct Link {
        int part;
        int other;    ///< the owner of the ghosts
        index ghosts; ///< that `part` has of cells of `other`
    };
    std::vector<Part> parts;
    std::vector<Link> links; ///< on rank 0 only, ascending
    index cut = 0;           ///< faces between different parts
    index innerFaces = 0;    ///< all faces with cells on both sides, periodic pairs counted once
    real imbalance = 0.0;    ///< weight of the heaviest part over the average, minus 1
};

/// Judges a division of cells: `part` is [owned cells], `weights` as above; without them each cell weighs 1.
/// Collective. O(parts) memory, on rank 0 O(links) too.
///
/// The mesh must have a layer of ghosts of the kind that is asked about (`MeshOptions::ghostsBy`), even on one rank.
/// Errors, the same on all ranks: ArgumentError for lists of another length or a part outside [0, parts).
PartitionReport reportPartition(const UnstructuredMesh &mesh, std::span<const int> part, int parts,
                                GhostNeighbours ghostsBy = GhostNeighbours::Nodes, std::span<const index> weights = {});

} // namespace DNDS::Geom
