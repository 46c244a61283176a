#include "DNDS/Geom/Build/LocalNodes.hpp"

#include "DNDS/Geom/Source/ElementFaces.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

namespace DNDS::Geom {

namespace {

/// A node of local cells before it has a number.
struct FoundNode {
    index number; ///< in the file
    int image;
};

/// The owners of found nodes; `places` are those of the nodes of own cells in this list, and of more. Collective.
/// Nodes of own cells need no message; the query is for nodes that only ghosts have.
std::vector<int> ownersOf(const GlobalMapping &blocks, const NodeSharing &sharing, std::span<const LocalIndex> places,
                          std::span<const index> nodes) {
    std::vector<int> owners(nodes.size(), -1);
    for (std::size_t at = 0; at < sharing.owners.size(); at++)
        owners[static_cast<std::size_t>(places[at])] = sharing.owners[at];
    std::vector<std::size_t> rest;
    std::vector<index> numbers;
    for (std::size_t i = 0; i < nodes.size(); i++)
        if (owners[i] < 0) {
            rest.push_back(i);
            numbers.push_back(nodes[i]);
        }
    const std::vector<int> fetched = fetchNodeOwners(blocks, sharing, numbers);
    for (std::size_t k = 0; k < rest.size(); k++)
        owners[rest[k]] = fetched[k];
    return owners;
}

} // namespace

/// Phases: positions of all nodes of local cells, in order of cells (`found`); owned ones are numbered, ghosts ask
/// their owners for global numbers; `renumber` gives final numbers; rows and coordinates are written by these. Nodes
/// that first appear in the order of cells are near each other in memory when cells are traversed.
/// O(entries of local cells) time and memory; messages: one query for owners, one for global numbers, three
/// exchanges of `renumber`, one query for coordinates. A node in an image is a ghost even on the rank that owns the
/// node: its coordinates differ.
NodeFinder numberNodes(UnstructuredMesh &mesh, const GlobalMapping &blocks, std::span<const Point> blockPoints,
                       const LocalCells &cells, const CellNumbers &numbers, const NodeSharing &sharing,
                       const ImageTable &images) {
    CommunicatorContext &context = *blocks.context();
    const int here = context.comm().rank();
    NodeFinder finder;
    finder.plain_ = sharing.nodes; // nodes of own cells keep their positions
    finder.plainPlace_.assign(toSize(sharing.nodes.size()), NumberTable::none);

    // Rows of cells, with places in the list of found nodes.
    std::vector<FoundNode> found;
    std::vector<index> starts{0};
    std::vector<LocalIndex> entries;
    starts.reserve(numbers.order.size() + 1);
    entries.reserve(cells.cells.nodes.size());
    for (const index old : numbers.order) {
        const auto begin = static_cast<std::ptrdiff_t>(entries.size());
        const int image = cells.images[toSize(old)];
        const ElementType type = cells.cells.types[toSize(old)];
        forEachNode(type, cells.cells.nodesOf(old), [&](const index &node) {
            // Own cells know the positions of their nodes; ghosts add theirs to the same table, images to a table of
            // their own.
            const LocalIndex at = old < cells.owned ? sharing.positions[toSize(&node - cells.cells.nodes.data())]
                                  : image == 0      ? finder.plain_.add(node).first
                                                    : finder.images_.add(imageKey(node, image)).first;
            auto &places = image == 0 ? finder.plainPlace_ : finder.imagePlace_;
            if (static_cast<std::size_t>(at) == places.size())
                places.push_back(NumberTable::none);
            LocalIndex &place = places[static_cast<std::size_t>(at)];
            if (place < 0) {
                place = static_cast<LocalIndex>(found.size());
                found.push_back({node, image});
            }
            // A polyhedron lists a node once for each face that has it.
            if (type != ElementType::Polyhedron ||
                std::find(entries.begin() + begin, entries.end(), place) == entries.end())
                entries.push_back(place);
        });
        starts.push_back(static_cast<index>(entries.size()));
    }

    // Owned nodes in the order in which they were found, then ghosts.
    std::vector<index> nodeNumbers;
    nodeNumbers.reserve(found.size());
    for (const FoundNode &node : found)
        nodeNumbers.push_back(node.number);
    const std::vector<int> owners = ownersOf(blocks, sharing, finder.plainPlace_, nodeNumbers);
    std::vector<std::size_t> ghosts;
    std::vector<LocalIndex> oldNumber(found.size());
    index owned = 0;
    for (std::size_t i = 0; i < found.size(); i++)
        if (owners[i] == here && found[i].image == 0)
            oldNumber[i] = static_cast<LocalIndex>(owned++);
        else
            ghosts.push_back(i);
    for (std::size_t k = 0; k < ghosts.size(); k++)
        oldNumber[ghosts[k]] = static_cast<LocalIndex>(owned + static_cast<index>(k));
    const auto global = GlobalMapping::create(context.comm(), owned);
    std::vector<GhostEntity> entities(ghosts.size());
    queryOwners(
        context, ghosts.size(), [&](std::size_t k) { return owners[ghosts[k]]; },
        [&](std::size_t k) { return nodeNumbers[ghosts[k]]; },
        [&](index node, std::vector<index> &reply) {
            const LocalIndex at = finder.plain_.find(node);
            const LocalIndex place = finder.plainPlace_[static_cast<std::size_t>(at)];
            reply.push_back(global->localBegin() + oldNumber[static_cast<std::size_t>(place)]);
        },
        [&](std::size_t k, RecordReader &reader) {
            entities[k] = {reader.next(), found[ghosts[k]].image};
        });
    const Renumbering renumbering = renumber(global, entities, {});

    for (LocalIndex &place : oldNumber)
        place = renumbering.newOfOld[static_cast<std::size_t>(place)];
    for (LocalIndex &entry : entries)
        entry = oldNumber[static_cast<std::size_t>(entry)];
    mesh.cellNodes = makeAdjacency("cell nodes", mesh.comm, starts, entries);
    mesh.nodes.owned = owned;
    mesh.nodes.ghosts = static_cast<index>(ghosts.size());
    mesh.nodes.pattern = std::make_shared<const ExchangePattern>(renumbering.mapping);
    mesh.nodes.fileNumbers.resize(found.size());
    mesh.nodes.fileIds.resize(found.size());
    mesh.nodes.images.resize(found.size());
    // Coordinates of images are moved here, so that the mesh has no others.
    const std::vector<Point> points = fetchCoordinates(blocks, blockPoints, nodeNumbers);
    mesh.coordinates.resize(static_cast<index>(found.size()));
    const auto coordinates = mesh.coordinates.view();
    for (std::size_t i = 0; i < found.size(); i++) {
        const auto node = static_cast<std::size_t>(oldNumber[i]);
        mesh.nodes.fileNumbers[node] = found[i].number;
        mesh.nodes.fileIds[node] = found[i].number + 1;
        mesh.nodes.images[node] = found[i].image;
        const Point point = found[i].image == 0 ? points[i] : images.motion(found[i].image)(points[i]);
        for (rowsize d = 0; d < 3; d++)
            coordinates(oldNumber[i], d) = point[static_cast<std::size_t>(d)];
    }
    finder.newOfOld_ = std::move(oldNumber);
    return finder;
}

} // namespace DNDS::Geom
