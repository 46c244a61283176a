#include "DNDS/Geom/Build/FaceMarks.hpp"

#include "DNDS/Geom/Build/FaceRendezvous.hpp"
#include "DNDS/Geom/Source/NodeMarks.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

namespace DNDS::Geom {

namespace {

/// The source's marked faces: [marks] of key, mark and file id.
/// Words: hash, least node, mark, number in the file, position in the sender's list, by which the sender learns of
/// faces without a cell.
/// Keys are those of distinct corners, as forEachFace gives them, so that collapsed boundary elements match. Each
/// pass of packByRank computes them again, which saves a list of keys.
RankLists sendMarks(const GlobalMapping &nodeBlocks, const ElementBlock &block, std::span<const int> marks,
                    const std::vector<index> &chosen) {
    const auto keyOf = [&](std::size_t i) {
        const index face = chosen[i];
        return faceKey(distinctCorners(cornerNodes(block.types[toSize(face)], block.nodesOf(face))));
    };
    return sparseExchange(*nodeBlocks.context(),
                          packByRank(
                              nodeBlocks.ranks(), chosen.size(),
                              [&](std::size_t i) { return rendezvousRank(keyOf(i), nodeBlocks); },
                              [](std::size_t) { return 5; },
                              [&](std::size_t i, index *words) {
                                  const FaceKey key = keyOf(i);
                                  words[0] = static_cast<index>(key.hash);
                                  words[1] = key.least;
                                  words[2] = marks[toSize(chosen[i])];
                                  words[3] = block.fileIds[toSize(chosen[i])];
                                  words[4] = chosen[i];
                              }));
}

/// Matches marked faces with cells' faces; returns those of `chosen` without a cell. Collective.
/// A join at the rendezvous: sides of cells and marked faces with equal keys meet there; marks are forwarded to the
/// cells, and marks without a side go back to their sender.
/// Four exchanges: six words a wanted side, five a mark, four an answer, one a lost mark. O(sides + marks) time on
/// average.
template <class Wanted>
std::vector<index> joinMarks(const GlobalMapping &nodeBlocks, const GlobalMapping &cellMapping, CellRecords &cells,
                             const OwnFaces &faces, const SourceMesh &source, const std::vector<index> &chosen,
                             Wanted &&wanted) {
    CommunicatorContext &context = *cellMapping.context();
    const int ranks = context.comm().size();
    const GatheredSides meeting(
        sendSides(nodeBlocks, cells, cellMapping.localBegin(), faces, std::forward<Wanted>(wanted), nullptr));
    const RankLists marks = sendMarks(nodeBlocks, source.faces, source.faceMarks, chosen);

    // Sides of one key are chained: an inner face has two.
    FaceTable table(meeting.keys);
    std::vector<index> next(meeting.keys.size(), -1);
    for (std::size_t i = 0; i < next.size(); i++)
        if (const index found = table.findOrAdd(static_cast<index>(i)); found >= 0)
            next[toSize(found)] = static_cast<index>(i);
    // Cell, slot, mark and number in the file, or only the sender's position.
    struct Answer {
        int rank;
        std::array<index, 4> words;
    };
    std::vector<Answer> answers;
    std::vector<Answer> lost;
    for (std::size_t k = 0; k < marks.size(); k++)
        for (RecordReader reader(marks.list(k)); !reader.atEnd();) {
            FaceKey key;
            key.hash = static_cast<std::uint64_t>(reader.next());
            key.least = reader.next();
            const index mark = reader.next();
            const index fileId = reader.next();
            const index asker = reader.next();
            index side = table.find(key);
            if (side < 0)
                lost.push_back({marks.ranks[k], {asker, 0, 0, 0}});
            for (; side >= 0; side = next[toSize(side)])
                answers.push_back({meeting.ranks[toSize(side)],
                                   {meeting.sides[toSize(side)].cell, meeting.sides[toSize(side)].slot, mark, fileId}});
        }
    const auto send = [&](const std::vector<Answer> &list, index width) {
        return sparseExchange(
            context,
            packByRank(
                ranks, list.size(), [&](std::size_t i) { return list[i].rank; }, [&](std::size_t) { return width; },
                [&](std::size_t i, index *words) { std::copy_n(list[i].words.begin(), width, words); }));
    };
    const RankLists found = send(answers, 4);
    for (RecordReader reader(found.values); !reader.atEnd();) {
        const index cell = reader.next() - cellMapping.localBegin();
        const auto slot = static_cast<int>(reader.next());
        const auto mark = static_cast<int>(reader.next());
        cells.marks.push_back({cell, slot, mark, reader.next()});
    }
    return send(lost, 1).values;
}

/// Marks boundary faces all of whose corners have a mark. Collective.
/// Two passes over boundary faces: the first collects their nodes, whose marks are then fetched in one query; the
/// second intersects the marks of each face's corners.
/// O(corners of boundary faces) time and memory. Marks of nodes have no number in the file (0). Only boundary faces
/// qualify: an inner face may have all its corners in a patch without being one of its faces.
void markByNodes(const GlobalMapping &blocks, CellRecords &cells, const SourceMesh &source) {
    if (blocks.context()->comm().allReduce(source.nodeMarks.empty() ? 0 : 1, MPI_MAX) == 0)
        return;
    NumberTable nodes;
    // Slots count all faces of a cell, as links do.
    const auto forEachBoundaryFace = [&](auto &&visit) {
        for (index c = 0; c < cells.size(); c++) {
            int slot = 0;
            const auto links = cells.linksOf(c);
            forEachFace(cells.types[toSize(c)], cells.nodesOf(c), [&](std::span<const index> corners) {
                if (links[static_cast<std::size_t>(slot)] == FaceLink::none)
                    visit(c, slot, corners);
                slot++;
            });
        }
    };
    forEachBoundaryFace([&](index, int, std::span<const index> corners) {
        for (const index node : corners)
            nodes.add(node);
    });
    const CsrLists<int> marks = fetchNodeMarks(blocks, source, nodes.numbers());
    const auto marksOf = [&](index node) { return marks[static_cast<std::size_t>(nodes.find(node))]; };
    forEachBoundaryFace([&](index c, int slot, std::span<const index> corners) {
        for (const int mark : commonMarks(corners, marksOf))
            cells.marks.push_back({c, slot, mark, 0});
    });
}

} // namespace

/// A second join with inner faces takes place only if some marked faces have not found a cell.
/// Marks ascend and have no repeats afterwards, as CellRecords requires. O(own faces + own marks) memory.
Finding markFaces(const GlobalMapping &nodeBlocks, CellRecords &cells, const SourceMesh &source) {
    const CommunicatorView &comm = nodeBlocks.context()->comm();
    const auto cellMapping = GlobalMapping::create(comm, cells.size());
    Finding lost;
    if (source.faces.globalSize > 0) {
        std::vector<index> chosen(toSize(source.faces.size()));
        std::iota(chosen.begin(), chosen.end(), index{0});
        const OwnFaces faces = listFaces(cells);
        // Nearly all marked faces are on the boundary; inner faces take part only if some are not.
        chosen = joinMarks(nodeBlocks, *cellMapping, cells, faces, source, chosen,
                           [&](std::size_t f) { return cells.links[f] == FaceLink::none; });
        if (comm.allReduce(chosen.empty() ? 0 : 1, MPI_MAX) != 0)
            chosen = joinMarks(nodeBlocks, *cellMapping, cells, faces, source, chosen,
                               [&](std::size_t f) { return cells.links[f] != FaceLink::none; });
        for (const index face : chosen)
            lost.add(source.faces.first + face, source.faces.fileIds[toSize(face)]);
        lost.agree(comm);
    }
    markByNodes(nodeBlocks, cells, source);
    std::sort(cells.marks.begin(), cells.marks.end());
    cells.marks.erase(std::unique(cells.marks.begin(), cells.marks.end()), cells.marks.end());
    return lost;
}

} // namespace DNDS::Geom
