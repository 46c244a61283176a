/// @file UnstructuredMesh.hpp
/// @brief One rank's part of a mesh: cells, nodes and faces with ghosts, and all that connects them. Plain data.
#pragma once

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Exchange/ExchangePattern.hpp"
#include "DNDS/Geom/Mesh/Adjacency.hpp"
#include "DNDS/Geom/Source/ElementType.hpp"
#include "DNDS/Geom/Source/MeshImage.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace DNDS::Geom {

/// The cells, the nodes or the faces of a mesh on one rank: owned ones first, then ghosts.
struct MeshEntities {
    index owned = 0;
    index ghosts = 0;
    /// Who owns them and who has copies; `pattern->mapping()` has the global numbers. Periodic images are ghosts of
    /// their own, so an entity may be copied more than once.
    std::shared_ptr<const ExchangePattern> pattern;
    std::vector<index> fileNumbers; ///< [all] position in the file, from 0; faces: -1
    std::vector<index> fileIds;     ///< [all] the file's own number, from 1 in each zone; nodes: number + 1; faces: 0
                                    ///< where the file does not list them
    std::vector<int> images;        ///< [all] which of UnstructuredMesh::images it stands in; 0 for owned ones

    index size() const noexcept { return owned + ghosts; }
    const GhostMapping &mapping() const { return *pattern->mapping(); }
};

/// A part of the boundary.
struct MeshPatch {
    std::string name;
    std::string kind;
    std::string family;
    std::vector<LocalIndex> faces; ///< owned and ghost, ascending; a face may be in several patches
};

/// What `buildMesh` makes. Sizes [cells], [nodes], [faces] count owned ones and ghosts.
///
/// Faces are those of all local cells. The first cell of a face is the one that comes first in the file; its nodes go
/// counter-clockwise seen from the second, so that its normal leaves the first. (In two dimensions a face is an edge
/// with the first cell on its left.) That is the same on all ranks and for every number of ranks. Each face of a
/// periodic boundary has its own cell first and a ghost, an image of the cell on the other side, second.
struct UnstructuredMesh {
    explicit UnstructuredMesh(CommunicatorView comm);

    CommunicatorView comm;
    std::string origin;
    int dimension = 0;   ///< of cells: 2 or 3
    bool planar = false; ///< two-dimensional cells in a plane z = const

    MeshEntities cells;
    MeshEntities nodes;
    MeshEntities faces;
    std::vector<ElementType> cellTypes; ///< [cells]
    std::vector<int> cellLayers;        ///< [cells] 0: owned, 1: first layer of ghosts, ...
    ParArray<real, 3> coordinates;      ///< [nodes]; images where they stand

    /// [cells] nodes as in the standard; of a Polyhedron each once, its faces are in `cellFaces`.
    LocalAdjacency cellNodes;
    /// [cells] in the order of the standard; collapsed faces are left out.
    LocalAdjacency cellFaces;
    /// [cells] the cell behind each of `cellFaces`; `noEntity` at the boundary, `notLocal` beyond the last layer.
    LocalAdjacency cellCells;
    /// [nodes] all local cells that have it, in the order of the file; complete around own cells if ghosts are by
    /// nodes, but for periodic images: these have nodes of their own, in the same places; `nodeCellsAcrossPeriodic`
    /// counts those in. Where rows are complete, sums over them are the same to the bit for every number of ranks.
    LocalAdjacency nodeCells;
    LocalAdjacency faceNodes; ///< [faces] corners
    LocalPairs faceCells;     ///< [faces] first and second cell, or as in `cellCells`

    std::vector<LocalIndex> boundaryFaces; ///< ascending; those of periodic boundaries are none
    std::vector<LocalIndex> boundaryCells; ///< [boundaryFaces] the cell of each
    /// Ascending: faces of own cells that another rank owns. With the owned ones they are all faces of own cells.
    std::vector<LocalIndex> sharedFaces;
    std::vector<int> facePatches;   ///< [faces] the first patch that a face is in, or -1: inside, or periodic
    std::vector<MeshPatch> patches; ///< as in the source, then "unassigned": boundary faces in no other
    /// Own faces of periodic boundaries whose other side is owned here, too, or not: pairs of a face and the image of
    /// `images` in which the second cell stands.
    std::vector<std::pair<LocalIndex, int>> periodicFaces;
    /// What the source says of each of `periodicFaces`, in the same order: pairs of a face and a mark as in
    /// `SourceMesh::faceMarks`. A face has several where several connections of one motion list it.
    std::vector<std::pair<LocalIndex, int>> periodicMarks;
    std::vector<PeriodicConnection> periodic; ///< as in the source
    std::vector<MeshImage> images;            ///< 0 is the mesh itself
};

/// Connects a field whose father has a row for each owned entity: afterwards it has a row for each ghost, too, and can
/// be pulled. Collective.
///
///     ArrayPair<ParArray<real, 5>> u;
///     u.initPair("u", mesh.comm);
///     u.father->resize(mesh.cells.owned);
///     attachField(u, mesh.cells);
///     u.trans.pullOnce();
template <class TArray>
void attachField(ArrayPair<TArray> &field, const MeshEntities &entities) {
    field.transAttach();
    field.trans.usePattern(entities.pattern);
    field.trans.createMPITypes();
}

} // namespace DNDS::Geom
