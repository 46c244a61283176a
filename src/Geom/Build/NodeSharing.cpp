#include "DNDS/Geom/Build/NodeSharing.hpp"

#include "DNDS/Geom/Build/FaceLinks.hpp"
#include "DNDS/Geom/Source/ElementFaces.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <algorithm>

namespace DNDS::Geom {

namespace {

/// The ranks with cells around each node of this rank's block: CSR, ascending.
/// Built from the registrations, by counting sort; ranks ascend as lists of a sparse exchange do.
/// O(registrations + nodes of the block) time and memory. A rank registers a node once, so a row has no repeats and
/// its size is the number of ranks with the node.
struct Users : CsrLists<int> {
    Users(const GlobalMapping &blocks, const RankLists &asked) {
        starts.resize(toSize(blocks.localSize()) + 1);
        for (const index node : asked.values)
            starts[toSize(node - blocks.localBegin()) + 1]++;
        std::partial_sum(starts.begin(), starts.end(), starts.begin());
        values.resize(asked.values.size());
        std::vector<index> next(starts.begin(), starts.end() - 1);
        for (std::size_t k = 0; k < asked.size(); k++)
            for (const index node : asked.list(k))
                values[toSize(next[toSize(node - blocks.localBegin())]++)] = asked.ranks[k];
    }
};

/// Adds the nodes of cells and fills in their positions.
/// O(entries); nodes of the table are in the order in which cells name them, which is spatial.
void listNodes(const CellRecords &cells, NodeSharing &sharing) {
    sharing.positions.assign(cells.nodes.size(), NumberTable::none);
    for (index c = 0; c < cells.size(); c++)
        forEachNode(cells.types[toSize(c)], cells.nodesOf(c), [&](const index &node) {
            sharing.positions[toSize(&node - cells.nodes.data())] = sharing.nodes.add(node).first;
        });
}

/// Sends partners to the owners of nodes, through the ranks of the nodes' blocks. Collective.
/// Partners are found on the ranks with the faces, which do not know the owner of a node: the block's rank forwards
/// them.
/// Two exchanges of three words a partner. Faces that share a node yield the same pair, hence the final sort and
/// `unique`.
std::vector<NodePartner> routePartners(const GlobalMapping &blocks, const NodeSharing &sharing,
                                       std::vector<NodePartner> partners) {
    CommunicatorContext &context = *blocks.context();
    const auto send = [&](auto &&rankOf) {
        partners = exchangeRecords(
            context, partners.size(), [&](std::size_t i) { return rankOf(partners[i].node); },
            [&](std::size_t i) { return partners[i]; });
    };
    send([&](index node) { return blocks.owner(node).rank; });
    send([&](index node) { return sharing.blockOwners[toSize(node - blocks.localBegin())]; });
    std::sort(partners.begin(), partners.end());
    partners.erase(std::unique(partners.begin(), partners.end()), partners.end());
    return partners;
}

/// Collects the cells around own nodes from all ranks. Collective.
/// Ranks send the cells around shared nodes to the nodes' owners. Nodes that only own cells have are needed for the
/// second layer on, when ghosts' nodes are asked about.
/// One exchange of two words for each (node, cell) whose node has another owner. O(entries of own cells) time. The
/// order within a row depends on the partition; ghosts found through it are sorted by number later (renumber).
CsrLists<index> collectAround(const GlobalMapping &cellMapping, const CellRecords &cells, const NodeSharing &sharing,
                              int layers) {
    CommunicatorContext &context = *cellMapping.context();
    const int here = context.comm().rank();
    // An own node by its number here, a cell by its global number.
    struct Pair {
        LocalIndex node;
        index cell;
    };
    std::vector<Pair> own;
    std::vector<Pair> others;
    std::vector<char> wanted(sharing.shared);
    if (layers > 1)
        std::ranges::fill(wanted, 1);
    for (const NodePartner &partner : sharing.partners)
        wanted[static_cast<std::size_t>(sharing.nodes.find(partner.node))] = 1;
    std::vector<index> lastCell(toSize(sharing.nodes.size()), -1); // polyhedra list nodes repeatedly
    for (index c = 0; c < cells.size(); c++)
        for (index k = cells.nodeStarts[toSize(c)]; k < cells.nodeStarts[toSize(c) + 1]; k++) {
            const LocalIndex node = sharing.positions[toSize(k)];
            const auto at = static_cast<std::size_t>(node);
            if (node < 0 || wanted[at] == 0 || std::exchange(lastCell[at], c) == c)
                continue;
            (sharing.owners[at] == here ? own : others).push_back({node, cellMapping.localBegin() + c});
        }
    const auto received = exchangeRecords(
        context, others.size(), [&](std::size_t i) { return sharing.owners[static_cast<std::size_t>(others[i].node)]; },
        [&](std::size_t i) {
            return std::array{sharing.nodes[others[i].node], others[i].cell};
        });
    for (const auto &[node, cell] : received)
        own.push_back({sharing.nodes.find(node), cell});
    // Rows by counting sort; within a row own cells come first, then those of others by rank.
    CsrLists<index> around;
    around.starts.assign(toSize(sharing.nodes.size()) + 1, 0);
    for (const Pair &pair : own)
        around.starts[static_cast<std::size_t>(pair.node) + 1]++;
    std::partial_sum(around.starts.begin(), around.starts.end(), around.starts.begin());
    around.values.resize(own.size());
    std::vector<index> next(around.starts.begin(), around.starts.end() - 1);
    for (const Pair &pair : own)
        around.values[toSize(next[static_cast<std::size_t>(pair.node)]++)] = pair.cell;
    return around;
}

/// A face as `checkManifold` compares it: exact, since there are few.
struct SortedFace {
    std::vector<index> corners;
    index fileId = 0;

    index words() const { return 2 + static_cast<index>(corners.size()); }
    void write(index *to) const {
        *to++ = fileId;
        *to++ = static_cast<index>(corners.size());
        std::copy(corners.begin(), corners.end(), to);
    }
    static SortedFace read(RecordReader &reader) {
        SortedFace face;
        face.fileId = reader.next();
        const auto list = reader.next(reader.next());
        face.corners.assign(list.begin(), list.end());
        return face;
    }
};

/// Visits a cell's faces on the boundary, or its other faces, with ascending corners.
template <class Visit>
void forEachSortedFace(const CellRecords &cells, index cell, bool boundary, Visit &&visit) {
    const auto links = cells.linksOf(cell);
    std::size_t slot = 0;
    std::vector<index> sorted;
    forEachFace(cells.types[toSize(cell)], cells.nodesOf(cell), [&](std::span<const index> corners) {
        if ((links[slot++] == FaceLink::none) != boundary)
            return;
        sorted.assign(corners.begin(), corners.end());
        std::sort(sorted.begin(), sorted.end());
        visit(sorted);
    });
}

/// Faces without a partner, with corners sorted for comparison.
std::vector<SortedFace> boundaryFaces(const CellRecords &cells) {
    std::vector<SortedFace> faces;
    for (index c = 0; c < cells.size(); c++) {
        const auto links = cells.linksOf(c);
        if (std::find(links.begin(), links.end(), FaceLink::none) != links.end())
            forEachSortedFace(cells, c, true, [&](const std::vector<index> &corners) {
                faces.push_back({corners, cells.fileIds[toSize(c)]});
            });
    }
    return faces;
}

/// Sends boundary faces to other ranks that have all their corners, through the block of the least corner; returns the
/// faces sent to this rank. Collective.
/// Any rank that has the face as an inner one also has its least corner: the users of that corner are told. Few faces
/// have all corners shared between ranks.
/// Two exchanges. O(boundary faces at partition borders) words, times the number of ranks around the least corner,
/// mostly 2 to 8.
std::vector<SortedFace> showFaces(const GlobalMapping &blocks, const NodeSharing &sharing, const Users &users,
                                  const std::vector<SortedFace> &faces) {
    CommunicatorContext &context = *blocks.context();
    const int ranks = context.comm().size();
    const auto isShared = [&](index node) {
        return sharing.shared[static_cast<std::size_t>(sharing.nodes.find(node))] != 0;
    };
    const RankLists atBlocks = sparseExchange(context, packByRank(
                                                           ranks, faces.size(),
                                                           [&](std::size_t i) {
                                                               return std::ranges::all_of(faces[i].corners, isShared)
                                                                          ? blocks.owner(faces[i].corners[0]).rank
                                                                          : -1;
                                                           },
                                                           [&](std::size_t i) { return faces[i].words(); },
                                                           [&](std::size_t i, index *to) { faces[i].write(to); }));
    // A face for another user of its least corner.
    struct Copy {
        int rank;
        SortedFace face;
    };
    std::vector<Copy> copies;
    for (std::size_t k = 0; k < atBlocks.size(); k++)
        for (RecordReader reader(atBlocks.list(k)); !reader.atEnd();) {
            const SortedFace face = SortedFace::read(reader);
            for (const int rank : users[toSize(face.corners[0] - blocks.localBegin())])
                if (rank != atBlocks.ranks[k])
                    copies.push_back({rank, face});
        }
    const RankLists received =
        sparseExchange(context, packByRank(
                                    ranks, copies.size(), [&](std::size_t i) { return copies[i].rank; },
                                    [&](std::size_t i) { return copies[i].face.words(); },
                                    [&](std::size_t i, index *to) { copies[i].face.write(to); }));
    std::vector<SortedFace> shown;
    for (RecordReader reader(received.values); !reader.atEnd();)
        shown.push_back(SortedFace::read(reader));
    return shown;
}

/// Compares boundary faces, own and received, with the inner faces of own cells. Collective. Throws as
/// `throwNonManifold` if one of them is an inner face.
/// linkFaces compares at the rendezvous only faces that their rank could not match. If two cells of a face meet on
/// one rank and a third is elsewhere, the third one seems to lie on the boundary: it is shown to the ranks that could
/// have the other two. `suspect` nodes limit the comparison to cells near the boundary.
/// Corners are compared exactly, so that a collision of FaceKey cannot raise an error. O(boundary faces log
/// boundary faces) for the sort, plus the faces of cells with enough suspect nodes.
void checkManifold(const GlobalMapping &blocks, const CellRecords &cells, const NodeSharing &sharing,
                   const Users &users, const std::string &origin) {
    const CommunicatorView &comm = blocks.context()->comm();
    if (comm.size() == 1)
        return; // linkFaces has compared all faces
    std::vector<SortedFace> faces = boundaryFaces(cells);
    std::vector<SortedFace> shown = showFaces(blocks, sharing, users, faces);
    faces.insert(faces.end(), std::make_move_iterator(shown.begin()), std::make_move_iterator(shown.end()));
    std::ranges::sort(faces, {}, &SortedFace::corners);
    std::vector<char> suspect(toSize(sharing.nodes.size()), 0);
    for (const SortedFace &face : faces)
        for (const index node : face.corners)
            if (const LocalIndex at = sharing.nodes.find(node); at != NumberTable::none)
                suspect[static_cast<std::size_t>(at)] = 1;
    bool manifold = true;
    comm.guarded([&] {
        for (index c = 0; c < cells.size(); c++) {
            int count = 0;
            for (index k = cells.nodeStarts[toSize(c)]; k < cells.nodeStarts[toSize(c) + 1]; k++)
                if (const LocalIndex node = sharing.positions[toSize(k)]; node >= 0)
                    count += suspect[static_cast<std::size_t>(node)];
            if (count < 2) // an edge in two dimensions; more in three
                continue;
            forEachSortedFace(cells, c, false, [&](const std::vector<index> &corners) {
                const auto found = std::ranges::lower_bound(faces, corners, {}, &SortedFace::corners);
                manifold = manifold && (found == faces.end() || found->corners != corners);
            });
        }
    });
    if (comm.allReduce(manifold ? 1 : 0, MPI_MIN) == 0)
        throwNonManifold(comm, cells, origin);
}

} // namespace

std::span<const NodePartner> NodeSharing::partnersOf(index node) const {
    const auto begin = std::lower_bound(partners.begin(), partners.end(), node,
                                        [](const NodePartner &partner, index n) { return partner.node < n; });
    auto end = begin;
    while (end != partners.end() && end->node == node)
        ++end;
    return {begin, end};
}

// A directory of nodes: each rank registers its nodes with the rank of the node's block in the file, which picks the
// owner among the registered ranks by a hash and replies. O(nodes of own cells) time and memory. Invariant: the owner
// depends on the node and its ranks alone, so all ranks agree on it.
NodeSharing shareNodes(const GlobalMapping &blocks, const GlobalMapping &cellMapping, const CellRecords &cells,
                       const std::vector<NodePartner> &partners, int layers, bool check, const std::string &origin) {
    CommunicatorContext &context = *blocks.context();
    const int ranks = context.comm().size();
    NodeSharing sharing;
    listNodes(cells, sharing);
    const auto count = toSize(sharing.nodes.size());
    const auto blockOf = [&](std::size_t i) { return blocks.owner(sharing.nodes.numbers()[i]).rank; };

    const RankLists registered =
        sparseExchange(context, packByRank(
                                    ranks, count, blockOf, [](std::size_t) { return 1; },
                                    [&](std::size_t i, index *word) { *word = sharing.nodes.numbers()[i]; }));
    const Users users(blocks, registered);
    sharing.blockOwners.assign(toSize(blocks.localSize()), -1);
    for (index node = 0; node < blocks.localSize(); node++)
        if (const auto ranksOf = users[toSize(node)]; !ranksOf.empty())
            sharing.blockOwners[toSize(node)] =
                ranksOf[mixBits(static_cast<std::uint64_t>(blocks.localBegin() + node)) % ranksOf.size()];
    sharing.unused = context.comm().allReduce(
        static_cast<index>(std::count(sharing.blockOwners.begin(), sharing.blockOwners.end(), -1)), MPI_SUM);

    sharing.owners.resize(count);
    sharing.shared.resize(count);
    queryOwners(
        context, count, blockOf, [&](std::size_t i) { return sharing.nodes.numbers()[i]; },
        [&](index node, std::vector<index> &reply) {
            const index local = node - blocks.localBegin();
            // One word: twice the owner, and 1 if several ranks have the node.
            reply.push_back(2 * index{sharing.blockOwners[toSize(local)]} + (users[toSize(local)].size() > 1 ? 1 : 0));
        },
        [&](std::size_t i, RecordReader &reader) {
            const index word = reader.next();
            sharing.owners[i] = static_cast<int>(word / 2);
            sharing.shared[i] = static_cast<char>(word % 2);
        });
    if (check)
        checkManifold(blocks, cells, sharing, users, origin);
    sharing.partners = routePartners(blocks, sharing, partners);
    if (layers > 0)
        sharing.cellsAround = collectAround(cellMapping, cells, sharing, layers);
    return sharing;
}

} // namespace DNDS::Geom
