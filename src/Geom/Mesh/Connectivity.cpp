#include "DNDS/Geom/Mesh/MeshEdges.hpp"
#include "DNDS/Geom/Mesh/PeriodicNodes.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Geom/Source/NumberTable.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace DNDS::Geom {

/// Made on demand and kept by the mesh; copies of a mesh share it.
struct MeshConnectivity {
    std::optional<MeshEdges> edges;
    /// Adjacencies besides the mesh's own lists.
    std::map<std::pair<MeshEntityKind, MeshEntityKind>, LocalAdjacency> made;
};

namespace {

using Kind = MeshEntityKind;

const char *wordOf(Kind kind) {
    switch (kind) {
    case Kind::Cells:
        return "cells";
    case Kind::Nodes:
        return "nodes";
    case Kind::Faces:
        return "faces";
    case Kind::Edges:
        break;
    }
    return "edges";
}

/// 0, 1, ..., count - 1.
std::vector<LocalIndex> upTo(index count) {
    std::vector<LocalIndex> numbers(toSize(count));
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
}

/// The lists of a mesh itself, of smaller entities and `nodeCells`; null for others. `edges` may be null in two
/// dimensions, where kinds are never Edges.
const LocalAdjacency *listOf(const UnstructuredMesh &mesh, const MeshEdges *edges, Kind from, Kind to) {
    if (from == Kind::Cells)
        return to == Kind::Nodes ? &mesh.cellNodes : to == Kind::Faces ? &mesh.cellFaces : &edges->cellEdges;
    if (from == Kind::Faces && to != Kind::Cells)
        return to == Kind::Nodes ? &mesh.faceNodes : &edges->faceEdges;
    if (from == Kind::Edges && to == Kind::Nodes)
        return &edges->edgeNodes;
    return from == Kind::Nodes && to == Kind::Cells ? &mesh.nodeCells : nullptr;
}

/// [nodes, faces or edges] the same number for all that coincide because of periodic images.
/// Edges coincide if their ends do: pairs of places are numbered by a hash table.
/// O(edges) time on average. Places of edges are pairs of 31-bit node places packed in one word, so they are exact,
/// not hashes.
std::vector<LocalIndex> placesOf(const UnstructuredMesh &mesh, Kind kind) {
    if (mesh.images.size() == 1 || kind == Kind::Faces) // a periodic face is the same face on both sides
        return upTo(mesh.entities(kind).size());
    std::vector<LocalIndex> places = nodePlaces(mesh);
    if (kind == Kind::Nodes)
        return places;
    const LocalAdjacency &edgeNodes = mesh.adjacency(Kind::Edges, Kind::Nodes);
    NumberTable known;
    std::vector<LocalIndex> result;
    for (index e = 0; e < edgeNodes.size(); e++) {
        const auto [a, b] = std::minmax(places[static_cast<std::size_t>(edgeNodes[e][0])],
                                        places[static_cast<std::size_t>(edgeNodes[e][1])]);
        result.push_back(known.add((index{a} << 31) | b).first);
    }
    return result;
}

/// The cells of other ranks within `layers` steps. Collective; breadth-first: each round asks the owners of the cells
/// that are new for their neighbours.
/// Own cells are not expanded again: their neighbours are all in the first layer. Every rank runs `layers` - 1
/// rounds, even with an empty front, since queries are collective. O(cells reached x neighbours) words.
std::vector<index> cellsWithin(const UnstructuredMesh &mesh, const LocalAdjacency &neighbours, int layers) {
    const GhostMapping &cells = mesh.cells.mapping();
    const GlobalMapping &global = *cells.global();
    NumberTable reached;
    const auto reach = [&](index cell) {
        if (!global.isLocal(cell))
            reached.add(cell);
    };
    // The first layer is known here: ghosts include all neighbours of own cells.
    if (layers > 0)
        for (index c = 0; c < mesh.cells.owned; c++)
            for (const LocalIndex other : neighbours[c])
                reach(cells.toGlobal(other));
    std::size_t begin = 0;
    for (int layer = 1; layer < layers; layer++) {
        // Only cells found in the round before can lead to new ones.
        const auto known = reached.numbers().subspan(begin);
        const std::vector<index> front(known.begin(), known.end());
        begin += front.size();
        queryOwners(
            *global.context(), front.size(), [&](std::size_t i) { return global.owner(front[i]).rank; },
            [&](std::size_t i) { return front[i]; },
            [&](index cell, std::vector<index> &reply) {
                const auto row = neighbours[cell - global.localBegin()];
                reply.push_back(static_cast<index>(row.size()));
                for (const LocalIndex other : row)
                    reply.push_back(cells.toGlobal(other));
            },
            [&](std::size_t, RecordReader &reader) {
                for (const index cell : reader.next(reader.next()))
                    reach(cell);
            });
    }
    return {reached.numbers().begin(), reached.numbers().end()};
}

} // namespace

/// Cells share an entity if they share its place: numbers of coinciding copies are identified first, so that periodic
/// neighbours need no special case in the composition cells -> places -> cells.
/// O(sum of rows of cells x cells around an entity), a few tens of entries a cell through faces, up to some 70
/// through nodes.
LocalAdjacency neighboursThrough(const UnstructuredMesh &mesh, Kind kind) {
    const std::vector<LocalIndex> places = placesOf(mesh, kind);
    const LocalAdjacency rows =
        restricted("places of cells", mesh.adjacency(Kind::Cells, kind), upTo(mesh.cells.size()), places);
    return compose("cells around cells", rows, transpose("cells of places", rows, static_cast<index>(places.size())));
}

// Not safe for two threads at once: the first use must be the only one.
MeshConnectivity &UnstructuredMesh::connectivity() const {
    if (connectivity_ == nullptr)
        connectivity_ = std::make_shared<MeshConnectivity>();
    return *connectivity_;
}

/// Edges are made together or not at all: failTogether, then one assignment that cannot fail.
const MeshEntities &UnstructuredMesh::entities(MeshEntityKind kind) const {
    if (kind == Kind::Cells)
        return cells;
    if (kind == Kind::Nodes)
        return nodes;
    if (kind == Kind::Faces || dimension == 2)
        return faces;
    if (connectivity_ == nullptr || !connectivity_->edges) {
        const ActivityScope activity("edges of a mesh");
        MeshEdges made = failTogether(comm, [&] {
            static_cast<void>(cells.builtPattern());
            static_cast<void>(connectivity());
            return numberEdges(*this);
        });
        connectivity_->edges = std::move(made);
    }
    return connectivity_->edges->entities;
}

/// A list of the mesh itself, one made before, or the transpose of a list. References stay valid, as nodes of a map
/// do not move.
/// O(entries) the first time, O(log) after. Only edges need messages; ranks must therefore ask for them together.
const LocalAdjacency &UnstructuredMesh::adjacency(MeshEntityKind from, MeshEntityKind to) const {
    DNDS_CHECK(from != to, ArgumentError,
               "{}: there is no adjacency from {} to {}: compose two, as those from cells to faces and from faces to "
               "cells",
               origin, wordOf(from), wordOf(to));
    static_cast<void>(cells.builtPattern());
    // In two dimensions faces stand for edges; of faces and edges themselves the identity is made.
    const auto find = [&](Kind kind) { return kind == Kind::Edges && dimension == 2 ? Kind::Faces : kind; };
    const bool same = find(from) == find(to);
    if (!same) {
        from = find(from);
        to = find(to);
    }
    // Makes the edges if they are needed, which is the collective part.
    static_cast<void>(entities(from));
    static_cast<void>(entities(to));
    MeshConnectivity &known = connectivity();
    if (!same)
        if (const LocalAdjacency *list = listOf(*this, known.edges ? &*known.edges : nullptr, from, to);
            list != nullptr)
            return *list;
    const auto at = known.made.find({from, to});
    if (at != known.made.end())
        return at->second;
    const std::string name = fmt::format("{} of {}", wordOf(to), wordOf(from));
    const index rows = entities(from).size();
    LocalAdjacency made(name, comm);
    if (same) { // each edge of a two-dimensional mesh is one face
        std::vector<index> starts(toSize(rows) + 1);
        std::iota(starts.begin(), starts.end(), index{0});
        made = makeAdjacency(name, comm, starts, upTo(rows));
    } else {
        // All other adjacencies are transposes of lists of the mesh.
        const LocalAdjacency &inverse = *listOf(*this, known.edges ? &*known.edges : nullptr, to, from);
        made = to == Kind::Cells ? transpose(name, inverse, rows, cellsInFileOrder(*this))
                                 : transpose(name, inverse, rows);
    }
    return known.made.emplace(std::pair(from, to), std::move(made)).first->second;
}

/// A set of cells, not of images: a cell that is reached in several images is one ghost.
std::shared_ptr<const ExchangePattern> UnstructuredMesh::ghostsBy(MeshEntityKind through, int layers) const {
    const ActivityScope activity("ghosts of cells");
    const Kind kind = through == Kind::Edges && dimension == 2 ? Kind::Faces : through;
    return failTogether(comm, [&] {
        static_cast<void>(cells.builtPattern());
        DNDS_CHECK(through != Kind::Cells && layers >= 0, ArgumentError,
                   "{}: {} layers of ghosts through {} were asked for: 0 or more through nodes, edges or faces exist",
                   origin, layers, wordOf(through));
        DNDS_CHECK(ghostLayers > 0 && (ghostsByNodes || kind == Kind::Faces), StateError,
                   "{}: neighbours through {} are not known: build the mesh with a layer of ghosts by nodes "
                   "(MeshOptions::ghostLayers, ghostsBy)",
                   origin, wordOf(through));
        return std::make_shared<const ExchangePattern>(GhostMapping::fromPullList(
            cells.mapping().global(), cellsWithin(*this, neighboursThrough(*this, kind), layers)));
    });
}

} // namespace DNDS::Geom
