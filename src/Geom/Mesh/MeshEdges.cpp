#include "DNDS/Geom/Mesh/MeshEdges.hpp"

#include "DNDS/Geom/Elements/ReferenceElement.hpp"
#include "DNDS/Geom/Mesh/PeriodicNodes.hpp"
#include "DNDS/Geom/Mesh/Renumbering.hpp"
#include "DNDS/Geom/Source/NumberTable.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

namespace DNDS::Geom {

namespace {

/// Identifies a local edge by its local nodes, the one that is first in the file first.
/// Two local numbers of 31 bits in one word.
/// File numbers, which all ranks share, decide the direction of an edge, so that both ranks of a shared edge store
/// its ends alike.
class EdgeKeys {
  public:
    explicit EdgeKeys(const UnstructuredMesh &mesh) : numbers_(mesh.nodes.fileNumbers) {}

    // The key does not depend on the order of the arguments.
    index of(LocalIndex a, LocalIndex b) const {
        if (numbers_[static_cast<std::size_t>(b)] < numbers_[static_cast<std::size_t>(a)])
            std::swap(a, b);
        return (index{a} << nodeBits) | b;
    }
    static LocalIndex first(index key) { return static_cast<LocalIndex>(key >> nodeBits); }
    static LocalIndex second(index key) { return static_cast<LocalIndex>(key & ((index{1} << nodeBits) - 1)); }

  private:
    static constexpr int nodeBits = 31;
    std::span<const index> numbers_;
};

/// The edges of local cells in the order of cells.
/// Edges of own cells come first, since own cells do.
struct FoundEdges {
    NumberTable keys;
    index ofOwnCells = 0; ///< the first ones
    std::vector<index> starts{0};
    std::vector<LocalIndex> entries; ///< rows of cells
};

/// Calls `visit(a, b)` for the edges of faces of polyhedra, each at least once, with nodes of the cell.
/// O(corners of the cell's faces), and for faces of periodic boundaries a search through the cell's nodes for each
/// corner.
class PolyhedronEdges {
  public:
    explicit PolyhedronEdges(const UnstructuredMesh &mesh) : mesh_(mesh) {
        if (mesh.images.size() > 1)
            places_ = nodePlaces(mesh);
    }
    template <class Visit>
    void operator()(index cell, Visit &&visit) const {
        for (const LocalIndex face : mesh_.cellFaces[cell]) {
            const auto corners = mesh_.faceNodes[face];
            for (rowsize k = 0; k < corners.size(); k++) {
                const LocalIndex a = ofCell(cell, corners[k]);
                const LocalIndex b = ofCell(cell, corners[k + 1 == corners.size() ? 0 : k + 1]);
                if (a >= 0 && b >= 0)
                    visit(a, b);
            }
        }
    }

  private:
    /// The cell's own node at the place of a node: faces between images of cells have the nodes of one of them.
    LocalIndex ofCell(index cell, LocalIndex node) const {
        if (places_.empty())
            return node;
        const auto nodes = mesh_.cellNodes[cell];
        if (std::ranges::find(nodes, node) != nodes.end())
            return node;
        const auto placeOf = [&](LocalIndex n) { return places_[static_cast<std::size_t>(n)]; };
        const auto at = std::ranges::find(nodes, placeOf(node), placeOf);
        return at == nodes.end() ? noEntity : *at;
    }
    const UnstructuredMesh &mesh_;
    std::vector<LocalIndex> places_; ///< [nodes], empty without images
};

// Local. Polyhedra visit each edge from both of its faces: rows are searched for repeats, which are short.
// O(edges of local cells) on average, with rows of 6 to 12 edges; for a polyhedron of e edges O(e^2).
FoundEdges findEdges(const UnstructuredMesh &mesh, const EdgeKeys &keys) {
    FoundEdges found;
    const PolyhedronEdges ofPolyhedron(mesh);
    const auto cellNodes = mesh.cellNodes.view();
    for (index c = 0; c < mesh.cells.size(); c++) {
        const auto begin = static_cast<std::ptrdiff_t>(found.entries.size());
        const auto add = [&](LocalIndex a, LocalIndex b) {
            if (a == b) // of a collapsed element
                return;
            const LocalIndex edge = found.keys.add(keys.of(a, b)).first;
            if (std::find(found.entries.begin() + begin, found.entries.end(), edge) == found.entries.end())
                found.entries.push_back(edge);
        };
        const ElementType type = mesh.cellTypes[toSize(c)];
        if (type == ElementType::Polyhedron)
            ofPolyhedron(c, add);
        else
            for (int e = 0; e < edgeCount(type); e++) {
                const SubElement edge = edgeOf(type, e);
                add(cellNodes[c][edge.node[0]], cellNodes[c][edge.node[1]]);
            }
        found.starts.push_back(static_cast<index>(found.entries.size()));
        // Edges that ghost cells add come later.
        if (c + 1 == mesh.cells.owned)
            found.ofOwnCells = found.keys.size();
    }
    return found;
}

/// [nodes] whether other ranks, or periodic images, may have the node.
std::vector<char> nodesElsewhere(const MeshEntities &nodes) {
    std::vector<char> result(toSize(nodes.size()), 0);
    std::fill(result.begin() + nodes.owned, result.end(), 1);
    for (const index node : nodes.mapping().readerPeers().values)
        result[toSize(node)] = 1;
    return result;
}

/// Edges of several ranks meet at the owner of their first node. An edge in own cells of one rank alone is registered,
/// too, if other ranks have it in ghosts, since these also have its nodes.
/// Protocol: register (file numbers of both nodes, in an own cell or not), owners back, owners report their numbers,
/// numbers back to all.
/// O(n log n) for n registered edges. Owners are among the ranks with the edge in an own cell: only those number
/// it.
class EdgeMeeting {
  public:
    /// Registers the edges of other ranks, as `write` gives them. Local. Throws DataError for an edge that is in
    /// no own cell of any rank.
    EdgeMeeting(const UnstructuredMesh &mesh, const RankLists &arrived) : lists_{arrived.ranks, arrived.starts, {}} {
        for (index &start : lists_.starts)
            start /= words;
        std::vector<std::array<index, 3>> records(arrived.values.size() / toSize(words));
        for (std::size_t i = 0; i < records.size(); i++)
            std::copy_n(arrived.values.data() + toSize(words) * i, words, records[i].begin());
        std::vector<std::size_t> order(records.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        const auto key = [&](std::size_t i) { return std::tuple(records[i][0], records[i][1]); };
        std::ranges::stable_sort(order, {}, key);
        edgeOf_.resize(records.size());
        std::vector<int> ranks(records.size());
        // The rank of each record, from the lists' ranges.
        for (std::size_t k = 0; k < lists_.size(); k++)
            std::fill(ranks.begin() + lists_.starts[k], ranks.begin() + lists_.starts[k + 1], lists_.ranks[k]);
        std::vector<int> users; // ascending
        for (std::size_t k = 0; k < order.size(); k++) {
            const std::size_t i = order[k];
            edgeOf_[i] = owners_.size();
            if (records[i][2] != 0)
                users.push_back(ranks[i]);
            // Continues until the last record of the edge.
            if (k + 1 < order.size() && key(order[k + 1]) == key(i))
                continue;
            DNDS_CHECK(
                !users.empty(), DataError,
                "{}: ranks disagree about cells: the edge between nodes {} and {} (by position in the file, from "
                "0) is in ghost cells, but in no cell of the ranks that own them; check periodic boundaries and "
                "polyhedra of the mesh with `dnds-mesh check`",
                mesh.origin, records[i][0], records[i][1]);
            const auto a = static_cast<std::uint64_t>(records[i][0]);
            const auto b = static_cast<std::uint64_t>(records[i][1]);
            // By a hash of permanent numbers: evenly spread, and the same in every run.
            owners_.push_back(users[mixBits(mixBits(a) ^ b) % users.size()]);
            users.clear();
        }
    }
    static constexpr index words = 3; ///< about each registered edge
    /// The words about a found edge. Local.
    static void write(const UnstructuredMesh &mesh, const FoundEdges &found, std::size_t edge, index *to) {
        const index key = found.keys[static_cast<LocalIndex>(edge)];
        to[0] = mesh.nodes.fileNumbers[static_cast<std::size_t>(EdgeKeys::first(key))];
        to[1] = mesh.nodes.fileNumbers[static_cast<std::size_t>(EdgeKeys::second(key))];
        to[2] = static_cast<index>(edge) < found.ofOwnCells ? 1 : 0;
    }
    /// The owner of each registered edge, to be sent back. Local.
    RankLists owners() {
        lists_.values.resize(edgeOf_.size());
        for (std::size_t i = 0; i < edgeOf_.size(); i++)
            lists_.values[i] = owners_[edgeOf_[i]];
        return lists_;
    }
    /// The number that its owner gave to each, to be sent back; `given`: a word for each registered edge, -1 from those
    /// that do not own it. Local.
    RankLists numbers(const RankLists &given) {
        std::vector<index> ofEdge(owners_.size(), -1);
        for (std::size_t i = 0; i < edgeOf_.size(); i++)
            ofEdge[edgeOf_[i]] = std::max(ofEdge[edgeOf_[i]], given.values[i]);
        for (std::size_t i = 0; i < edgeOf_.size(); i++)
            lists_.values[i] = ofEdge[edgeOf_[i]];
        return lists_;
    }

  private:
    /// A word for each registered edge, grouped by the rank that registered it; reused for all answers.
    RankLists lists_;
    /// [registered] the edge's position in `owners_`.
    std::vector<std::size_t> edgeOf_;
    std::vector<int> owners_; ///< [edges that met]
};

/// Fills in owners and ghosts of `entities`, and returns the final local number of each found edge. Collective.
/// Four exchanges (registrations, owners, numbers of owners, numbers for all) and those of `renumber`; ranks
/// without shared edges take part with empty lists. O(edges with both ends shared) words. Answers return in the
/// order of the registrations, hence without keys.
std::vector<LocalIndex> numberFound(const UnstructuredMesh &mesh, const FoundEdges &found, MeshEntities &entities) {
    const GlobalMapping &nodes = *mesh.nodes.mapping().global();
    CommunicatorContext &context = *nodes.context();
    const int here = context.comm().rank();
    const std::vector<char> elsewhere = nodesElsewhere(mesh.nodes);
    const auto count = toSize(found.keys.size());
    const int ranks = context.comm().size();
    const auto meetsAt = [&](std::size_t e) {
        const index key = found.keys[static_cast<LocalIndex>(e)];
        const LocalIndex a = EdgeKeys::first(key);
        // An edge with a node that only this rank has is only here.
        if (elsewhere[static_cast<std::size_t>(a)] == 0 ||
            elsewhere[static_cast<std::size_t>(EdgeKeys::second(key))] == 0)
            return -1;
        return a < mesh.nodes.owned ? here : nodes.owner(mesh.nodes.mapping().toGlobal(a)).rank;
    };
    const RankLists meeting = groupByRank(ranks, count, meetsAt);
    EdgeMeeting others(
        mesh, sparseExchange(context, packByRank(
                                          ranks, count, meetsAt, [](std::size_t) { return EdgeMeeting::words; },
                                          [&](std::size_t e, index *to) { EdgeMeeting::write(mesh, found, e, to); })));
    const RankLists owners = sparseExchange(context, others.owners());
    // Edges that only this rank has are its own.
    std::vector<char> own(count, 1);
    for (std::size_t k = 0; k < meeting.values.size(); k++)
        own[toSize(meeting.values[k])] = meeting.values[k] < found.ofOwnCells && owners.values[k] == here ? 1 : 0;
    // Preliminary numbers: owned edges and ghosts, each in the order in which they were found.
    std::vector<LocalIndex> oldNumber(count);
    for (std::size_t e = 0; e < count; e++)
        if (own[e] != 0)
            oldNumber[e] = static_cast<LocalIndex>(entities.owned++);
        else
            oldNumber[e] = static_cast<LocalIndex>(entities.ghosts++);

    const auto global = GlobalMapping::create(context.comm(), entities.owned);
    // Owners report the global numbers, others -1.
    RankLists given = meeting;
    for (index &edge : given.values)
        edge = own[toSize(edge)] != 0 ? global->localBegin() + oldNumber[toSize(edge)] : -1;
    const RankLists numbers = sparseExchange(context, others.numbers(sparseExchange(context, given)));
    // The image of an edge is that of its first node.
    std::vector<GhostEntity> ghosts(toSize(entities.ghosts));
    for (std::size_t k = 0; k < meeting.values.size(); k++)
        if (const auto e = toSize(meeting.values[k]); own[e] == 0) {
            const LocalIndex node = EdgeKeys::first(found.keys[static_cast<LocalIndex>(e)]);
            ghosts[static_cast<std::size_t>(oldNumber[e])] = {numbers.values[k],
                                                              mesh.nodes.images[static_cast<std::size_t>(node)]};
        }
    // As for other entities: rows that others copy are moved together.
    const Renumbering renumbering = renumber(global, ghosts, {});
    entities.pattern = std::make_shared<const ExchangePattern>(renumbering.mapping);
    for (std::size_t e = 0; e < count; e++)
        oldNumber[e] =
            renumbering.newOfOld[static_cast<std::size_t>(oldNumber[e]) + (own[e] != 0 ? 0 : toSize(entities.owned))];
    return oldNumber;
}

} // namespace

// Lists the edges of cells in the order of cells, finds equal ones by a hash table of local nodes, and settles owner
// and number of edges that other ranks may have at the owner of their first node. Invariant: all ranks that have an
// edge register the same file numbers at the same rank.
MeshEdges numberEdges(const UnstructuredMesh &mesh) {
    const EdgeKeys keys(mesh);
    FoundEdges found = findEdges(mesh, keys);
    MeshEntities entities;
    const std::vector<LocalIndex> newOfFound = numberFound(mesh, found, entities);
    const auto count = toSize(entities.size());
    entities.fileNumbers.assign(count, -1);
    entities.fileIds.assign(count, 0);
    entities.images.assign(count, 0);
    std::vector<LocalIndex> nodes(2 * count);
    std::vector<index> nodeStarts(count + 1);
    for (std::size_t e = 0; e < count; e++) {
        const auto edge = static_cast<std::size_t>(newOfFound[e]);
        const index key = found.keys[static_cast<LocalIndex>(e)];
        nodes[2 * edge] = EdgeKeys::first(key);
        nodes[2 * edge + 1] = EdgeKeys::second(key);
        nodeStarts[edge + 1] = 2 * static_cast<index>(edge) + 2;
        entities.images[edge] = mesh.nodes.images[static_cast<std::size_t>(EdgeKeys::first(key))];
    }
    std::vector<index> faceStarts{0};
    std::vector<LocalIndex> faceEdges;
    for (index f = 0; f < mesh.faces.size(); f++) {
        const auto corners = mesh.faceNodes[f];
        for (rowsize k = 0; k < corners.size(); k++) {
            // Faces whose nodes are those of the other side of a periodic boundary may have edges of no local cell.
            const LocalIndex e = found.keys.find(keys.of(corners[k], corners[k + 1 == corners.size() ? 0 : k + 1]));
            if (e != NumberTable::none)
                faceEdges.push_back(newOfFound[static_cast<std::size_t>(e)]);
        }
        faceStarts.push_back(static_cast<index>(faceEdges.size()));
    }
    for (LocalIndex &entry : found.entries)
        entry = newOfFound[static_cast<std::size_t>(entry)];
    return {std::move(entities), makeAdjacency("edges of cells", mesh.comm, found.starts, found.entries),
            makeAdjacency("edges of faces", mesh.comm, faceStarts, faceEdges),
            makeAdjacency("nodes of edges", mesh.comm, nodeStarts, nodes)};
}

} // namespace DNDS::Geom
