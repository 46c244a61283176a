#include "Geom/Mesh/FaceLinks.hpp"

#include "Geom/Mesh/ElementFaces.hpp"

#include <algorithm>
#include <bit>

namespace DNDS::Geom {

namespace {

/// What two lists of the same distinct corners have in common, whatever their order.
struct FaceKey {
    std::uint64_t hash = 0;
    index least = std::numeric_limits<index>::max();

    void add(index node) {
        hash += mixBits(static_cast<std::uint64_t>(node));
        least = std::min(least, node);
    }
    friend bool operator==(const FaceKey &, const FaceKey &) = default;
};

FaceKey faceKey(std::span<const index> corners) {
    FaceKey key;
    for (const index node : corners)
        key.add(node);
    key.hash = mixBits(key.hash);
    return key;
}

int meetingRank(const FaceKey &key, int ranks) {
    return static_cast<int>((key.hash >> 32) % static_cast<std::uint64_t>(ranks));
}

/// Finds earlier faces of the same key: open addressing, positions only.
class FaceTable {
  public:
    explicit FaceTable(std::span<const FaceKey> keys)
        : keys_(keys), buckets_(std::bit_ceil(2 * keys.size() + 2), empty), mask_(buckets_.size() - 1) {}

    /// The face that has the same key and was added before, or -1 after adding this one.
    index findOrAdd(index face) {
        const FaceKey &key = keys_[toSize(face)];
        std::size_t at = static_cast<std::size_t>(key.hash) & mask_;
        for (; buckets_[at] != empty; at = (at + 1) & mask_)
            if (keys_[toSize(buckets_[at])] == key)
                return buckets_[at];
        buckets_[at] = face;
        return empty;
    }
    index find(const FaceKey &key) const {
        std::size_t at = static_cast<std::size_t>(key.hash) & mask_;
        for (; buckets_[at] != empty; at = (at + 1) & mask_)
            if (keys_[toSize(buckets_[at])] == key)
                return buckets_[at];
        return empty;
    }

  private:
    static constexpr index empty = -1;
    std::span<const FaceKey> keys_;
    std::vector<index> buckets_;
    std::size_t mask_;
};

/// The faces of this rank's cells, in order.
struct OwnFaces {
    std::vector<FaceKey> keys;
    std::vector<LocalIndex> cells;
};

OwnFaces listFaces(CellRecords &cells) {
    OwnFaces faces;
    faces.keys.reserve(toSize(6 * cells.size()));
    faces.cells.reserve(faces.keys.capacity());
    cells.linkStarts.assign(1, 0);
    cells.linkStarts.reserve(toSize(cells.size()) + 1);
    for (index c = 0; c < cells.size(); c++) {
        forEachFace(cells.types[toSize(c)], cells.nodesOf(c), [&](std::span<const index> corners) {
            faces.keys.push_back(faceKey(corners));
            faces.cells.push_back(static_cast<LocalIndex>(c));
        });
        cells.linkStarts.push_back(static_cast<index>(faces.keys.size()));
    }
    return faces;
}

/// A face as it is told to others.
struct Side {
    index cell; ///< global
    int slot;
    index number; ///< of the cell, in file order
    index fileId;
};

/// The words by which `from` finds `to` on its other side.
index linkBetween(const Side &from, const Side &to) {
    const bool first = from.number != to.number ? from.number < to.number : from.slot < to.slot;
    return FaceLink{to.cell, to.slot, 0, first}.pack();
}

constexpr index sideWords = 6;

void writeSide(const FaceKey &key, const Side &side, index *words) {
    words[0] = static_cast<index>(key.hash);
    words[1] = key.least;
    words[2] = side.cell;
    words[3] = side.slot;
    words[4] = side.number;
    words[5] = side.fileId;
}

/// Sides that came to the rank where they meet.
struct MeetingSides {
    std::vector<FaceKey> keys;
    std::vector<Side> sides;
    std::vector<int> ranks;

    explicit MeetingSides(const RankLists &lists) {
        for (std::size_t k = 0; k < lists.size(); k++)
            for (RecordReader reader(lists.list(k)); !reader.atEnd();) {
                FaceKey key;
                key.hash = static_cast<std::uint64_t>(reader.next());
                key.least = reader.next();
                keys.push_back(key);
                const index cell = reader.next();
                const auto slot = static_cast<int>(reader.next());
                const index number = reader.next();
                sides.push_back({cell, slot, number, reader.next()});
                ranks.push_back(lists.ranks[k]);
            }
    }
};

/// For each side that met another, the other. Clears `manifold` where three meet.
std::vector<index> matchSides(const MeetingSides &meeting, bool &manifold) {
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

/// Sends the faces for which `wanted(face)` holds to the ranks where they meet. Collective.
template <class Wanted>
RankLists sendSides(CommunicatorContext &context, const CellRecords &cells, index firstCell, const OwnFaces &faces,
                    Wanted &&wanted, const std::exception_ptr &failure) {
    const int ranks = context.comm().size();
    return sparseExchange(
        context,
        packByRank(
            ranks, faces.keys.size(), [&](std::size_t f) { return wanted(f) ? meetingRank(faces.keys[f], ranks) : -1; },
            [](std::size_t) { return sideWords; },
            [&](std::size_t f, index *words) {
                const auto c = static_cast<std::size_t>(faces.cells[f]);
                writeSide(faces.keys[f],
                          {firstCell + faces.cells[f], static_cast<int>(static_cast<index>(f) - cells.linkStarts[c]),
                           cells.numbers[c], cells.fileIds[c]},
                          words);
            }),
        PeerDiscovery::Auto, failure);
}

/// Links faces whose two cells are both here. Clears `manifold` where three share one.
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

/// What the source's marked faces say: [marks] of key, mark and file id.
RankLists sendMarks(CommunicatorContext &context, const ElementBlock &block, std::span<const int> marks,
                    const std::vector<index> &chosen) {
    const int ranks = context.comm().size();
    const auto keyOf = [&](std::size_t i) {
        const index face = chosen[i];
        return faceKey(distinctCorners(cornerNodes(block.types[toSize(face)], block.nodesOf(face))));
    };
    return sparseExchange(context,
                          packByRank(
                              ranks, chosen.size(), [&](std::size_t i) { return meetingRank(keyOf(i), ranks); },
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

/// Brings marked faces and cells' faces together; returns those of `chosen` that found no cell. Collective.
template <class Wanted>
std::vector<index> joinMarks(const GlobalMapping &cellMapping, CellRecords &cells, const OwnFaces &faces,
                             const SourceMesh &source, const std::vector<index> &chosen, Wanted &&wanted) {
    CommunicatorContext &context = *cellMapping.context();
    const int ranks = context.comm().size();
    const MeetingSides meeting(
        sendSides(context, cells, cellMapping.localBegin(), faces, std::forward<Wanted>(wanted), nullptr));
    const RankLists marks = sendMarks(context, source.faces, source.faceMarks, chosen);

    // Sides of one key are chained: an inner face has two.
    FaceTable table(meeting.keys);
    std::vector<index> next(meeting.keys.size(), -1);
    for (std::size_t i = 0; i < next.size(); i++)
        if (const index found = table.findOrAdd(static_cast<index>(i)); found >= 0)
            next[toSize(found)] = static_cast<index>(i);
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

/// For each of `nodes`, the marks that the source gives it: CSR. Collective.
struct NodeMarks {
    std::vector<index> starts{0};
    std::vector<int> marks;
};

NodeMarks fetchNodeMarks(const GlobalMapping &blocks, const SourceMesh &source, std::span<const index> nodes) {
    CommunicatorContext &context = *blocks.context();
    const int ranks = context.comm().size();
    const RankLists sent =
        sparseExchange(context, packByRank(
                                    ranks, source.nodeMarks.size(),
                                    [&](std::size_t i) { return blocks.owner(source.nodeMarks[i].node).rank; },
                                    [](std::size_t) { return 2; },
                                    [&](std::size_t i, index *words) {
                                        words[0] = source.nodeMarks[i].node;
                                        words[1] = source.nodeMarks[i].mark;
                                    }));
    std::vector<std::pair<index, int>> table;
    for (RecordReader reader(sent.values); !reader.atEnd();) {
        const index node = reader.next();
        table.emplace_back(node, static_cast<int>(reader.next()));
    }
    std::sort(table.begin(), table.end());
    table.erase(std::unique(table.begin(), table.end()), table.end());
    std::vector<std::vector<int>> found(nodes.size());
    askRanks(
        context, nodes.size(), [&](std::size_t i) { return blocks.owner(nodes[i]).rank; },
        [&](std::size_t i) { return nodes[i]; },
        [&](index node, std::vector<index> &reply) {
            const auto begin =
                std::lower_bound(table.begin(), table.end(), std::pair{node, std::numeric_limits<int>::min()});
            const auto end = std::lower_bound(begin, table.end(), std::pair{node + 1, std::numeric_limits<int>::min()});
            reply.push_back(end - begin);
            for (auto it = begin; it != end; ++it)
                reply.push_back(it->second);
        },
        [&](std::size_t i, RecordReader &reader) {
            for (index count = reader.next(); count > 0; count--)
                found[i].push_back(static_cast<int>(reader.next()));
        });
    NodeMarks result;
    for (const std::vector<int> &marks : found) {
        result.marks.insert(result.marks.end(), marks.begin(), marks.end());
        result.starts.push_back(static_cast<index>(result.marks.size()));
    }
    return result;
}

/// Marks boundary faces all of whose corners have a mark. Collective.
void markByNodes(const GlobalMapping &blocks, CellRecords &cells, const SourceMesh &source) {
    if (blocks.context()->comm().allReduce(source.nodeMarks.empty() ? 0 : 1, MPI_MAX) == 0)
        return;
    NumberTable nodes;
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
    const NodeMarks marks = fetchNodeMarks(blocks, source, nodes.numbers());
    const auto marksOf = [&](index node) {
        const auto at = static_cast<std::size_t>(nodes.find(node));
        return std::span<const int>(marks.marks)
            .subspan(toSize(marks.starts[at]), toSize(marks.starts[at + 1] - marks.starts[at]));
    };
    std::vector<int> common;
    std::vector<int> rest;
    forEachBoundaryFace([&](index c, int slot, std::span<const index> corners) {
        const auto start = marksOf(corners[0]);
        common.assign(start.begin(), start.end());
        for (const index node : corners.subspan(1)) {
            rest.clear();
            std::ranges::set_intersection(common, marksOf(node), std::back_inserter(rest));
            common.swap(rest);
        }
        for (const int mark : common)
            cells.marks.push_back({c, slot, mark, 0});
    });
}

/// Three cells of one face.
struct SharedFace {
    std::array<index, 3> numbers; ///< in file order, ascending
    std::array<index, 3> fileIds;
};

/// Of the faces that meet here and have three cells or more, the one whose cells come first in the file; numbers past
/// all others where there is none.
SharedFace firstShared(const MeetingSides &meeting) {
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

void throwNonManifold(CommunicatorView comm, const CellRecords &cells, const std::string &origin) {
    const auto mapping = GlobalMapping::create(comm, cells.size());
    std::vector<FaceKey> keys;
    std::vector<Side> sides;
    for (index c = 0; c < cells.size(); c++)
        forEachFace(cells.types[toSize(c)], cells.nodesOf(c), [&](std::span<const index> corners) {
            keys.push_back(faceKey(corners));
            sides.push_back({mapping->localBegin() + c, 0, cells.numbers[toSize(c)], cells.fileIds[toSize(c)]});
        });
    const SharedFace mine = firstShared(MeetingSides(
        sparseExchange(*mapping->context(),
                       packByRank(
                           comm.size(), keys.size(), [&](std::size_t i) { return meetingRank(keys[i], comm.size()); },
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

void linkFaces(CommunicatorView comm, CellRecords &cells, const std::string &origin) {
    const auto mapping = GlobalMapping::create(comm, cells.size());
    CommunicatorContext &context = *mapping->context();
    const index firstCell = mapping->localBegin();
    OwnFaces faces;
    std::exception_ptr failure;
    bool manifold = true;
    const auto needManifold = [&] {
        if (comm.allReduce(manifold ? 1 : 0, MPI_MIN) == 0)
            throwNonManifold(comm, cells, origin);
    };
    try {
        faces = listFaces(cells);
        linkOwnFaces(cells, firstCell, faces, manifold);
    } catch (...) {
        failure = std::current_exception();
    }
    if (comm.size() == 1) {
        comm.agree(failure);
        needManifold();
        return;
    }
    // A third cell of a face whose other two met on their rank looks like one at the boundary: see checkManifold.
    const MeetingSides meeting(sendSides(
        context, cells, firstCell, faces, [&](std::size_t f) { return cells.links[f] == FaceLink::none; }, failure));
    std::vector<index> partner;
    std::exception_ptr mine;
    try {
        partner = matchSides(meeting, manifold);
    } catch (...) {
        mine = std::current_exception();
    }
    const RankLists answers = sparseExchange(
        context,
        packByRank(
            comm.size(), partner.size(), [&](std::size_t i) { return partner[i] < 0 ? -1 : meeting.ranks[i]; },
            [](std::size_t) { return 3; },
            [&](std::size_t i, index *words) {
                words[0] = meeting.sides[i].cell;
                words[1] = meeting.sides[i].slot;
                words[2] = linkBetween(meeting.sides[i], meeting.sides[toSize(partner[i])]);
            }),
        PeerDiscovery::Auto, mine);
    for (RecordReader reader(answers.values); !reader.atEnd();) {
        const index cell = reader.next() - firstCell;
        const index at = cells.linkStarts[toSize(cell)] + reader.next();
        cells.links[toSize(at)] = reader.next();
    }
    needManifold();
}

Finding markFaces(const GlobalMapping &nodeBlocks, CellRecords &cells, const SourceMesh &source) {
    const CommunicatorView &comm = nodeBlocks.context()->comm();
    const auto cellMapping = GlobalMapping::create(comm, cells.size());
    Finding lost;
    if (source.faces.globalSize > 0) {
        std::vector<index> chosen(toSize(source.faces.size()));
        std::iota(chosen.begin(), chosen.end(), index{0});
        const OwnFaces faces = listFaces(cells);
        // Nearly all marked faces are on the boundary. Only where some are not do the inner ones meet them, too.
        chosen = joinMarks(*cellMapping, cells, faces, source, chosen,
                           [&](std::size_t f) { return cells.links[f] == FaceLink::none; });
        if (comm.allReduce(chosen.empty() ? 0 : 1, MPI_MAX) != 0)
            chosen = joinMarks(*cellMapping, cells, faces, source, chosen,
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

DistributedGraph dualGraph(const CellRecords &cells, index firstCell) {
    DistributedGraph graph;
    graph.starts.reserve(toSize(cells.size()) + 1);
    graph.neighbours.reserve(cells.links.size());
    for (index c = 0; c < cells.size(); c++) {
        const auto begin = static_cast<std::ptrdiff_t>(graph.neighbours.size());
        for (const index word : cells.linksOf(c))
            if (word != FaceLink::none)
                if (const index other = FaceLink::unpack(word).cell; other != firstCell + c)
                    graph.neighbours.push_back(other);
        std::sort(graph.neighbours.begin() + begin, graph.neighbours.end());
        graph.neighbours.erase(std::unique(graph.neighbours.begin() + begin, graph.neighbours.end()),
                               graph.neighbours.end());
        graph.starts.push_back(static_cast<index>(graph.neighbours.size()));
    }
    return graph;
}

} // namespace DNDS::Geom
