#include "DNDS/Geom/Write/WriteMesh.hpp"

#include "DNDS/Geom/File/ElementBlocks.hpp"
#include "DNDS/Geom/Mesh/CellNodes.hpp"
#include "DNDS/Geom/Source/ElementType.hpp"
#include "DNDS/Geom/Source/NumberTable.hpp"
#include "DNDS/Mpi/EvenSplit.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <algorithm>

namespace DNDS::Geom {

namespace {

/// The split of the file's numbers into blocks, one a rank, up to the largest number in use. Collective; one reduction.
/// Cells use all numbers; unused nodes leave gaps, which sendNodes closes.
EvenSplit blocksOf(CommunicatorView comm, const MeshEntities &entities) {
    index last = -1;
    for (index i = 0; i < entities.owned; i++)
        last = std::max(last, entities.fileNumbers[toSize(i)]);
    return {comm.allReduce(last, MPI_MAX) + 1, comm.size()};
}

// [owned] the rank whose block has each entity.
std::vector<int> ranksOf(const EvenSplit &blocks, const MeshEntities &entities) {
    std::vector<int> ranks(toSize(entities.owned));
    for (std::size_t i = 0; i < ranks.size(); i++)
        ranks[i] = blocks.owner(entities.fileNumbers[i]);
    return ranks;
}

/// The sorting permutation: entry k is the position of the k-th smallest number. Numbers are distinct.
std::vector<std::size_t> ascending(const std::vector<index> &numbers) {
    std::vector<std::size_t> order(numbers.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return numbers[a] < numbers[b]; });
    return order;
}

// The position of each entry in the sorted list.
std::vector<index> inversePermutation(const std::vector<std::size_t> &order) {
    std::vector<index> places(order.size());
    for (std::size_t k = 0; k < order.size(); k++)
        places[order[k]] = static_cast<index>(k);
    return places;
}

/// The element type of a face with this many corners.
ElementType faceType(int dimension, std::size_t corners) {
    if (dimension == 2)
        return ElementType::Bar2;
    return corners == 3 ? ElementType::Tri3 : corners == 4 ? ElementType::Quad4 : ElementType::Polygon;
}

/// A boundary face and one of its marks.
struct MarkedFace {
    LocalIndex face;
    int mark;
};

/// Each owned face once for each of its marks. `periodicMarks` has owned faces only, and the last patch, "unassigned",
/// is no mark of the source.
std::vector<MarkedFace> markedFaces(const UnstructuredMesh &mesh) {
    std::vector<MarkedFace> faces;
    for (std::size_t p = 0; p + 1 < mesh.patches.size(); p++)
        for (const LocalIndex face : mesh.patches[p].faces)
            if (face < mesh.faces.owned)
                faces.push_back({face, static_cast<int>(p)});
    for (const auto &[face, mark] : mesh.periodicMarks)
        faces.push_back({face, mark});
    return faces;
}

} // namespace

// Nodes first, since cells and faces need their new numbers. The last patch, "unassigned", is not in the file.
FileOrder::FileOrder(const UnstructuredMesh &mesh) {
    failTogether(mesh.comm, [&] {
        context_ = CommunicatorContext::of(mesh.comm);
        source_.origin = mesh.origin;
        source_.cellDimension = mesh.dimension;
        source_.periodic = mesh.periodic;
        for (std::size_t p = 0; p + 1 < mesh.patches.size(); p++)
            source_.patches.push_back({mesh.patches[p].name, mesh.patches[p].kind, mesh.patches[p].family});
        sendNodes(mesh);
        sendCells(mesh);
        sendFaces(mesh);
    });
}

/// Unused nodes leave gaps in the file's numbers, which `numberNodes` closes: each rank then asks the blocks' ranks for
/// the new numbers of all its nodes, ghosts and images included. One exchange of 4 words a node, and one query.
void FileOrder::sendNodes(const UnstructuredMesh &mesh) {
    const EvenSplit blocks = blocksOf(mesh.comm, mesh.nodes);
    nodes_.ranks = ranksOf(blocks, mesh.nodes);
    const auto coordinates = mesh.coordinates.view();
    struct Placed {
        index number;
        Point point;
    };
    const std::vector<Placed> placed = exchangeRecords(
        *context_, nodes_.ranks.size(), [&](std::size_t i) { return nodes_.ranks[i]; },
        [&](std::size_t i) {
            const auto node = static_cast<index>(i);
            return Placed{mesh.nodes.fileNumbers[i],
                          {coordinates(node, 0), coordinates(node, 1), coordinates(node, 2)}};
        });
    std::vector<index> numbers;
    for (const Placed &node : placed)
        numbers.push_back(node.number);
    // Sorted by file number, the block does not depend on the ranks that sent its nodes.
    const std::vector<std::size_t> order = ascending(numbers);
    nodes_.places = inversePermutation(order);
    std::vector<index> present;
    for (const std::size_t k : order) {
        present.push_back(numbers[k]);
        source_.coordinates.push_back(placed[k].point);
    }
    numberNodes(mesh.comm, source_);
    newNumbers_.resize(toSize(mesh.nodes.size()));
    queryOwners(
        *context_, newNumbers_.size(), [&](std::size_t i) { return blocks.owner(mesh.nodes.fileNumbers[i]); },
        [&](std::size_t i) { return mesh.nodes.fileNumbers[i]; },
        [&](index number, std::vector<index> &reply) {
            const auto found = std::lower_bound(present.begin(), present.end(), number);
            reply.push_back(source_.firstNode + (found - present.begin()));
        },
        [&](std::size_t i, RecordReader &reader) { newNumbers_[i] = reader.next(); });
}

/// Words: number, number in the zone, type, number of nodes, nodes by their new numbers. Received rows stay in
/// `incoming` until they are appended in order: no cell is copied twice.
void FileOrder::sendCells(const UnstructuredMesh &mesh) {
    cells_.ranks = ranksOf(blocksOf(mesh.comm, mesh.cells), mesh.cells);
    std::vector<index> starts{0};
    std::vector<index> nodes;
    for (index c = 0; c < mesh.cells.owned; c++) {
        appendCellNodes(mesh, c, newNumbers_, nodes);
        starts.push_back(static_cast<index>(nodes.size()));
    }
    const RankLists outgoing = packByRank(
        mesh.comm.size(), cells_.ranks.size(), [&](std::size_t c) { return cells_.ranks[c]; },
        [&](std::size_t c) { return 4 + starts[c + 1] - starts[c]; },
        [&](std::size_t c, index *words) {
            *words++ = mesh.cells.fileNumbers[c];
            *words++ = mesh.cells.fileIds[c];
            *words++ = static_cast<index>(mesh.cellTypes[c]);
            *words++ = starts[c + 1] - starts[c];
            std::copy(nodes.begin() + starts[c], nodes.begin() + starts[c + 1], words);
        });
    const RankLists incoming = sparseExchange(*context_, outgoing);
    // Refers to the received words.
    struct Cell {
        index fileId;
        ElementType type;
        std::span<const index> nodes;
    };
    std::vector<index> numbers;
    std::vector<Cell> cells;
    for (RecordReader reader(incoming.values); !reader.atEnd();) {
        numbers.push_back(reader.next());
        const index fileId = reader.next();
        const auto type = static_cast<ElementType>(reader.next());
        cells.push_back({fileId, type, reader.next(reader.next())});
    }
    const std::vector<std::size_t> order = ascending(numbers);
    cells_.places = inversePermutation(order);
    for (const std::size_t k : order)
        appendElement(source_.cells, cells[k].type, cells[k].nodes, cells[k].fileId);
    numberBlock(mesh.comm, source_.cells);
}

/// Faces go with their first cell and are sorted by it, then by nodes and mark: an order that no partition changes,
/// since the first cell and the first corner of a face do not depend on it (LocalFaces.cpp). Without ghost layers the
/// first cell of a face inside the mesh may be on another rank: the second one then takes its place.
/// O(own marked faces) words in one exchange; O(n log n) to sort n received faces. The key (cell, nodes, mark) is
/// unique, so the order is total.
void FileOrder::sendFaces(const UnstructuredMesh &mesh) {
    const EvenSplit blocks = blocksOf(mesh.comm, mesh.cells);
    const std::vector<MarkedFace> faces = markedFaces(mesh);
    const auto faceNodes = mesh.faceNodes.view();
    const auto faceCells = mesh.faceCells.view();
    const auto cellOf = [&](std::size_t i) {
        const LocalIndex first = faceCells(faces[i].face, 0);
        return mesh.cells.fileNumbers[toSize(first >= 0 ? first : faceCells(faces[i].face, 1))];
    };
    const RankLists outgoing = packByRank(
        mesh.comm.size(), faces.size(), [&](std::size_t i) { return blocks.owner(cellOf(i)); },
        [&](std::size_t i) { return 4 + static_cast<index>(faceNodes[faces[i].face].size()); },
        [&](std::size_t i, index *words) {
            const auto corners = faceNodes[faces[i].face];
            *words++ = cellOf(i);
            *words++ = faces[i].mark;
            *words++ = mesh.faces.fileIds[static_cast<std::size_t>(faces[i].face)];
            *words++ = static_cast<index>(corners.size());
            for (const LocalIndex node : corners)
                *words++ = newNumbers_[static_cast<std::size_t>(node)];
        });
    const RankLists incoming = sparseExchange(*context_, outgoing);
    struct Face {
        index cell;
        std::span<const index> nodes;
        int mark;
        index fileId;
    };
    std::vector<Face> sorted;
    for (RecordReader reader(incoming.values); !reader.atEnd();) {
        const index cell = reader.next();
        const int mark = static_cast<int>(reader.next());
        const index fileId = reader.next();
        sorted.push_back({cell, reader.next(reader.next()), mark, fileId});
    }
    std::sort(sorted.begin(), sorted.end(), [](const Face &a, const Face &b) {
        if (a.cell != b.cell)
            return a.cell < b.cell;
        if (!std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end()))
            return std::lexicographical_compare(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end());
        return a.mark < b.mark;
    });
    for (const Face &face : sorted) {
        appendElement(source_.faces, faceType(mesh.dimension, face.nodes.size()), face.nodes, face.fileId);
        source_.faceMarks.push_back(face.mark);
    }
    numberBlock(mesh.comm, source_.faces);
}

/// Values arrive in the order of sending, which `places` undoes: no numbers are sent with them.
/// One exchange of `components` words a row, without numbers: `places` was made from the same lists of senders,
/// which arrive in ascending order of ranks each time.
std::vector<real> FileOrder::sendValues(const Route &route, std::span<const real> owned, int components) const {
    const CommunicatorView comm = context_->comm();
    comm.guarded([&] {
        DNDS_CHECK(components > 0 && owned.size() == route.ranks.size() * static_cast<std::size_t>(components),
                   ArgumentError, "{} values are given for {} rows of {} components", owned.size(), route.ranks.size(),
                   components);
    });
    const auto width = static_cast<std::size_t>(components);
    const RankLists outgoing = packByRank(
        comm.size(), route.ranks.size(), [&](std::size_t i) { return route.ranks[i]; },
        [&](std::size_t) { return components; },
        [&](std::size_t i, index *words) {
            for (std::size_t k = 0; k < width; k++)
                words[k] = packReal(owned[i * width + k]);
        });
    const RankLists incoming = sparseExchange(*context_, outgoing);
    std::vector<real> values(incoming.values.size());
    RecordReader reader(incoming.values);
    for (const index place : route.places)
        for (std::size_t k = 0; k < width; k++)
            values[toSize(place) * width + k] = reader.nextReal();
    return values;
}

std::vector<real> FileOrder::cellValues(std::span<const real> owned, int components) const {
    return failTogether(comm(), [&] { return sendValues(cells_, owned, components); });
}

std::vector<real> FileOrder::nodeValues(std::span<const real> owned, int components) const {
    return failTogether(comm(), [&] { return sendValues(nodes_, owned, components); });
}

namespace {

/// One query for each owned entity at the rank of its block. These blocks are those of the values, which have a row for
/// each node of the file, unused ones included.
/// O(own entities x components) words.
std::vector<real> takeValues(const UnstructuredMesh &mesh, const MeshEntities &entities,
                             std::span<const real> blockValues, int components) {
    const auto width = static_cast<std::size_t>(components);
    mesh.comm.guarded([&] {
        DNDS_CHECK(components > 0 && blockValues.size() % width == 0, ArgumentError,
                   "{} values in rows of {} components", blockValues.size(), components);
    });
    const auto blocks = GlobalMapping::create(mesh.comm, static_cast<index>(blockValues.size() / width));
    mesh.comm.guarded([&] {
        for (index i = 0; i < entities.owned; i++)
            DNDS_CHECK(entities.fileNumbers[toSize(i)] >= 0 && entities.fileNumbers[toSize(i)] < blocks->globalSize(),
                       ArgumentError, "{} rows of values are given, but an entity has number {} in the file",
                       blocks->globalSize(), entities.fileNumbers[toSize(i)]);
    });
    std::vector<real> values(toSize(entities.owned) * width);
    queryOwners(
        *blocks->context(), toSize(entities.owned),
        [&](std::size_t i) { return blocks->owner(entities.fileNumbers[i]).rank; },
        [&](std::size_t i) { return entities.fileNumbers[i]; },
        [&](index number, std::vector<index> &reply) {
            const std::size_t row = toSize(number - blocks->localBegin());
            for (std::size_t k = 0; k < width; k++)
                reply.push_back(packReal(blockValues[row * width + k]));
        },
        [&](std::size_t i, RecordReader &reader) {
            for (std::size_t k = 0; k < width; k++)
                values[i * width + k] = reader.nextReal();
        });
    return values;
}

} // namespace

std::vector<real> takeFromFileOrder(const UnstructuredMesh &mesh, const MeshEntities &entities,
                                    std::span<const real> blockValues, int components) {
    return failTogether(mesh.comm, [&] { return takeValues(mesh, entities, blockValues, components); });
}

} // namespace DNDS::Geom
