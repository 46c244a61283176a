#include "DNDS/Geom/Build/GhostCells.hpp"

#include "DNDS/Geom/Source/ElementFaces.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

namespace DNDS::Geom {

namespace {

/// The layer under construction: keys of cells not local yet.
/// A set: a cell that is reached in several ways is fetched once.
class Layer {
  public:
    explicit Layer(const LocalCells &local) : local_(local) {}
    void want(index key) {
        if (local_.find(key) == NumberTable::none)
            wanted_.add(key);
    }
    std::span<const index> keys() const { return wanted_.numbers(); }

  private:
    const LocalCells &local_;
    NumberTable wanted_;
};

/// Requests the cells across the faces of cells from `begin` on that are not local.
void wantBehindFaces(const LocalCells &local, index begin, ImageTable &images, Layer &layer) {
    for (index c = begin; c < local.size(); c++)
        for (const index word : local.cells.linksOf(c)) {
            if (word == FaceLink::none)
                continue;
            const FaceLink link = FaceLink::unpack(word);
            layer.want(imageKey(link.cell, images.compose(local.images[toSize(c)], link.step)));
        }
}

/// Finds the cells around nodes of any owner.
/// Neighbours through nodes, across periodic boundaries, too: where several meet, a node has partners of partners,
/// which are asked about until none is new.
/// O(nodes of the layer) questions; `seen_` keeps each (node, image) from being asked about twice, over all layers.
/// The loop in `want` ends on all ranks in the same round, since its condition is a reduction.
class AroundNodes {
  public:
    AroundNodes(const GlobalMapping &cellMapping, const GlobalMapping &nodeBlocks, const NodeSharing &sharing,
                ImageTable &images)
        : cellMapping_(cellMapping), nodeBlocks_(nodeBlocks), sharing_(sharing), images_(images) {}

    /// Collective.
    void want(const LocalCells &local, index begin, Layer &layer) {
        std::vector<index> nodes; // keys
        if (begin == 0) {
            for (const index node : sharing_.nodes.numbers())
                remember(node, nodes);
        } else {
            for (index c = begin; c < local.size(); c++)
                forEachNode(local.cells.types[toSize(c)], local.cells.nodesOf(c),
                            [&](index node) { remember(imageKey(node, local.images[toSize(c)]), nodes); });
        }
        const CommunicatorView &comm = cellMapping_.context()->comm();
        // Ranks repeat the query as long as any of them has new nodes, as queries are collective.
        const bool periodic = comm.allReduce(sharing_.partners.empty() ? 0 : 1, MPI_MAX) != 0;
        for (bool more = true; more;) {
            nodes = ask(nodes, layer);
            more = periodic && comm.allReduce(nodes.empty() ? 0 : 1, MPI_MAX) != 0;
        }
    }

  private:
    // Adds a node to be asked about, once.
    void remember(index key, std::vector<index> &nodes) {
        if (!isPrivate(key) && seen_.add(key).second)
            nodes.push_back(key);
    }
    /// Whether only own cells are around a node.
    /// Such nodes need no message: most nodes are of this kind.
    bool isPrivate(index key) const {
        if (imageOfKey(key) != 0)
            return false;
        const LocalIndex at = sharing_.nodes.find(numberOfKey(key));
        return at != NumberTable::none && sharing_.shared[static_cast<std::size_t>(at)] == 0 &&
               sharing_.partnersOf(numberOfKey(key)).empty();
    }
    /// Requests the cells around nodes; returns new partners of these nodes.
    std::vector<index> ask(const std::vector<index> &nodes, Layer &layer) {
        std::vector<index> numbers;
        numbers.reserve(nodes.size());
        for (const index key : nodes)
            numbers.push_back(numberOfKey(key));
        const std::vector<int> owners = fetchNodeOwners(nodeBlocks_, sharing_, numbers);
        std::vector<index> partners;
        queryOwners(
            *cellMapping_.context(), nodes.size(), [&](std::size_t i) { return owners[i]; },
            [&](std::size_t i) { return numbers[i]; },
            [&](index node, std::vector<index> &reply) { answer(node, reply); },
            [&](std::size_t i, RecordReader &reader) {
                const int image = imageOfKey(nodes[i]);
                for (const index cell : reader.next(reader.next()))
                    layer.want(imageKey(cell, image));
                for (index count = reader.next(); count > 0; count--) {
                    const index other = reader.next();
                    const auto step = static_cast<int>(reader.next());
                    if (other != numbers[i])
                        remember(imageKey(other, images_.compose(image, step)), partners);
                }
            });
        return partners;
    }
    /// Words: number of cells, cells, number of partners, {partner, step} each.
    void answer(index node, std::vector<index> &reply) const {
        const auto at = static_cast<std::size_t>(sharing_.nodes.find(node));
        const auto cells = sharing_.cellsAround[at];
        reply.push_back(static_cast<index>(cells.size()));
        reply.insert(reply.end(), cells.begin(), cells.end());
        const auto partners = sharing_.partnersOf(node);
        reply.push_back(static_cast<index>(partners.size()));
        for (const NodePartner &partner : partners) {
            reply.push_back(partner.other);
            reply.push_back(partner.step);
        }
    }

    const GlobalMapping &cellMapping_;
    const GlobalMapping &nodeBlocks_;
    const NodeSharing &sharing_;
    ImageTable &images_;
    NumberTable seen_;
};

/// Gets cells from their owners and appends them. Collective.
/// Records arrive grouped by owner and are appended in the order of `keys`.
/// Two exchanges for the query; O(words of the records) memory beyond the cells. Any order of `keys` is correct;
/// that of Layer makes ghosts of one layer contiguous.
void fetchCells(const GlobalMapping &cellMapping, LocalCells &local, std::span<const index> keys, int depth) {
    // Records of varying length, in the order of arrival; `starts` finds each.
    std::vector<index> words;
    std::vector<index> starts(keys.size());
    queryOwners(
        *cellMapping.context(), keys.size(),
        [&](std::size_t i) { return cellMapping.owner(numberOfKey(keys[i])).rank; },
        [&](std::size_t i) { return numberOfKey(keys[i]); },
        [&](index number, std::vector<index> &reply) {
            const index cell = number - cellMapping.localBegin();
            const std::size_t at = reply.size();
            reply.resize(at + toSize(cellRecordSize(local.cells, cell)));
            writeCellRecord(local.cells, cell, reply.data() + at);
        },
        [&](std::size_t i, RecordReader &reader) {
            starts[i] = static_cast<index>(words.size());
            const auto record = reader.next(cellRecordSize(reader.rest()));
            words.insert(words.end(), record.begin(), record.end());
        });
    for (std::size_t i = 0; i < keys.size(); i++) {
        appendCell(local.cells, std::span<const index>(words).subspan(toSize(starts[i])));
        local.numbers.push_back(numberOfKey(keys[i]));
        local.images.push_back(imageOfKey(keys[i]));
        local.layers.push_back(depth);
        local.ghostKeys.add(keys[i]);
    }
}

} // namespace

/// Owners of the nodes of own cells are known here. Others are asked for at the ranks of their blocks, which chose the
/// owners: one query.
/// O(nodes) time and O(unknown nodes) words. Node blocks answer for every node of the source, so ghosts of any
/// layer find an owner.
std::vector<int> fetchNodeOwners(const GlobalMapping &nodeBlocks, const NodeSharing &sharing,
                                 std::span<const index> nodes) {
    std::vector<int> owners(nodes.size());
    std::vector<std::size_t> unknown;
    for (std::size_t i = 0; i < nodes.size(); i++)
        if (const LocalIndex at = sharing.nodes.find(nodes[i]); at != NumberTable::none)
            owners[i] = sharing.owners[static_cast<std::size_t>(at)];
        else
            unknown.push_back(i);
    queryOwners(
        *nodeBlocks.context(), unknown.size(), [&](std::size_t k) { return nodeBlocks.owner(nodes[unknown[k]]).rank; },
        [&](std::size_t k) { return nodes[unknown[k]]; },
        [&](index node, std::vector<index> &reply) {
            reply.push_back(sharing.blockOwners[toSize(node - nodeBlocks.localBegin())]);
        },
        [&](std::size_t k, RecordReader &reader) { owners[unknown[k]] = static_cast<int>(reader.next()); });
    return owners;
}

// Grows the own cells breadth-first: each round takes the cells across the outermost layer that are not local yet, and
// fetches their records from their owners. Invariant: after round k, all cells within k steps are local, each with its
// image; the next round looks at new cells only, so the total cost is O(own cells + ghosts).
LocalCells collectGhosts(const GlobalMapping &cellMapping, const GlobalMapping &nodeBlocks, CellRecords &&own,
                         const NodeSharing &sharing, ImageTable &images, GhostNeighbours neighbours, int depth) {
    LocalCells local;
    local.cells = std::move(own);
    local.owned = local.cells.size();
    local.images.assign(toSize(local.owned), 0);
    local.layers.assign(toSize(local.owned), 0);
    local.firstOwned = cellMapping.localBegin();
    local.numbers.resize(toSize(local.owned));
    std::iota(local.numbers.begin(), local.numbers.end(), local.firstOwned);
    // Kept over all layers: nodes that were asked about are not asked about again.
    AroundNodes around(cellMapping, nodeBlocks, sharing, images);
    index begin = 0;
    for (int number = 1; number <= depth; number++) {
        Layer layer(local);
        if (neighbours == GhostNeighbours::Faces)
            wantBehindFaces(local, begin, images, layer);
        else
            around.want(local, begin, layer);
        begin = local.size();
        fetchCells(cellMapping, local, layer.keys(), number);
    }
    return local;
}

} // namespace DNDS::Geom
