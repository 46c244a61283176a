#include "DNDS/Geom/Source/CellRecords.hpp"

#include "DNDS/Geom/Source/NumberTable.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <algorithm>

namespace DNDS::Geom {

namespace {

// Words before the nodes: number, file id, type with the number of nodes (8 and 55 bits), number of links.
constexpr index headWords = 4;

} // namespace

/// A mark names its cell by the position on this rank, which is meaningless elsewhere: it travels with a key that
/// both sides know. One sparse exchange of 4 words a mark.
std::vector<FaceMark> moveMarks(CommunicatorContext &context, std::span<const FaceMark> marks,
                                std::span<const int> part, const std::function<index(index)> &keyOf,
                                const std::function<index(index)> &cellOf) {
    std::vector<FaceMark> result = exchangeRecords(
        context, marks.size(), [&](std::size_t i) { return part[toSize(marks[i].cell)]; },
        [&](std::size_t i) {
            FaceMark mark = marks[i];
            mark.cell = keyOf(mark.cell);
            return mark;
        });
    for (FaceMark &mark : result)
        mark.cell = cellOf(mark.cell);
    std::sort(result.begin(), result.end());
    return result;
}

// Words of the record of a cell, the head included.
index cellRecordSize(const CellRecords &cells, index cell) {
    return headWords + static_cast<index>(cells.nodesOf(cell).size()) +
           (cells.links.empty() ? 0 : static_cast<index>(cells.linksOf(cell).size()));
}

// Head, nodes, links; the head has the lengths of both lists.
void writeCellRecord(const CellRecords &cells, index cell, index *words) {
    const auto nodes = cells.nodesOf(cell);
    const auto links = cells.links.empty() ? std::span<const index>() : cells.linksOf(cell);
    *words++ = cells.numbers[toSize(cell)];
    *words++ = cells.fileIds[toSize(cell)];
    *words++ = (static_cast<index>(nodes.size()) << 8) | static_cast<index>(cells.types[toSize(cell)]);
    *words++ = static_cast<index>(links.size());
    words = std::copy(nodes.begin(), nodes.end(), words);
    std::copy(links.begin(), links.end(), words);
}

// The same for a received record, from its head.
index cellRecordSize(std::span<const index> words) { return headWords + (words[2] >> 8) + words[3]; }

/// The inverse of writeCellRecord. Cells without links get an empty row, so that `linkStarts` stays aligned with cells.
void appendCell(CellRecords &cells, std::span<const index> record) {
    const auto nodes = record.subspan(headWords, toSize(record[2] >> 8));
    const auto links = record.subspan(headWords + nodes.size(), toSize(record[3]));
    cells.numbers.push_back(record[0]);
    cells.fileIds.push_back(record[1]);
    cells.types.push_back(static_cast<ElementType>(record[2] & 0xff));
    cells.nodes.insert(cells.nodes.end(), nodes.begin(), nodes.end());
    cells.nodeStarts.push_back(static_cast<index>(cells.nodes.size()));
    cells.links.insert(cells.links.end(), links.begin(), links.end());
    cells.linkStarts.push_back(static_cast<index>(cells.links.size()));
}

/// Records of variable length are packed by destination, exchanged, indexed and sorted: O(n log n) for n arriving
/// cells. Sorting by (key, file number) makes the result independent of the order of arrival and of the number of
/// ranks that sent.
/// `at` steps from record to record, as each tells its own length; one word of key precedes it. One exchange for
/// cells, one for marks.
MigratedCells migrateCells(CommunicatorContext &context, CellRecords &&cells, std::span<const int> part,
                           std::span<const index> keys) {
    RankLists received;
    {
        RankLists outgoing = packByRank(
            context.comm().size(), toSize(cells.size()), [&](std::size_t i) { return part[i]; },
            [&](std::size_t i) { return 1 + cellRecordSize(cells, static_cast<index>(i)); },
            [&](std::size_t i, index *words) {
                words[0] = keys[i];
                writeCellRecord(cells, static_cast<index>(i), words + 1);
            });
        // Frees the cells before the exchange: at most two copies of them, here and in messages, exist at any time.
        CellRecords kept; // keeps only what marks need
        kept.marks = std::move(cells.marks);
        cells = std::move(kept);
        received = sparseExchange(context, outgoing);
    }
    // Sorting small entries that point to records is cheaper than moving these.
    struct Arrival {
        index key;
        index number;
        index at;
    };
    std::vector<Arrival> order;
    std::size_t nodes = 0;
    std::size_t links = 0;
    const std::span<const index> words(received.values);
    for (index at = 0; at < static_cast<index>(words.size()); at += 1 + cellRecordSize(words.subspan(toSize(at) + 1))) {
        order.push_back({words[toSize(at)], words[toSize(at) + 1], at});
        nodes += toSize(words[toSize(at) + 3] >> 8);
        links += toSize(words[toSize(at) + 4]);
    }
    std::sort(order.begin(), order.end(),
              [](const Arrival &a, const Arrival &b) { return a.key != b.key ? a.key < b.key : a.number < b.number; });
    MigratedCells result;
    result.keys.reserve(order.size());
    result.cells.numbers.reserve(order.size());
    result.cells.fileIds.reserve(order.size());
    result.cells.types.reserve(order.size());
    result.cells.nodeStarts.reserve(order.size() + 1);
    result.cells.linkStarts.reserve(order.size() + 1);
    result.cells.nodes.reserve(nodes);
    result.cells.links.reserve(links);
    // Room for everything was reserved, so memory is taken once.
    for (const Arrival &arrival : order) {
        const auto record = words.subspan(toSize(arrival.at) + 1);
        result.keys.push_back(arrival.key);
        appendCell(result.cells, record.first(toSize(cellRecordSize(record))));
    }
    // Marks name their cell by its key: where marks exist, keys are distinct (global numbers). Curve keys may tie, but
    // they sort cells only before faces are marked.
    result.cells.marks = moveMarks(
        context, cells.marks, part, [&](index cell) { return keys[toSize(cell)]; },
        [&](index key) { return std::lower_bound(result.keys.begin(), result.keys.end(), key) - result.keys.begin(); });
    return result;
}

/// Cells that this rank has received know their new numbers from `moved`. Others are asked for once each at the
/// owners of their old numbers.
/// O(links) time on average; messages: one query for distinct cells elsewhere, those at the new partition border.
void renumberLinks(CellRecords &cells, const Redistribute &moved) {
    NumberTable known(moved.oldNumbers());
    // First pass: links to cells here, and a list of the others.
    std::vector<index> places; // of links whose cell is elsewhere
    NumberTable elsewhere;
    for (std::size_t i = 0; i < cells.links.size(); i++) {
        if (cells.links[i] == FaceLink::none)
            continue;
        FaceLink link = FaceLink::unpack(cells.links[i]);
        if (const LocalIndex here = known.find(link.cell); here != NumberTable::none) {
            link.cell = moved.after()->localBegin() + here;
            cells.links[i] = link.pack();
        } else {
            elsewhere.add(link.cell);
            places.push_back(static_cast<index>(i));
        }
    }
    const std::vector<index> found = moved.newNumbers(elsewhere.numbers());
    for (const index place : places) {
        FaceLink link = FaceLink::unpack(cells.links[toSize(place)]);
        link.cell = found[static_cast<std::size_t>(elsewhere.find(link.cell))];
        cells.links[toSize(place)] = link.pack();
    }
}

} // namespace DNDS::Geom
