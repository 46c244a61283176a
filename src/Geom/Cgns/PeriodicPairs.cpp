#include "DNDS/Geom/Cgns/PeriodicPairs.hpp"

#include "DNDS/Geom/Source/ElementFaces.hpp"
#include "DNDS/Geom/Source/PeriodicMatch.hpp"
#include "DNDS/Geom/Source/SourceChecks.hpp"
#include "DNDS/Index/Mappings.hpp"
#include "DNDS/Mpi/EvenSplit.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace DNDS::Geom::Detail {

namespace {

/// Adds a face or a node if it has a periodic mark; `number` is its number in the written file.
void addMarked(std::vector<PeriodicFace> &marked, int mark, std::span<const index> nodes, index number) {
    if (mark >= 0)
        return;
    PeriodicFace face{(-1 - mark) / 2, (-1 - mark) % 2, 0, 0, number, 0.0, {}, {}};
    face.nodes.assign(nodes.begin(), nodes.end());
    marked.push_back(std::move(face));
}

/// Removes duplicates, since meshes may list a face or node repeatedly, also on several ranks; the result ascends from
/// rank to rank. Collective; one sparse exchange.
/// Copies of a face have the same corners, so it does not matter which one stays. O(marked log marked) time.
std::vector<PeriodicFace> eachOnce(CommunicatorContext &context, const std::vector<PeriodicFace> &marked) {
    const CommunicatorView comm = context.comm();
    index least = std::numeric_limits<index>::max();
    index most = 0;
    for (const PeriodicFace &face : marked) {
        least = std::min(least, face.fileId);
        most = std::max(most, face.fileId);
    }
    least = comm.allReduce(least, MPI_MIN);
    most = comm.allReduce(most, MPI_MAX);
    // By the number in the file: copies of a face meet on one rank, and ranks are in ascending order.
    const EvenSplit split(most - std::min(least, most) + 1, comm.size());
    const RankLists sent = sparseExchange(
        context, packByRank(
                     comm.size(), marked.size(), [&](std::size_t i) { return split.owner(marked[i].fileId - least); },
                     [&](std::size_t i) { return marked[i].words(); },
                     [&](std::size_t i, index *words) { marked[i].write(words); }));
    std::vector<PeriodicFace> faces;
    for (RecordReader reader(sent.values); !reader.atEnd();)
        faces.push_back(PeriodicFace::read(reader));
    const auto key = [](const PeriodicFace &face) { return std::tuple{face.fileId, face.connection, face.side}; };
    std::stable_sort(faces.begin(), faces.end(),
                     [&](const PeriodicFace &a, const PeriodicFace &b) { return key(a) < key(b); });
    faces.erase(std::unique(faces.begin(), faces.end(),
                            [&](const PeriodicFace &a, const PeriodicFace &b) { return key(a) == key(b); }),
                faces.end());
    return faces;
}

/// [connections]. Collective.
/// Matches are found from the first sides; their partners' numbers in the file are known to the ranks that have
/// these, which also note that they were met. What remains on either side is `alone`.
/// Exchanges: coordinates (a query), copies, three of matchPeriodic, and a query for partners. `met` is set by the
/// owner while it answers: every question arrives before `alone` is read. O(marked faces) memory.
std::vector<PeriodicPairs::Sides> pairUp(CommunicatorContext &context, const GlobalMapping &nodeBlocks,
                                         const SourceMesh &mesh, std::vector<PeriodicFace> marked, const char *what) {
    placeFaces(nodeBlocks, mesh, marked);
    std::vector<PeriodicFace> faces = eachOnce(context, marked);
    marked = {};
    const auto mapping = GlobalMapping::create(context.comm(), static_cast<index>(faces.size()));
    for (std::size_t i = 0; i < faces.size(); i++)
        // A match names its partner by this number.
        faces[i].cell = mapping->localBegin() + static_cast<index>(i);
    const std::vector<PeriodicMatch> matches = matchPeriodic(context, faces);

    std::vector<bool> met(faces.size(), false);
    std::vector<index> partners(faces.size(), 0);
    std::vector<std::size_t> matched;
    for (std::size_t i = 0; i < matches.size(); i++)
        if (matches[i].cell >= 0)
            matched.push_back(i);
    queryOwners(
        context, matched.size(), [&](std::size_t k) { return mapping->owner(matches[matched[k]].cell).rank; },
        [&](std::size_t k) { return matches[matched[k]].cell; },
        [&](index asked, std::vector<index> &reply) {
            const std::size_t i = toSize(asked - mapping->localBegin());
            DNDS_CHECK(!met[i], DataError, "{}: {} {} matches two others of its periodic connection", mesh.origin, what,
                       faces[i].fileId);
            met[i] = true;
            reply.push_back(faces[i].fileId);
        },
        [&](std::size_t k, RecordReader &reader) { partners[matched[k]] = reader.next(); });

    std::vector<PeriodicPairs::Sides> all(mesh.periodic.size());
    for (std::size_t i = 0; i < faces.size(); i++) {
        PeriodicPairs::Sides &sides = all[static_cast<std::size_t>(faces[i].connection)];
        const auto side = static_cast<std::size_t>(faces[i].side);
        if (matches[i].cell >= 0) {
            sides.paired[0].push_back(faces[i].fileId);
            sides.paired[1].push_back(partners[i]);
        } else if (!met[i]) {
            sides.alone[side].push_back(faces[i].fileId);
        }
    }
    return all;
}

} // namespace

/// Faces and nodes are paired apart, as a file lists them in connections of their own.
std::vector<PeriodicPairs> pairPeriodic(CommunicatorContext &context, const SourceMesh &mesh,
                                        std::span<const index> faceElements) {
    // Nodes have no edges from which a reach would follow: part of the mesh's extent.
    constexpr real nodeTolerance = 1e-5;
    std::vector<PeriodicPairs> pairs(mesh.periodic.size());
    if (pairs.empty())
        return pairs;
    const auto nodeBlocks = GlobalMapping::create(context.comm(), mesh.nodes());
    std::vector<PeriodicFace> faces;
    for (index f = 0; f < mesh.faces.size(); f++)
        addMarked(faces, mesh.faceMarks[toSize(f)], cornerNodes(mesh.faces.types[toSize(f)], mesh.faces.nodesOf(f)),
                  faceElements[toSize(f)]);
    std::vector<PeriodicFace> nodes;
    const auto [lower, upper] = nodeBoundsOf(context.comm(), mesh.coordinates);
    const real reach = nodeTolerance * std::ranges::max(upper - lower); // of the longest side of the box around all
    for (const SourceMesh::NodeMark &mark : mesh.nodeMarks)
        addMarked(nodes, mark.mark, {&mark.node, 1}, mark.node + 1);
    for (PeriodicFace &node : nodes)
        node.reach = reach;
    auto ofFaces = pairUp(context, *nodeBlocks, mesh, std::move(faces), "boundary element");
    auto ofNodes = pairUp(context, *nodeBlocks, mesh, std::move(nodes), "node");
    for (std::size_t c = 0; c < pairs.size(); c++)
        pairs[c] = {std::move(ofFaces[c]), std::move(ofNodes[c])};
    return pairs;
}

} // namespace DNDS::Geom::Detail
