#include "DNDS/Geom/Build/PeriodicLinks.hpp"

#include "DNDS/Geom/Source/ElementFaces.hpp"
#include "DNDS/Geom/Source/PeriodicMatch.hpp"

#include <algorithm>

namespace DNDS::Geom {

namespace {

/// Boundary faces of own cells with periodic marks, with coordinates. Collective. Marked faces between two cells are
/// left out: the mesh is connected there.
/// O(marks x faces of a cell) time; one query for coordinates.
std::vector<PeriodicFace> collectFaces(const GlobalMapping &nodeBlocks, const CellRecords &cells, index firstCell,
                                       const SourceMesh &source) {
    std::vector<PeriodicFace> faces;
    for (const FaceMark &mark : cells.marks) {
        if (mark.mark >= 0 || cells.linksOf(mark.cell)[static_cast<std::size_t>(mark.slot)] != FaceLink::none)
            continue;
        const auto c = toSize(mark.cell);
        PeriodicFace face{(-1 - mark.mark) / 2,
                          (-1 - mark.mark) % 2,
                          firstCell + mark.cell,
                          mark.slot,
                          cells.fileIds[c],
                          0.0,
                          {},
                          {}};
        int slot = 0;
        forEachFace(cells.types[c], cells.nodesOf(mark.cell), [&](std::span<const index> corners) {
            if (slot++ == mark.slot)
                face.nodes.assign(corners.begin(), corners.end());
        });
        faces.push_back(std::move(face));
    }
    placeFaces(nodeBlocks, source, faces);
    return faces;
}

} // namespace

/// First sides know their partners after matchPeriodic; they tell the ranks of the second sides, so that both cells
/// get links with inverse steps. Pairs of corners become partners of nodes in the same way. Both sides count a link,
/// hence the halved number of pairs.
/// One exchange of 6 + 2 corners words a matched face, after the three of matchPeriodic. Reductions take maxima and
/// sums of integers, so the report has the same bits on any number of ranks.
PeriodicResult linkPeriodic(const GlobalMapping &nodeBlocks, CellRecords &cells, const SourceMesh &source,
                            const ImageTable &images) {
    PeriodicResult result;
    if (source.periodic.empty())
        return result;
    CommunicatorContext &context = *nodeBlocks.context();
    const CommunicatorView &comm = context.comm();
    const auto cellMapping = GlobalMapping::create(comm, cells.size());
    const std::vector<PeriodicFace> faces = collectFaces(nodeBlocks, cells, cellMapping->localBegin(), source);
    const std::vector<PeriodicMatch> matches = matchPeriodic(context, faces);

    Finding twice; // the first in the file: the same on any number of ranks
    // Returns whether the link is new. The same link again is a connection that is listed twice; another one means that
    // a face matches two faces, an error of the file.
    const auto link = [&](index cell, int slot, const FaceLink &to) {
        index &word = cells.links[toSize(cells.linkStarts[toSize(cell)] + slot)];
        const index old = std::exchange(word, to.pack());
        if (old != FaceLink::none && old != word)
            twice.add(cells.numbers[toSize(cell)], cells.fileIds[toSize(cell)]);
        return old == FaceLink::none;
    };
    const auto stepOf = [&](const PeriodicFace &face) { return images.stepAt(face.connection, face.side); };
    // Tell the second side its partner, with the corners.
    const RankLists told = sparseExchange(
        context, packByRank(
                     comm.size(), faces.size(),
                     [&](std::size_t f) { return matches[f].cell < 0 ? -1 : cellMapping->owner(matches[f].cell).rank; },
                     [&](std::size_t f) { return 6 + 2 * static_cast<index>(faces[f].nodes.size()); },
                     [&](std::size_t f, index *words) {
                         *words++ = matches[f].cell;
                         *words++ = matches[f].slot;
                         *words++ = faces[f].cell;
                         *words++ = faces[f].slot;
                         *words++ = ImageTable::inverseStep(stepOf(faces[f]));
                         *words++ = static_cast<index>(faces[f].nodes.size());
                         for (std::size_t i = 0; i < faces[f].nodes.size(); i++) {
                             *words++ = matches[f].nodes[i];
                             *words++ = faces[f].nodes[i];
                         }
                     }));
    index linked = 0;
    comm.guarded([&] {
        for (std::size_t f = 0; f < faces.size(); f++) {
            if (matches[f].cell < 0)
                continue;
            const int step = stepOf(faces[f]);
            result.offset = std::max(result.offset, matches[f].offset);
            // The reach is `periodicReach` times the shortest edge.
            result.relativeOffset = std::max(result.relativeOffset, periodicReach * matches[f].offset / faces[f].reach);
            linked += link(faces[f].cell - cellMapping->localBegin(), faces[f].slot,
                           {matches[f].cell, matches[f].slot, step, true});
            for (std::size_t i = 0; i < faces[f].nodes.size(); i++)
                result.partners.push_back({faces[f].nodes[i], matches[f].nodes[i], step});
        }
        for (RecordReader reader(told.values); !reader.atEnd();) {
            const index cell = reader.next() - cellMapping->localBegin();
            const auto slot = static_cast<int>(reader.next());
            const index other = reader.next();
            const auto otherSlot = static_cast<int>(reader.next());
            const auto step = static_cast<int>(reader.next());
            linked += link(cell, slot, {other, otherSlot, step, true});
            for (index count = reader.next(); count > 0; count--) {
                const index node = reader.next();
                result.partners.push_back({node, reader.next(), step});
            }
        }
        for (const PeriodicFace &face : faces) {
            const index c = face.cell - cellMapping->localBegin();
            if (cells.linksOf(c)[static_cast<std::size_t>(face.slot)] == FaceLink::none)
                result.unmatched.add(cells.numbers[toSize(c)], face.fileId);
        }
    });
    twice.agree(comm);
    DNDS_CHECK(twice.count == 0, DataError, "{}: a face of element {} matches two others of its periodic connection",
               source.origin, twice.fileId);
    result.unmatched.agree(comm);
    result.pairs = comm.allReduce(linked, MPI_SUM) / 2;
    result.offset = comm.allReduce(result.offset, MPI_MAX);
    result.relativeOffset = comm.allReduce(result.relativeOffset, MPI_MAX);
    std::sort(result.partners.begin(), result.partners.end());
    result.partners.erase(std::unique(result.partners.begin(), result.partners.end()), result.partners.end());
    return result;
}

} // namespace DNDS::Geom
