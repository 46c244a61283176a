/// @file UnstructuredMesh.hpp
/// @brief One rank's part of a mesh: cells, nodes and faces with ghosts, and their connectivity. Plain data.
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

/// The cells, nodes or faces of a mesh on one rank: owned ones first, then ghosts.
struct MeshEntities {
    index owned = 0;
    index ghosts = 0;
    /// Owners and copies; `pattern->mapping()` has the global numbers. Each periodic image is a ghost of its own, so an
    /// entity may be copied more than once.
    std::shared_ptr<const ExchangePattern> pattern;
    std::vector<index> fileNumbers; ///< [all] position in the file, from 0; faces: -1
    std::vector<index> fileIds;     ///< [all] the file's own number, from 1 in each zone; nodes: number + 1; faces: 0
                                    ///< if the file does not list them
    std::vector<int> images;        ///< [all] number in UnstructuredMesh::images; 0 for owned ones

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

/// The result of `buildMesh`. Sizes [cells], [nodes], [faces] count owned ones and ghosts.
///
/// Faces are those of all local cells. The first cell of a face is the one that comes first in the file; its nodes are
/// counter-clockwise seen from the second, so that its normal leaves the first. (In two dimensions a face is an edge
/// with the first cell on its left.) That is the same on all ranks and for every number of ranks. For each face of a
/// periodic boundary the own cell is first and a ghost, an image of the cell on the other side, is second.
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
    ParArray<real, 3> coordinates;      ///< [nodes]; images at their own positions

    /// [cells] nodes as in the standard; of a Polyhedron each once, its faces are in `cellFaces`.
    LocalAdjacency cellNodes;
    /// [cells] in the order of the standard; collapsed faces are left out.
    LocalAdjacency cellFaces;
    /// [cells] the cell across each of `cellFaces`; `noEntity` at the boundary, `notLocal` beyond the last layer.
    LocalAdjacency cellCells;
    /// [nodes] all local cells that have it, in file order. Complete around own cells if ghosts are by nodes, except
    /// across periodic boundaries, whose images have nodes of their own: see `nodeCellsAcrossPeriodic`. Where rows are
    /// complete, sums over them have the same bits for every number of ranks.
    LocalAdjacency nodeCells;
    LocalAdjacency faceNodes; ///< [faces] corners
    LocalPairs faceCells;     ///< [faces] first and second cell, or as in `cellCells`

    std::vector<LocalIndex> boundaryFaces; ///< ascending; without those of periodic boundaries
    std::vector<LocalIndex> boundaryCells; ///< [boundaryFaces] the cell of each
    /// Ascending: faces of own cells that another rank owns. With the owned faces, these are all faces of own cells.
    std::vector<LocalIndex> sharedFaces;
    std::vector<int> facePatches;   ///< [faces] the face's first patch; -1 inside or periodic
    std::vector<MeshPatch> patches; ///< as in the source, then "unassigned": boundary faces in no other
    /// Own faces of periodic boundaries, including those whose other side is also owned here: pairs of a face and the
    /// image in `images` of its second cell.
    std::vector<std::pair<LocalIndex, int>> periodicFaces;
    /// The marks of `periodicFaces` in the source, in the same order: pairs of a face and a mark as in
    /// `SourceMesh::faceMarks`. A face has several if several connections of one motion list it.
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
