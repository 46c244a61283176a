#include "Geom/Cgns/PeriodicPairs.hpp"

#include "DNDS/Index/GlobalMapping.hpp"
#include "Geom/Cgns/WrittenElements.hpp"
#include "Geom/Mesh/ElementFaces.hpp"
#include "Geom/Mesh/PeriodicMatch.hpp"

#include <limits>

namespace DNDS::Geom::Detail {

namespace {

/// The longest side of the box around all nodes. Collective.
real extentOf(CommunicatorView comm, const SourceMesh &mesh) {
    std::array<real, 6> bounds;
    bounds.fill(std::numeric_limits<real>::infinity());
    for (const Point &point : mesh.coordinates)
        for (std::size_t d = 0; d < 3; d++) {
            bounds[d] = std::min(bounds[d], point[d]);
            bounds[d + 3] = std::min(bounds[d + 3], -point[d]);
        }
    comm.allReduce(bounds.data(), 6, MPI_MIN);
    real extent = 0.0;
    for (std::size_t d = 0; d < 3; d++)
        extent = std::max(extent, -bounds[d + 3] - bounds[d]);
    return extent;
}

/// Faces or nodes that have periodic marks, each with the number that it has in the file.
struct Marked {
    std::vector<PeriodicFace> faces;
    std::vector<index> numbers;

    void add(int mark, std::span<const index> nodes, index number) {
        if (mark >= 0)
            return;
        PeriodicFace face{(-1 - mark) / 2, (-1 - mark) % 2, 0, 0, number, 0.0, {}, {}};
        face.nodes.assign(nodes.begin(), nodes.end());
        faces.push_back(std::move(face));
        numbers.push_back(number);
    }
};

/// [connections]. Collective.
std::vector<PeriodicPairs::Sides> pairUp(CommunicatorContext &context, const GlobalMapping &nodeBlocks,
                                         const SourceMesh &mesh, Marked marked, const char *what) {
    const CommunicatorView comm = context.comm();
    const auto mapping = GlobalMapping::create(comm, static_cast<index>(marked.faces.size()));
    for (std::size_t i = 0; i < marked.faces.size(); i++)
        marked.faces[i].cell = mapping->localBegin() + static_cast<index>(i);
    placeFaces(nodeBlocks, mesh, marked.faces);
    const std::vector<PeriodicMatch> matches = matchPeriodic(context, marked.faces);

    std::vector<bool> met(marked.faces.size(), false);
    std::vector<index> partners(marked.faces.size(), 0);
    std::vector<std::size_t> matched;
    for (std::size_t i = 0; i < matches.size(); i++)
        if (matches[i].cell >= 0)
            matched.push_back(i);
    askRanks(
        context, matched.size(), [&](std::size_t k) { return mapping->owner(matches[matched[k]].cell).rank; },
        [&](std::size_t k) { return matches[matched[k]].cell; },
        [&](index asked, std::vector<index> &reply) {
            const std::size_t i = toSize(asked - mapping->localBegin());
            DNDS_CHECK(!met[i], DataError, "{}: {} {} is periodic with two others", mesh.origin, what,
                       marked.numbers[i]);
            met[i] = true;
            reply.push_back(marked.numbers[i]);
        },
        [&](std::size_t k, RecordReader &reader) { partners[matched[k]] = reader.next(); });

    std::vector<PeriodicPairs::Sides> all(mesh.periodic.size());
    for (std::size_t i = 0; i < marked.faces.size(); i++) {
        PeriodicPairs::Sides &sides = all[static_cast<std::size_t>(marked.faces[i].connection)];
        const auto side = static_cast<std::size_t>(marked.faces[i].side);
        if (matches[i].cell >= 0) {
            sides.paired[0].push_back(marked.numbers[i]);
            sides.paired[1].push_back(partners[i]);
        } else if (!met[i]) {
            sides.alone[side].push_back(marked.numbers[i]);
        }
    }
    return all;
}

} // namespace

std::vector<PeriodicPairs> pairPeriodic(CommunicatorContext &context, const SourceMesh &mesh,
                                        std::span<const index> faceElements) {
    constexpr real nodeTolerance = 1e-5;
    std::vector<PeriodicPairs> pairs(mesh.periodic.size());
    if (pairs.empty())
        return pairs;
    const auto nodeBlocks = GlobalMapping::create(context.comm(), mesh.nodes());
    Marked faces;
    for (index f = 0; f < mesh.faces.size(); f++)
        faces.add(mesh.faceMarks[toSize(f)], cornersOf(mesh.faces, f), faceElements[toSize(f)]);
    Marked nodes;
    const real reach = nodeTolerance * extentOf(context.comm(), mesh);
    for (const SourceMesh::NodeMark &mark : mesh.nodeMarks)
        nodes.add(mark.mark, {&mark.node, 1}, mark.node + 1);
    for (PeriodicFace &node : nodes.faces)
        node.reach = reach;
    auto ofFaces = pairUp(context, *nodeBlocks, mesh, std::move(faces), "boundary element");
    auto ofNodes = pairUp(context, *nodeBlocks, mesh, std::move(nodes), "node");
    for (std::size_t c = 0; c < pairs.size(); c++)
        pairs[c] = {std::move(ofFaces[c]), std::move(ofNodes[c])};
    return pairs;
}

} // namespace DNDS::Geom::Detail
