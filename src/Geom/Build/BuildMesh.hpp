/// @file BuildMesh.hpp
/// @brief Builds a partitioned mesh with ghosts from the blocks of a reader.
///
/// - `MeshOptions`: options for partitioning and distributing a mesh
/// - `PartitionReport`: divides the cells of a mesh into any number of parts and measures such a division
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Geom/Partition/GraphPartition.hpp"
#include "DNDS/Geom/Source/SourceChecks.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"

#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace DNDS::Geom {

enum class Partitioner : unsigned char {
    Graph, ///< PT-Scotch on the graph of cells that share faces: fewest faces between ranks
    Curve, ///< pieces of a Hilbert curve: fast, more faces between ranks
    Given  ///< `MeshOptions::givenPart`
};

enum class CellOrder : unsigned char {
    Curve,              ///< along the Hilbert curve
    ReverseCuthillMcKee ///< narrow bands in the matrices of implicit solvers
};

enum class GhostNeighbours : unsigned char {
    Faces, ///< a layer: cells that share a face with one of the previous layer
    Nodes  ///< a layer: cells that share a node with one of the previous layer
};

/// Options of `buildMesh`; the same on all ranks, except `givenPart` and `cellWeights`.
struct MeshOptions {
    Partitioner partitioner = Partitioner::Graph;
    double imbalance = 0.03; ///< see PartitionOptions
    int seed = 1;
    PartitionEffort effort = PartitionEffort::Quick;
    std::vector<int> givenPart{}; ///< [own cells of the source] ranks
    /// [own cells of the source] costs of cells, from 1 to 2^31 - 1; empty on all ranks: equal costs. Ranks get equal
    /// shares of the cost instead of equal numbers of cells. Not with Given.
    std::vector<index> cellWeights{};
    GhostNeighbours ghostsBy = GhostNeighbours::Nodes;
    int ghostLayers = 1; ///< 0 to 16
    CellOrder cellOrder = CellOrder::Curve;
    /// Keeps polyhedra that are open, as exports of cut cells have them, instead of refusing the mesh. Faces that such
    /// a cell lacks are unassigned boundary faces of its neighbours; its own volume and closure are as good as its
    /// faces.
    bool openPolyhedra = false;
    /// Called on all ranks when a step begins: "check", "curve", "faces", "graph", "partition", "migrate", "ghosts",
    /// "number". Must not throw: the other ranks would wait for this one.
    std::function<void(std::string_view step)> progress{};
    MeshReport *report = nullptr; ///< filled in if given
};

/// Checks, partitions and distributes a mesh, finds faces and ghosts, and numbers everything for fast exchange.
/// Collective. Consumes `source`.
///
/// All ranks share all steps, in memory proportional to their blocks of the source and their parts of the mesh. Errors,
/// the same on all ranks: those of `checkSource` and `orientCells`; DataError for faces of three cells and for more
/// cells, faces or nodes on a rank than 32 bits can number; ArgumentError for options out of range; MemoryError if a
/// rank runs out of memory (see `failTogether`). The report warns of doubtful but usable properties.
UnstructuredMesh buildMesh(CommunicatorView comm, SourceMesh &&source, const MeshOptions &options = {});

/// The part, in [0, parts), of each owned cell of a mesh: [owned]. Collective.
///
/// `parts` need not be the number of ranks. Curve gives the same parts for every number of ranks; Graph (PT-Scotch)
/// does not. `weights` are the costs of owned cells, at least 1, or empty on all ranks: equal costs. The mesh needs a
/// layer of ghosts unless it is on one rank and not periodic. Errors, the same on all ranks: ArgumentError for Given,
/// for fewer than one part, for options that differ between ranks, for weights that do not match, and for a mesh
/// without ghosts; StateError for a mesh that was moved from; those of `partitionGraph`.
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
/// The mesh needs a layer of ghosts of the kind in question (`MeshOptions::ghostsBy`) unless it is on one rank and not
/// periodic. Errors, the same on all ranks: ArgumentError for lists of another length, a part outside [0, parts), and a
/// mesh without ghosts.
PartitionReport reportPartition(const UnstructuredMesh &mesh, std::span<const int> part, int parts,
                                GhostNeighbours ghostsBy = GhostNeighbours::Nodes, std::span<const index> weights = {});

} // namespace DNDS::Geom
