#include "DNDS/Geom/DualGraph.hpp"

#include "DNDS/Mpi/SparseExchange.hpp"
#include "DNDS/Geom/Source/IndexPermutation.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace DNDS::Geom {

namespace {

/// The corners of a face in ascending order, each once, filled up with InvalidIndex: what two cells that share it agree
/// on.
using FaceKey = std::array<index, 4>;

FaceKey faceKey(std::span<const index> cell, const ElementFace &face) {
    FaceKey key;
    key.fill(InvalidIndex);
    const auto corners = static_cast<std::size_t>(face.corners);
    for (std::size_t k = 0; k < corners; k++)
        key[k] = cell[face.corner[k]];
    const auto end = key.begin() + face.corners;
    std::sort(key.begin(), end);
    std::fill(std::unique(key.begin(), end), end, InvalidIndex);
    return key;
}

bool isDegenerate(const FaceKey &key, int dimension) {
    return key[static_cast<std::size_t>(dimension) - 1] == InvalidIndex;
}

std::uint64_t hash(const FaceKey &key) {
    std::uint64_t value = 0;
    for (const index node : key)
        value = mixBits(value ^ static_cast<std::uint64_t>(node));
    return value;
}

int largestFace(const ElementInfo &type) {
    int corners = 0;
    for (const ElementFace &face : type.faces)
        corners = std::max(corners, face.corners);
    return corners;
}

void checkCells(std::span<const index> cellNodes, const ElementInfo &type) {
    DNDS_CHECK(type.dimension >= 2 && type.nodes > 0, ArgumentError,
               "cells of type {} have no faces that the type tells", type.name);
    const auto width = static_cast<std::size_t>(type.nodes);
    DNDS_CHECK(cellNodes.size() % width == 0, ArgumentError,
               "{} node numbers are not a whole number of cells {} with {} nodes", cellNodes.size(), type.name, width);
    for (std::size_t i = 0; i < cellNodes.size(); i++)
        DNDS_CHECK(cellNodes[i] >= 0, IndexError, "node {} of own cell {} is {}", i % width, i / width, cellNodes[i]);
}

/// The faces of this rank's cells, each addressed to the rank where its cells meet. A message is a sequence of records:
/// the slot (global cell number times faces per cell, plus the face), then the key's first `largestFace` entries.
RankLists addressFaces(std::span<const index> cellNodes, const ElementInfo &type, index firstCell, int ranks) {
    const auto nodesPerCell = static_cast<std::size_t>(type.nodes);
    const auto recordWidth = static_cast<std::size_t>(largestFace(type)) + 1;
    const std::size_t cells = cellNodes.size() / nodesPerCell;
    const auto forEachFace = [&](auto &&visit) {
        for (std::size_t cell = 0; cell < cells; cell++)
            for (std::size_t face = 0; face < type.faces.size(); face++) {
                const FaceKey key = faceKey(cellNodes.subspan(cell * nodesPerCell, nodesPerCell), type.faces[face]);
                if (!isDegenerate(key, type.dimension))
                    visit(cell, face, key, static_cast<std::size_t>(hash(key) % static_cast<std::uint64_t>(ranks)));
            }
    };

    std::vector<std::size_t> starts(static_cast<std::size_t>(ranks) + 1, 0);
    forEachFace(
        [&](std::size_t, std::size_t, const FaceKey &, std::size_t owner) { starts[owner + 1] += recordWidth; });
    std::partial_sum(starts.begin(), starts.end(), starts.begin());

    RankLists lists;
    lists.values.resize(starts.back());
    for (std::size_t rank = 0; rank + 1 < starts.size(); rank++)
        if (starts[rank + 1] > starts[rank]) {
            lists.ranks.push_back(static_cast<int>(rank));
            lists.starts.push_back(static_cast<index>(starts[rank + 1]));
        }
    forEachFace([&](std::size_t cell, std::size_t face, const FaceKey &key, std::size_t owner) {
        const index slot = (firstCell + static_cast<index>(cell)) * static_cast<index>(type.faces.size());
        index *record = lists.values.data() + starts[owner];
        record[0] = slot + static_cast<index>(face);
        std::copy_n(key.begin(), recordWidth - 1, record + 1);
        starts[owner] += recordWidth;
    });
    return lists;
}

/// Finds the two cells of each face among all records of this rank and answers both with the other's number: pairs of
/// slot and neighbour. Throws DataError where a face has more than two cells.
RankLists matchFaces(const RankLists &records, const ElementInfo &type) {
    const auto recordWidth = static_cast<std::size_t>(largestFace(type)) + 1;
    const auto facesPerCell = static_cast<index>(type.faces.size());
    const std::size_t count = records.values.size() / recordWidth;
    const auto slotOf = [&](std::size_t record) { return records.values[record * recordWidth]; };
    const auto keyOf = [&](std::size_t record) {
        FaceKey key;
        key.fill(InvalidIndex);
        std::copy_n(records.values.data() + record * recordWidth + 1, recordWidth - 1, key.begin());
        return key;
    };

    struct Entry {
        std::uint64_t hash;
        std::size_t record;
    };
    std::vector<Entry> order(count);
    for (std::size_t record = 0; record < count; record++)
        order[record] = {hash(keyOf(record)), record};
    std::sort(order.begin(), order.end(), [&](const Entry &a, const Entry &b) {
        if (a.hash != b.hash)
            return a.hash < b.hash;
        const FaceKey keyA = keyOf(a.record); // the same hash: nearly always the same face
        const FaceKey keyB = keyOf(b.record);
        return keyA != keyB ? keyA < keyB : slotOf(a.record) < slotOf(b.record);
    });

    std::vector<index> neighbour(count, InvalidIndex);
    for (std::size_t k = 0; k + 1 < count; k++) {
        const std::size_t a = order[k].record;
        const std::size_t b = order[k + 1].record;
        if (order[k].hash != order[k + 1].hash || keyOf(a) != keyOf(b))
            continue;
        DNDS_CHECK(neighbour[a] == InvalidIndex, DataError, "cells {}, {} and {} share the face of nodes {} and {}",
                   neighbour[a], slotOf(a) / facesPerCell, slotOf(b) / facesPerCell, keyOf(a)[0], keyOf(a)[1]);
        neighbour[a] = slotOf(b) / facesPerCell;
        neighbour[b] = slotOf(a) / facesPerCell;
    }

    RankLists answers;
    std::vector<index> answer;
    std::size_t record = 0;
    for (std::size_t k = 0; k < records.size(); k++) {
        answer.clear();
        for (const std::size_t end = static_cast<std::size_t>(records.starts[k + 1]) / recordWidth; record < end;
             record++)
            if (neighbour[record] != InvalidIndex)
                answer.insert(answer.end(), {slotOf(record), neighbour[record]});
        if (!answer.empty())
            answers.append(records.ranks[k], answer);
    }
    return answers;
}

} // namespace

std::vector<index> faceNeighbours(CommunicatorView comm, std::span<const index> cellNodes, ElementType type) {
    const ElementInfo &info = elementInfo(type);
    comm.guarded([&] { checkCells(cellNodes, info); });

    const auto context = CommunicatorContext::of(comm);
    const auto cells = static_cast<index>(cellNodes.size() / static_cast<std::size_t>(info.nodes));
    index firstCell = 0;
    for (const std::vector<index> counts = comm.allGather(cells);
         const index count : std::span<const index>(counts).first(static_cast<std::size_t>(comm.rank())))
        firstCell += count;

    const RankLists records = sparseExchange(*context, addressFaces(cellNodes, info, firstCell, comm.size()));
    RankLists answers;
    comm.guarded([&] { answers = matchFaces(records, info); });
    answers = sparseExchange(*context, answers);

    const auto facesPerCell = static_cast<index>(info.faces.size());
    std::vector<index> neighbours(static_cast<std::size_t>(cells * facesPerCell), InvalidIndex);
    for (std::size_t i = 0; i < answers.values.size(); i += 2)
        neighbours[static_cast<std::size_t>(answers.values[i] - firstCell * facesPerCell)] = answers.values[i + 1];
    return neighbours;
}

DistributedGraph graphOfNeighbours(std::span<const index> neighbours, int neighboursPerCell, index firstCell) {
    DNDS_CHECK(neighboursPerCell >= 1 && neighbours.size() % static_cast<std::size_t>(neighboursPerCell) == 0,
               ArgumentError, "{} neighbours are not a whole number of cells with {} each", neighbours.size(),
               neighboursPerCell);
    const auto width = static_cast<std::size_t>(neighboursPerCell);
    DistributedGraph graph;
    graph.starts.reserve(neighbours.size() / width + 1);
    graph.neighbours.reserve(neighbours.size());
    for (std::size_t cell = 0; cell < neighbours.size() / width; cell++) {
        for (const index other : neighbours.subspan(cell * width, width))
            if (other != InvalidIndex && other != firstCell + static_cast<index>(cell))
                graph.neighbours.push_back(other);
        graph.finishVertex();
    }
    return graph;
}

DistributedGraph dualGraph(CommunicatorView comm, std::span<const index> cellNodes, ElementType type) {
    const std::vector<index> neighbours = faceNeighbours(comm, cellNodes, type);
    const ElementInfo &info = elementInfo(type);
    const index cells = static_cast<index>(cellNodes.size()) / info.nodes;
    index before = 0;
    comm.beforeCollective();
    checkMpi(MPI_Exscan(&cells, &before, 1, mpiTypeOf<index>(), MPI_SUM, comm.handle()), "MPI_Exscan");
    return graphOfNeighbours(neighbours, static_cast<int>(info.faces.size()), comm.rank() == 0 ? 0 : before);
}

} // namespace DNDS::Geom
