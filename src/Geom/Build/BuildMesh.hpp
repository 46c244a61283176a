/// @file BuildMesh.hpp
/// @brief From the blocks that a reader hands over to a partitioned mesh with ghosts.
#pragma once

#include "DNDS/Geom/Build/GhostCells.hpp"
#include "DNDS/Geom/Source/MeshReport.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"

#include <functional>
#include <string_view>

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

/// Choices for `buildMesh`; the same on all ranks, but for `givenPart` and `cellWeights`.
struct MeshOptions {
    Partitioner partitioner = Partitioner::Graph;
    double imbalance = 0.03; ///< see PartitionOptions
    int seed = 1;
    std::vector<int> givenPart{}; ///< [own cells of the source] ranks
    /// [own cells of the source] what a cell costs, from 1 to 2^31 - 1; of all ranks none: all cost the same. Ranks get
    /// equal shares of the costs instead of equal numbers of cells. Not with Given.
    std::vector<index> cellWeights{};
    GhostNeighbours ghostsBy = GhostNeighbours::Nodes;
    int ghostLayers = 1; ///< 0 to 16
    CellOrder cellOrder = CellOrder::Curve;
    /// Told what begins, on all ranks: steps are "check", "curve", "faces", "graph", "partition", "migrate", "ghosts",
    /// "number". Must not throw: the other ranks would wait for this one.
    std::function<void(std::string_view step)> progress{};
    MeshReport *report = nullptr; ///< filled in if given
};

/// Checks, partitions and distributes a mesh, finds faces and ghosts, and numbers everything for fast exchange.
/// Collective. `source` is used up.
///
/// All ranks work on all steps, in memory proportional to their blocks of the source and their parts of the mesh.
/// Errors, the same on all ranks: those of `checkSource` and `orientCells`, DataError for faces of three cells and for
/// more cells, faces or nodes on a rank than 32 bits can number,
/// ArgumentError for options out of range, MemoryError where a rank has not enough (see `failTogether`). What is
/// doubtful but usable is warned of in the report.
UnstructuredMesh buildMesh(CommunicatorView comm, SourceMesh &&source, const MeshOptions &options = {});

} // namespace DNDS::Geom
