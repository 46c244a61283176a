#include "Geom/Mesh/NodeSharing.hpp"

#include "Geom/Mesh/ElementFaces.hpp"

#include <algorithm>
#include <limits>

namespace DNDS::Geom {

namespace {

/// Who has cells around each node of this rank's block: CSR of ranks, ascending.
struct Users {
    std::vector<index> starts;
    std::vector<int> ranks;

    Users(const GlobalMapping &blocks, const RankLists &asked) : starts(toSize(blocks.localSize()) + 1, 0) {
        for (const index node : asked.values)
            starts[toSize(node - blocks.localBegin()) + 1]++;
        std::partial_sum(starts.begin(), starts.end(), starts.begin());
        ranks.resize(asked.values.size());
        std::vector<index> next(starts.begin(), starts.end() - 1);
        for (std::size_t k = 0; k < asked.size(); k++)
            for (const index node : asked.list(k))
                ranks[toSize(next[toSize(node - blocks.localBegin())]++)] = asked.ranks[k];
    }
    std::span<const int> of(index local) const {
        return std::span<const int>(ranks).subspan(toSize(starts[toSize(local)]),
                                                   toSize(starts[toSize(local) + 1] - starts[toSize(local)]));
    }
};

void listNodes(const CellRecords &cells, NumberTable &nodes) {
    for (index c = 0; c < cells.size(); c++)
        forEachNode(cells.types[toSize(c)], cells.nodesOf(c), [&](index node) { nodes.add(node); });
}

/// Sends partners to those who own the nodes, by way of the ranks whose blocks nodes are in. Collective.
std::vector<NodePartner> routePartners(const GlobalMapping &blocks, const NodeSharing &sharing,
                                       std::vector<NodePartner> partners) {
    CommunicatorContext &context = *blocks.context();
    const auto send = [&](auto &&rankOf) {
        const RankLists received = sparseExchange(context, packByRank(
                                                               context.comm().size(), partners.size(),
                                                               [&](std::size_t i) { return rankOf(partners[i].node); },
                                                               [](std::size_t) { return 3; },
                                                               [&](std::size_t i, index *words) {
                                                                   words[0] = partners[i].node;
                                                                   words[1] = partners[i].other;
                                                                   words[2] = partners[i].step;
                                                               }));
        partners.clear();
        for (RecordReader reader(received.values); !reader.atEnd();) {
            const index node = reader.next();
            const index other = reader.next();
            partners.push_back({node, other, static_cast<int>(reader.next())});
        }
    };
    send([&](index node) { return blocks.owner(node).rank; });
    send([&](index node) { return sharing.blockOwners[toSize(node - blocks.localBegin())]; });
    std::sort(partners.begin(), partners.end());
    partners.erase(std::unique(partners.begin(), partners.end()), partners.end());
    return partners;
}

/// Collects the cells around own nodes from all ranks. Collective.
NodeSharing::Around collectAround(const GlobalMapping &cellMapping, const CellRecords &cells,
                                  const NodeSharing &sharing) {
    CommunicatorContext &context = *cellMapping.context();
    const int here = context.comm().rank();
    struct Pair {
        LocalIndex node;
        index cell;
    };
    std::vector<Pair> own;
    std::vector<Pair> others;
    std::vector<index> lastCell(toSize(sharing.nodes.size()), -1); // polyhedra list nodes repeatedly
    for (index c = 0; c < cells.size(); c++)
        forEachNode(cells.types[toSize(c)], cells.nodesOf(c), [&](index node) {
            const LocalIndex at = sharing.nodes.find(node);
            if (std::exchange(lastCell[static_cast<std::size_t>(at)], c) == c)
                return;
            (sharing.owners[static_cast<std::size_t>(at)] == here ? own : others)
                .push_back({at, cellMapping.localBegin() + c});
        });
    const RankLists received = sparseExchange(
        context, packByRank(
                     context.comm().size(), others.size(),
                     [&](std::size_t i) { return sharing.owners[static_cast<std::size_t>(others[i].node)]; },
                     [](std::size_t) { return 2; },
                     [&](std::size_t i, index *words) {
                         words[0] = sharing.nodes[others[i].node];
                         words[1] = others[i].cell;
                     }));
    for (RecordReader reader(received.values); !reader.atEnd();) {
        const LocalIndex node = sharing.nodes.find(reader.next());
        own.push_back({node, reader.next()});
    }
    NodeSharing::Around around;
    around.starts.assign(toSize(sharing.nodes.size()) + 1, 0);
    for (const Pair &pair : own)
        around.starts[static_cast<std::size_t>(pair.node) + 1]++;
    std::partial_sum(around.starts.begin(), around.starts.end(), around.starts.begin());
    around.cells.resize(own.size());
    std::vector<index> next(around.starts.begin(), around.starts.end() - 1);
    for (const Pair &pair : own)
        around.cells[toSize(next[static_cast<std::size_t>(pair.node)]++)] = pair.cell;
    return around;
}

/// A face as `checkManifold` compares it: exact, for they are few.
struct SortedFace {
    std::vector<index> corners;
    index fileId;
};

/// Boundary faces all of whose corners other ranks have, too, are shown to those ranks, by way of the blocks of their
/// least corner. Collective. Throws DataError where one of them has it inside.
void checkManifold(const GlobalMapping &blocks, const CellRecords &cells, const NodeSharing &sharing,
                   const Users &users, const std::string &origin) {
    CommunicatorContext &context = *blocks.context();
    const int ranks = context.comm().size();
    if (ranks == 1)
        return;
    const auto forEachSharedFace = [&](bool boundary, auto &&visit) {
        std::vector<index> sorted;
        for (index c = 0; c < cells.size(); c++) {
            const auto links = cells.linksOf(c);
            if (boundary && std::find(links.begin(), links.end(), FaceLink::none) == links.end())
                continue;
            std::size_t slot = 0;
            forEachFace(cells.types[toSize(c)], cells.nodesOf(c), [&](std::span<const index> corners) {
                if ((links[slot++] == FaceLink::none) != boundary)
                    return;
                for (const index node : corners)
                    if (sharing.shared[static_cast<std::size_t>(sharing.nodes.find(node))] == 0)
                        return;
                sorted.assign(corners.begin(), corners.end());
                std::sort(sorted.begin(), sorted.end());
                visit(c, sorted);
            });
        }
    };
    std::vector<SortedFace> faces;
    forEachSharedFace(true, [&](index c, const std::vector<index> &corners) {
        faces.push_back({corners, cells.fileIds[toSize(c)]});
    });
    if (context.comm().allReduce(static_cast<index>(faces.size()), MPI_SUM) == 0)
        return;
    const auto words = [](const SortedFace &face) { return 2 + static_cast<index>(face.corners.size()); };
    const auto write = [](const SortedFace &face, index *to) {
        *to++ = face.fileId;
        *to++ = static_cast<index>(face.corners.size());
        std::copy(face.corners.begin(), face.corners.end(), to);
    };
    const auto read = [](const RankLists &lists) {
        std::vector<std::pair<int, SortedFace>> result;
        for (std::size_t k = 0; k < lists.size(); k++)
            for (RecordReader reader(lists.list(k)); !reader.atEnd();) {
                SortedFace face{{}, reader.next()};
                const auto corners = reader.next(reader.next());
                face.corners.assign(corners.begin(), corners.end());
                result.emplace_back(lists.ranks[k], std::move(face));
            }
        return result;
    };
    const auto atBlocks = read(sparseExchange(
        context,
        packByRank(
            ranks, faces.size(), [&](std::size_t i) { return blocks.owner(faces[i].corners[0]).rank; },
            [&](std::size_t i) { return words(faces[i]); }, [&](std::size_t i, index *to) { write(faces[i], to); })));
    struct Copy {
        int rank;
        const SortedFace *face;
    };
    std::vector<Copy> copies;
    for (const auto &[from, face] : atBlocks)
        for (const int rank : users.of(face.corners[0] - blocks.localBegin()))
            if (rank != from)
                copies.push_back({rank, &face});
    auto shown = read(sparseExchange(context, packByRank(
                                                  ranks, copies.size(), [&](std::size_t i) { return copies[i].rank; },
                                                  [&](std::size_t i) { return words(*copies[i].face); },
                                                  [&](std::size_t i, index *to) { write(*copies[i].face, to); })));
    std::sort(shown.begin(), shown.end(),
              [](const auto &a, const auto &b) { return a.second.corners < b.second.corners; });
    context.comm().guarded([&] {
        if (shown.empty())
            return;
        forEachSharedFace(false, [&](index c, const std::vector<index> &corners) {
            const auto found = std::lower_bound(shown.begin(), shown.end(), corners,
                                                [](const auto &a, const auto &b) { return a.second.corners < b; });
            DNDS_CHECK(found == shown.end() || found->second.corners != corners, DataError,
                       "{}: elements {}, {} and another share a face: the mesh is not a manifold", origin,
                       std::min(cells.fileIds[toSize(c)], found->second.fileId),
                       std::max(cells.fileIds[toSize(c)], found->second.fileId));
        });
    });
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

NodeSharing shareNodes(const GlobalMapping &blocks, const GlobalMapping &cellMapping, const CellRecords &cells,
                       const std::vector<NodePartner> &partners, bool wantCells, const std::string &origin) {
    CommunicatorContext &context = *blocks.context();
    const int ranks = context.comm().size();
    NodeSharing sharing;
    listNodes(cells, sharing.nodes);
    const auto count = toSize(sharing.nodes.size());
    const auto blockOf = [&](std::size_t i) { return blocks.owner(sharing.nodes.numbers()[i]).rank; };

    const RankLists registered =
        sparseExchange(context, packByRank(
                                    ranks, count, blockOf, [](std::size_t) { return 1; },
                                    [&](std::size_t i, index *word) { *word = sharing.nodes.numbers()[i]; }));
    const Users users(blocks, registered);
    sharing.blockOwners.assign(toSize(blocks.localSize()), -1);
    for (index node = 0; node < blocks.localSize(); node++)
        if (const auto ranksOf = users.of(node); !ranksOf.empty())
            sharing.blockOwners[toSize(node)] =
                ranksOf[mixBits(static_cast<std::uint64_t>(blocks.localBegin() + node)) % ranksOf.size()];
    sharing.unused = context.comm().allReduce(
        static_cast<index>(std::count(sharing.blockOwners.begin(), sharing.blockOwners.end(), -1)), MPI_SUM);

    sharing.owners.resize(count);
    sharing.shared.resize(count);
    askRanks(
        context, count, blockOf, [&](std::size_t i) { return sharing.nodes.numbers()[i]; },
        [&](index node, std::vector<index> &reply) {
            const index local = node - blocks.localBegin();
            reply.push_back(2 * index{sharing.blockOwners[toSize(local)]} + (users.of(local).size() > 1 ? 1 : 0));
        },
        [&](std::size_t i, RecordReader &reader) {
            const index word = reader.next();
            sharing.owners[i] = static_cast<int>(word / 2);
            sharing.shared[i] = static_cast<char>(word % 2);
        });
    checkManifold(blocks, cells, sharing, users, origin);
    sharing.partners = routePartners(blocks, sharing, partners);
    if (wantCells)
        sharing.around = collectAround(cellMapping, cells, sharing);
    return sharing;
}

} // namespace DNDS::Geom
