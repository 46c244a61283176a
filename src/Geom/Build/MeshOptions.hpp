/// @file MeshOptions.hpp
/// @brief Options for partitioning and distributing a mesh.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Geom/Partition/GraphPartition.hpp"
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

} // namespace DNDS::Geom
