/// @file MeshOptions.hpp
/// @brief What can be chosen where a mesh is partitioned and distributed.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Geom/Source/MeshReport.hpp"

#include <functional>
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
    Faces, ///< a layer is the cells that share a face with one of the layer before
    Nodes  ///< a layer is the cells that share a node
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

} // namespace DNDS::Geom
