#include "DNDS/Geom/Build/FaceLinks.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Geom/Build/FaceRendezvous.hpp"

#include <numeric>

namespace DNDS::Geom {

namespace {

/// The packed link from `from` to `to`, which are two sides of one face.
/// The normal points away from the cell that is first in the file: the orientation depends on no partition. A cell
/// that is its own neighbour has the side with the smaller slot first.
index linkBetween(const Side &from, const Side &to) {
    const bool first = from.number != to.number ? from.number < to.number : from.slot < to.slot;
    return FaceLink{to.cell, to.slot, 0, first}.pack();
}

/// The partner of each side that met another. Clears `manifold` where three meet.
/// Equal keys among sides of all ranks. A hash collision of two different faces would link them wrongly; the header
/// states how rare that is.
/// O(sides) time on average. The first two sides of a key become partners; a third one overwrites the link and
/// clears the flag, after which all ranks throw.
std::vector<index> matchSides(const GatheredSides &meeting, bool &manifold) {
    FaceTable table(meeting.keys);
    std::vector<index> partner(meeting.keys.size(), -1);
    for (std::size_t i = 0; i < meeting.keys.size(); i++) {
        const index found = table.findOrAdd(static_cast<index>(i));
        if (found < 0)
            continue;
        manifold = manifold && partner[toSize(found)] < 0;
        partner[toSize(found)] = static_cast<index>(i);
        partner[i] = found;
    }
    return partner;
}

/// Links faces whose two cells are both here. Clears `manifold` where three share one.
/// Most faces are inside a rank's part of the curve: they need no messages.
void linkOwnFaces(CellRecords &cells, index firstCell, const OwnFaces &faces, bool &manifold) {
    const auto sideOf = [&](index f) {
        const LocalIndex c = faces.cells[toSize(f)];
        const auto at = static_cast<std::size_t>(c);
        return Side{firstCell + c, static_cast<int>(f - cells.linkStarts[at]), cells.numbers[at], cells.fileIds[at]};
    };
    FaceTable table(faces.keys);
    cells.links.assign(faces.keys.size(), FaceLink::none);
    for (index f = 0; f < static_cast<index>(faces.keys.size()); f++) {
        const index found = table.findOrAdd(f);
        if (found < 0)
            continue;
        const Side here = sideOf(f);
        const Side there = sideOf(found);
        manifold = manifold && cells.links[toSize(found)] == FaceLink::none;
        cells.links[toSize(f)] = linkBetween(here, there);
        cells.links[toSize(found)] = linkBetween(there, here);
    }
}

/// Three cells of one face.
struct SharedFace {
    std::array<index, 3> numbers; ///< in file order, ascending
    std::array<index, 3> fileIds;
};

/// Among the faces that meet here, the one with three cells or more whose cells come first in the file; numbers beyond
/// all others if no such face exists.
/// Sorted by key and file number: three entries in a row with one key are a face with three cells.
/// O(n log n) for n sides. `k` visits only the first entry of each key, so a face of four cells counts once, with
/// its three least cells.
SharedFace firstShared(const GatheredSides &meeting) {
    SharedFace first{};
    first.numbers.fill(std::numeric_limits<index>::max());
    std::vector<std::size_t> order(meeting.keys.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto keyOf = [&](std::size_t i) { return std::pair(meeting.keys[i].hash, meeting.keys[i].least); };
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return keyOf(a) != keyOf(b) ? keyOf(a) < keyOf(b) : meeting.sides[a].number < meeting.sides[b].number;
    });
    for (std::size_t k = 0; k + 2 < order.size(); k++) {
        if (keyOf(order[k]) != keyOf(order[k + 2]) || (k > 0 && keyOf(order[k - 1]) == keyOf(order[k])))
            continue;
        SharedFace face{};
        for (std::size_t i = 0; i < 3; i++) {
            face.numbers[i] = meeting.sides[order[k + i]].number;
            face.fileIds[i] = meeting.sides[order[k + i]].fileId;
        }
        if (face.numbers < first.numbers)
            first = face;
    }
    return first;
}

} // namespace

// Brings equal faces of all ranks together by a hash and sorts them by key and file number: more expensive than
// `linkFaces`, but the face that is named does not depend on the partition. Only for meshes with a known error.
void throwNonManifold(CommunicatorView comm, const CellRecords &cells, const std::string &origin) {
    const auto mapping = GlobalMapping::create(comm, cells.size());
    std::vector<FaceKey> keys;
    std::vector<Side> sides;
    for (index c = 0; c < cells.size(); c++)
        forEachFace(cells.types[toSize(c)], cells.nodesOf(c), [&](std::span<const index> corners) {
            keys.push_back(faceKey(corners));
            sides.push_back({mapping->localBegin() + c, 0, cells.numbers[toSize(c)], cells.fileIds[toSize(c)]});
        });
    const SharedFace mine = firstShared(GatheredSides(sparseExchange(
        *mapping->context(), packByRank(
                                 comm.size(), keys.size(),
                                 [&](std::size_t i) {
                                     return static_cast<int>((keys[i].hash >> 32U) %
                                                             static_cast<std::uint64_t>(comm.size()));
                                 },
                                 [](std::size_t) { return sideWords; },
                                 [&](std::size_t i, index *words) { writeSide(keys[i], sides[i], words); }))));
    std::vector<SharedFace> all(static_cast<std::size_t>(comm.size()));
    for (std::size_t i = 0; i < 3; i++) {
        const std::vector<index> numbers = comm.allGather(mine.numbers[i]);
        const std::vector<index> fileIds = comm.allGather(mine.fileIds[i]);
        for (std::size_t rank = 0; rank < all.size(); rank++) {
            all[rank].numbers[i] = numbers[rank];
            all[rank].fileIds[i] = fileIds[rank];
        }
    }
    const SharedFace &first = *std::ranges::min_element(all, {}, &SharedFace::numbers);
    throw DataError(fmt::format("{}: elements {}, {} and {} share a face: the mesh is not a manifold", origin,
                                first.fileIds[0], first.fileIds[1], first.fileIds[2]));
}

// Matches faces on this rank by a hash table, then those without a partner at a rendezvous rank, which knows the face's
// least node. O(own faces) time; one sparse exchange to the rendezvous and one back. Invariant: the two sides of a face
// have the same key, hence the same rendezvous.
void linkFaces(const GlobalMapping &nodeBlocks, CellRecords &cells, const std::string &origin) {
    const CommunicatorView comm = nodeBlocks.context()->comm();
    const auto mapping = GlobalMapping::create(comm, cells.size());
    CommunicatorContext &context = *mapping->context();
    const index firstCell = mapping->localBegin();
    OwnFaces faces;
    std::exception_ptr failure;
    bool manifold = true;
    // A reduction at the end only, where a mesh is fine: the expensive search for the first face is for damaged ones.
    const auto requireManifold = [&] {
        if (comm.allReduce(manifold ? 1 : 0, MPI_MIN) == 0)
            throwNonManifold(comm, cells, origin);
    };
    attempt(failure, [&] {
        faces = listFaces(cells);
        linkOwnFaces(cells, firstCell, faces, manifold);
    });
    if (failure)
        faces = {}; // some may lack their links
    if (comm.size() == 1) {
        comm.agree(failure);
        requireManifold();
        return;
    }
    // A third cell of a face whose other two met on their rank looks like one at the boundary: see checkManifold in
    // NodeSharing.cpp.
    const GatheredSides meeting(sendSides(
        nodeBlocks, cells, firstCell, faces, [&](std::size_t f) { return cells.links[f] == FaceLink::none; }, failure));
    std::vector<index> partner;
    std::exception_ptr mine;
    attempt(mine, [&] { partner = matchSides(meeting, manifold); });
    const auto answers = exchangeRecords(
        context, partner.size(), [&](std::size_t i) { return partner[i] < 0 ? -1 : meeting.ranks[i]; },
        [&](std::size_t i) {
            return std::array<index, 3>{meeting.sides[i].cell, meeting.sides[i].slot,
                                        linkBetween(meeting.sides[i], meeting.sides[toSize(partner[i])])};
        },
        mine);
    for (const auto &[cell, slot, link] : answers)
        cells.links[toSize(cells.linkStarts[toSize(cell - firstCell)] + slot)] = link;
    requireManifold();
}

/// O(faces of own cells). Symmetric, as links are.
DistributedGraph dualGraph(const CellRecords &cells, index firstCell) {
    DistributedGraph graph;
    graph.starts.reserve(toSize(cells.size()) + 1);
    graph.neighbours.reserve(cells.links.size());
    for (index c = 0; c < cells.size(); c++) {
        for (const index word : cells.linksOf(c))
            if (word != FaceLink::none)
                if (const index other = FaceLink::unpack(word).cell; other != firstCell + c)
                    graph.neighbours.push_back(other);
        graph.finishVertex();
    }
    return graph;
}

} // namespace DNDS::Geom
