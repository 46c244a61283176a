#include "DNDS/Geom/Cgns/WrittenElements.hpp"

#include "DNDS/Geom/File/ElementBlocks.hpp"
#include "DNDS/Geom/Source/CsrLists.hpp"
#include "DNDS/Geom/Source/ElementFaces.hpp"
#include "DNDS/Geom/Source/IndexPermutation.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace DNDS::Geom::Detail {

namespace {

// ---------------------------------------------------------------------------------------------------------------------
// The numbers of the faces of polyhedral cells, without duplicates

/// All faces of the mesh are faces of cells; a boundary face is one of them.
struct NumberedFaces {
    index globalSize = 0;          ///< different faces
    std::vector<index> ofCells;    ///< [own faces of cells]: the face's number, from 0
    std::vector<bool> listedFirst; ///< [own faces of cells]: whether no cell lists the face earlier
    std::vector<index> ofBoundary; ///< [own faces of the boundary]
};

/// A use of a face, by a cell or by the boundary. All uses are numbered: uses by cells first, rank by rank.
/// 8 bytes a rank, the same on all ranks, so `rankOf` needs no message: O(log ranks).
struct Uses {
    std::vector<index> cellStarts; ///< [ranks + 1]
    index boundaryFirst;           ///< number of this rank's first use by the boundary

    index cells() const { return cellStarts.back(); }
    int rankOf(index use) const {
        return static_cast<int>(std::upper_bound(cellStarts.begin(), cellStarts.end(), use) - cellStarts.begin()) - 1;
    }
};

// One gather of counts and one scan: O(ranks) memory, small beside the faces.
Uses numberUses(CommunicatorView comm, std::size_t ofCells, std::size_t ofBoundary) {
    Uses uses;
    uses.cellStarts.push_back(0);
    for (const index count : comm.allGather(static_cast<index>(ofCells)))
        uses.cellStarts.push_back(uses.cellStarts.back() + count);
    uses.boundaryFirst = uses.cells() + comm.exclusiveScan(static_cast<index>(ofBoundary));
    return uses;
}

/// A record is the use's number, the number of corners and the corners, ascending; it goes to a rank chosen by them.
/// Faces with the same corners meet at one rank, whichever cells list them.
/// O(corners log corners) a face. Keys are sent whole, so faces are compared exactly and a collision of hashes only
/// costs time.
void address(const CsrLists<index> &faces, index firstUse, int ranks, Outbox &outbox) {
    std::vector<index> key;
    for (std::size_t f = 0; f < faces.size(); f++) {
        key.assign(faces[f].begin(), faces[f].end());
        std::sort(key.begin(), key.end());
        std::uint64_t hash = 0;
        for (const index corner : key)
            hash = mixBits(hash ^ static_cast<std::uint64_t>(corner));
        std::vector<index> &list = outbox.to(static_cast<int>(hash % static_cast<std::uint64_t>(ranks)));
        list.insert(list.end(), {firstUse + static_cast<index>(f), static_cast<index>(key.size())});
        list.insert(list.end(), key.begin(), key.end());
    }
}

/// The position of a record in a list, and its sender.
struct Record {
    const index *at;
    int sender;

    index use() const { return at[0]; }
    std::span<const index> key() const { return {at + 2, static_cast<std::size_t>(at[1])}; }
};

/// Answers each record with the lowest use of its face: pairs of use and lowest use.
/// Sorts by corners, then by use: a group starts with its lowest use, which must be by a cell, and has at most two
/// uses by cells. O(n log n).
RankLists findFirst(const RankLists &received, index cellUses, const std::string &origin) {
    std::vector<Record> records;
    for (std::size_t k = 0; k < received.size(); k++) {
        const std::span<const index> list = received.list(k);
        for (std::size_t i = 0; i < list.size(); i += 2 + static_cast<std::size_t>(list[i + 1]))
            records.push_back({list.data() + i, received.ranks[k]});
    }
    std::sort(records.begin(), records.end(), [](const Record &a, const Record &b) {
        return std::ranges::equal(a.key(), b.key()) ? a.use() < b.use()
                                                    : std::ranges::lexicographical_compare(a.key(), b.key());
    });
    Outbox answers;
    std::size_t first = 0;
    for (std::size_t k = 0; k < records.size(); k++) {
        const auto key = records[k].key();
        if (!std::ranges::equal(key, records[first].key()))
            first = k;
        DNDS_CHECK(records[first].use() < cellUses, DataError,
                   "{}: the boundary face of nodes {} and {} belongs to no cell", origin, key[0] + 1, key[1] + 1);
        DNDS_CHECK(k < first + 2 || records[k].use() >= cellUses, DataError,
                   "{}: more than two cells share the face of nodes {} and {}", origin, key[0] + 1, key[1] + 1);
        std::vector<index> &answer = answers.to(records[k].sender);
        answer.insert(answer.end(), {records[k].use(), records[first].use()});
    }
    return answers.take();
}

/// Faces are lists of their corners, global nodes. They are equal if they have the same corners in any order; they are
/// numbered in the order in which cells, rank by rank, first list them: the same on any number of ranks. Collective;
/// O(own faces) memory on average, four sparse exchanges. Throws DataError on all ranks, with `origin`, if a face has
/// more than two cells or a boundary face belongs to no cell.
/// A rendezvous by the hash of the corners finds the first use of each face; the ranks of first uses number these by a
/// prefix sum, and the others ask for the numbers. O(own faces log own faces) time on average. Invariant: numbers
/// follow the order of first uses, so they do not depend on the number of ranks.
NumberedFaces numberFaces(CommunicatorContext &context, const CsrLists<index> &ofCells,
                          const CsrLists<index> &ofBoundary, const std::string &origin) {
    const CommunicatorView comm = context.comm();
    const Uses uses = numberUses(comm, ofCells.size(), ofBoundary.size());
    const index firstUse = uses.cellStarts[static_cast<std::size_t>(comm.rank())];
    Outbox outbox;
    address(ofCells, firstUse, comm.size(), outbox);
    address(ofBoundary, uses.boundaryFirst, comm.size(), outbox);
    const RankLists received = sparseExchange(context, outbox.take());
    RankLists answers;
    comm.guarded([&] { answers = findFirst(received, uses.cells(), origin); });
    answers = sparseExchange(context, answers);

    std::vector<index> firstOf(ofCells.size() + ofBoundary.size());
    for (std::size_t i = 0; i < answers.values.size(); i += 2) {
        const index use = answers.values[i];
        const index own =
            use < uses.cells() ? use - firstUse : use - uses.boundaryFirst + static_cast<index>(ofCells.size());
        firstOf[static_cast<std::size_t>(own)] = answers.values[i + 1];
    }

    NumberedFaces result;
    index count = 0;
    for (std::size_t i = 0; i < ofCells.size(); i++) {
        result.listedFirst.push_back(firstOf[i] == firstUse + static_cast<index>(i));
        count += result.listedFirst.back() ? 1 : 0;
    }
    result.globalSize = comm.allReduce(count, MPI_SUM);
    index next = comm.exclusiveScan(count);
    std::vector<index> numbers(firstOf.size(), InvalidIndex);
    for (std::size_t i = 0; i < ofCells.size(); i++)
        if (result.listedFirst[i])
            numbers[i] = next++;
    queryOwners(
        context, numbers.size(),
        [&](std::size_t i) { return numbers[i] == InvalidIndex ? uses.rankOf(firstOf[i]) : -1; },
        [&](std::size_t i) { return firstOf[i]; },
        [&](index use, std::vector<index> &reply) {
            reply.push_back(numbers[static_cast<std::size_t>(use - firstUse)]);
        },
        [&](std::size_t i, RecordReader &reader) { numbers[i] = reader.next(); });
    const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(ofCells.size());
    result.ofCells.assign(numbers.begin(), middle);
    result.ofBoundary.assign(middle, numbers.end());
    return result;
}

// ---------------------------------------------------------------------------------------------------------------------
// The sections

/// A face list may repeat a face with other marks; it becomes an element once.
struct ListedFaces {
    ElementBlock block;
    std::vector<index> elementOf; ///< [own listed faces]: position in `block`
};

/// Only neighbours in the list are compared: a face that is listed again later becomes another element.
/// O(nodes of own faces). A face whose marks two ranks list is written twice, once by each.
ListedFaces uniqueFaces(CommunicatorView comm, const ElementBlock &faces) {
    ListedFaces result;
    for (index f = 0; f < faces.size(); f++) {
        const auto i = static_cast<std::size_t>(f);
        const auto nodes = faces.nodesOf(f);
        // Readers list the marks of a face one after the other, and FileOrder sorts by cell and nodes: copies of a face
        // on one rank follow each other.
        const auto last = result.block.size() > 0 ? result.block.nodesOf(result.block.size() - 1) : nodes.first(0);
        if (!std::equal(nodes.begin(), nodes.end(), last.begin(), last.end()))
            appendElement(result.block, faces.types[i], nodes, faces.fileIds[i]);
        result.elementOf.push_back(result.block.size() - 1);
    }
    numberBlock(comm, result.block);
    return result;
}

/// Appends the faces of a cell, corners only and each once, seen from outside counter-clockwise; returns how many.
index appendFaces(const ElementBlock &cells, index cell, CsrLists<index> &faces) {
    const auto nodes = cells.nodesOf(cell);
    const ElementType type = cells.types[static_cast<std::size_t>(cell)];
    if (type == ElementType::Polyhedron)
        for (std::size_t at = 0; at < nodes.size(); at += static_cast<std::size_t>(nodes[at]) + 1)
            DNDS_CHECK(nodes[at] >= 3 && nodes[at] < static_cast<index>(nodes.size() - at), ArgumentError,
                       "own cell {} lists a face of {} corners", cell, nodes[at]);
    index count = 0;
    forEachFace(type, nodes, [&](std::span<const index> corners) {
        faces.append(corners);
        count++;
    });
    return count;
}

// Whether this rank's part of a block has an element of the type.
bool has(const ElementBlock &block, ElementType type) {
    return std::find(block.types.begin(), block.types.end(), type) != block.types.end();
}

/// With one polyhedron anywhere, all cells are written as polyhedra: the standard has no section of both.
class ElementMaker {
  public:
    ElementMaker(CommunicatorContext &context, const SourceMesh &mesh)
        : context_(context), comm_(context.comm()), mesh_(mesh), faces_(uniqueFaces(comm_, mesh.faces)) {}

    WrittenElements make() {
        if (comm_.allReduce(has(mesh_.cells, ElementType::Polyhedron) ? 1 : 0, MPI_MAX) == 1) {
            makePolyhedralSections();
            return std::move(result_);
        }
        addSection("Cells", mesh_.cells);
        addSection("Faces", faces_.block);
        for (const index element : faces_.elementOf)
            result_.faceElements.push_back(mesh_.cells.globalSize + 1 + faces_.block.first + element);
        return std::move(result_);
    }

  private:
    /// One type, NGON_n if there is a polygon (fixed types become polygons, by their corners), or MIXED.
    /// Three reductions decide the type of the section, so all ranks write the same kind even if their own elements
    /// would fit another.
    void addSection(const char *name, const ElementBlock &block) {
        if (block.globalSize == 0)
            return;
        int lowest = std::numeric_limits<int>::max();
        int highest = 0;
        for (const ElementType type : block.types) {
            lowest = std::min(lowest, static_cast<int>(type));
            highest = std::max(highest, static_cast<int>(type));
        }
        lowest = comm_.allReduce(lowest, MPI_MIN);
        highest = comm_.allReduce(highest, MPI_MAX);
        const bool polygons = comm_.allReduce(has(block, ElementType::Polygon) ? 1 : 0, MPI_MAX) == 1;
        WrittenSection section;
        section.name = name;
        section.elements = block.globalSize;
        section.type = polygons            ? ElementType::Polygon
                       : lowest == highest ? static_cast<ElementType>(lowest)
                                           : ElementType::Mixed;
        for (index e = 0; e < block.size(); e++) {
            // In MIXED sections each element begins with its type.
            if (section.type == ElementType::Mixed)
                section.connectivity.push_back(static_cast<index>(block.types[static_cast<std::size_t>(e)]));
            for (const index node : polygons ? cornerNodes(block.types[toSize(e)], block.nodesOf(e)) : block.nodesOf(e))
                section.connectivity.push_back(node + 1);
            section.starts.push_back(static_cast<index>(section.connectivity.size()));
        }
        result_.sections.push_back(std::move(section));
    }

    /// NGON_n has the faces, each as the first of its cells lists it, outward for this cell: NFACE_n refers to it by a
    /// positive number there and by a negative one from the other cell.
    void makePolyhedralSections() {
        CsrLists<index> ofCells;
        std::vector<index> counts;
        comm_.guarded([&] {
            for (index c = 0; c < mesh_.cells.size(); c++)
                counts.push_back(appendFaces(mesh_.cells, c, ofCells));
        });
        CsrLists<index> ofBoundary;
        for (index f = 0; f < faces_.block.size(); f++)
            ofBoundary.append(distinctCorners(cornerNodes(faces_.block.types[toSize(f)], faces_.block.nodesOf(f))));
        // Each face gets one number, wherever its two cells are.
        const NumberedFaces numbered = numberFaces(context_, ofCells, ofBoundary, mesh_.origin);

        WrittenSection faces;
        faces.name = "Faces";
        faces.type = ElementType::Polygon;
        faces.elements = numbered.globalSize;
        for (std::size_t f = 0; f < ofCells.size(); f++) {
            if (!numbered.listedFirst[f])
                continue;
            for (const index corner : ofCells[f])
                faces.connectivity.push_back(corner + 1);
            faces.starts.push_back(static_cast<index>(faces.connectivity.size()));
        }
        WrittenSection cells;
        cells.name = "Cells";
        cells.type = ElementType::Polyhedron;
        cells.elements = mesh_.cells.globalSize;
        std::size_t f = 0;
        for (const index count : counts) {
            // `f` runs through the faces of all own cells.
            for (const std::size_t end = f + static_cast<std::size_t>(count); f < end; f++)
                cells.connectivity.push_back(numbered.listedFirst[f] ? numbered.ofCells[f] + 1
                                                                     : -(numbered.ofCells[f] + 1));
            cells.starts.push_back(static_cast<index>(cells.connectivity.size()));
        }
        result_.sections.push_back(std::move(faces));
        result_.sections.push_back(std::move(cells));
        for (const index element : faces_.elementOf)
            result_.faceElements.push_back(numbered.ofBoundary[static_cast<std::size_t>(element)] + 1);
    }

    CommunicatorContext &context_;
    CommunicatorView comm_;
    const SourceMesh &mesh_;
    ListedFaces faces_;
    WrittenElements result_;
};

} // namespace

WrittenElements elementsToWrite(CommunicatorContext &context, const SourceMesh &mesh) {
    return ElementMaker(context, mesh).make();
}

} // namespace DNDS::Geom::Detail
