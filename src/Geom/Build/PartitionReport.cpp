#include "DNDS/Geom/Build/BuildMesh.hpp"

#include "DNDS/Geom/Mesh/PeriodicNodes.hpp"
#include "DNDS/Geom/Partition/SpaceFillingCurve.hpp"
#include "DNDS/Geom/Source/ElementType.hpp"
#include "DNDS/Geom/Source/NumberTable.hpp"
#include "DNDS/Geom/Source/SourceChecks.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace DNDS::Geom {

namespace {

/// The graph of owned cells that share faces; cells have their final global numbers. Neighbours across a periodic
/// boundary count by the number of the cell itself; a cell that is its own neighbour has no edge.
/// Rows are not sorted and may repeat a neighbour, as partitionGraph allows. Symmetric, as each inner face is in
/// the rows of both of its cells.
DistributedGraph graphOf(const UnstructuredMesh &mesh) {
    DistributedGraph graph;
    const auto neighbours = mesh.cellCells.view();
    const index first = mesh.cells.mapping().global()->localBegin();
    for (index c = 0; c < mesh.cells.owned; c++) {
        for (const LocalIndex other : neighbours[c])
            if (other >= 0 && mesh.cells.mapping().toGlobal(other) != first + c)
                graph.neighbours.push_back(mesh.cells.mapping().toGlobal(other));
        graph.starts.push_back(static_cast<index>(graph.neighbours.size()));
    }
    return graph;
}

/// The position of owned cells along the curve through the mesh's box. Collective.
/// O(nodes of own cells) time, one reduction. Negated upper bounds let one MPI_MIN find both corners of the box.
std::vector<index> keysOf(const UnstructuredMesh &mesh) {
    const auto coordinates = mesh.coordinates.view();
    const auto cellNodes = mesh.cellNodes.view();
    std::vector<Point> centres(toSize(mesh.cells.owned));
    std::array<real, 6> box; // lower bounds and negative upper ones
    box.fill(std::numeric_limits<real>::max());
    for (index c = 0; c < mesh.cells.owned; c++) {
        // The mean depends on the order of nodes; file order is the same for any number of ranks.
        for (const LocalIndex node : cellNodes[c])
            for (rowsize d = 0; d < 3; d++) {
                const auto k = static_cast<std::size_t>(d);
                centres[toSize(c)][k] += coordinates(node, d) / static_cast<real>(cellNodes[c].size());
                box[k] = std::min(box[k], coordinates(node, d));
                box[3 + k] = std::min(box[3 + k], -coordinates(node, d));
            }
    }
    mesh.comm.allReduce(box.data(), 6, MPI_MIN);
    return curveKeys(centres, {box[0], box[1], box[2]}, {-box[3], -box[4], -box[5]});
}

/// Whether the cells across all faces of owned cells are local.
bool hasGhosts(const UnstructuredMesh &mesh) {
    const auto neighbours = mesh.cellCells.view();
    for (index c = 0; c < mesh.cells.owned; c++)
        for (const LocalIndex other : neighbours[c])
            if (other == notLocal)
                return false;
    return true;
}

/// The parts of owned cells and, by one pull, of ghosts. Collective.
ArrayPair<ParArray<index, 1>> partsWithGhosts(const UnstructuredMesh &mesh, std::span<const int> part) {
    ArrayPair<ParArray<index, 1>> pair;
    pair.initPair("part", mesh.comm);
    pair.father->resize(mesh.cells.owned);
    std::copy(part.begin(), part.end(), pair.father->data());
    attachField(pair, mesh.cells);
    pair.trans.pullOnce();
    return pair;
}

/// Counts the ghosts that parts would have if each were a rank, by {part with the ghost, owner}. An owned cell is a
/// ghost of each part around it, so owners count without messages: O(cells around owned cells).
class GhostCounter {
  public:
    GhostCounter(const UnstructuredMesh &mesh, const ArrayPair<ParArray<index, 1>> &parts, GhostNeighbours by)
        : mesh_(mesh), parts_(parts), by_(by) {}

    // Parts and images of each neighbourhood are collected in a set first, so that a cell counts once for each part
    // that would copy it. O(cells around cells x log parts around).
    std::map<std::pair<int, int>, index> count() {
        std::map<std::pair<int, int>, index> ghosts;
        const auto part = parts_.view();
        const LocalAdjacency around =
            by_ == GhostNeighbours::Nodes ? nodeCellsAcrossPeriodic(mesh_) : LocalAdjacency("no nodes", mesh_.comm);
        for (LocalIndex c = 0; c < mesh_.cells.owned; c++) {
            const int own = static_cast<int>(part(c));
            seen_.clear();
            collect(c, around.view());
            // A neighbour in an image sees this cell in the opposite image: as many copies as images.
            for (const auto &[other, image] : seen_)
                if (other != own || image != 0)
                    ghosts[{other, own}]++;
        }
        return ghosts;
    }

  private:
    // Parts and images of the cells around one, itself included.
    void collect(LocalIndex cell, const LocalAdjacency::ConstView &around) {
        if (by_ == GhostNeighbours::Faces) {
            for (const LocalIndex other : mesh_.cellCells.view()[cell])
                add(other);
            return;
        }
        for (const LocalIndex node : mesh_.cellNodes.view()[cell])
            for (const LocalIndex other : around[node])
                add(other);
    }
    // By part and image: several cells of one part need one copy.
    void add(LocalIndex cell) {
        if (cell >= 0)
            seen_.insert(
                {static_cast<int>(parts_.view()(cell, 0)), mesh_.cells.images[static_cast<std::size_t>(cell)]});
    }
    const UnstructuredMesh &mesh_;
    const ArrayPair<ParArray<index, 1>> &parts_;
    GhostNeighbours by_;
    std::set<std::pair<int, int>> seen_;
};

/// Sums counts over ranks: those of part p on rank p modulo the number of ranks, or all on rank 0. Collective; one
/// sparse exchange.
/// Each pair of parts has one home rank, so sums are complete there. O(pairs of neighbouring parts) words: a part
/// has a few tens of neighbours on any number of parts.
std::map<std::pair<int, int>, index> gatherPairs(CommunicatorContext &context,
                                                 const std::map<std::pair<int, int>, index> &mine, bool onFirstRank) {
    const std::vector<std::pair<std::pair<int, int>, index>> list(mine.begin(), mine.end());
    const int ranks = context.comm().size();
    std::map<std::pair<int, int>, index> sums;
    for (const auto &[part, other, count] : exchangeRecords(
             context, list.size(), [&](std::size_t i) { return onFirstRank ? 0 : list[i].first.first % ranks; },
             [&](std::size_t i) {
                 return std::array<index, 3>{list[i].first.first, list[i].first.second, list[i].second};
             }))
        sums[{static_cast<int>(part), static_cast<int>(other)}] += count;
    return sums;
}

/// The graph is made from the finished mesh rather than from the file: cells are already where they are.
std::vector<int> divide(const UnstructuredMesh &mesh, int parts, Partitioner partitioner,
                        const PartitionOptions &options, std::span<const index> weights) {
    requireSameSettings(mesh.comm, "partitionCells", [&] {
        (void)mesh.cells.builtPattern();
        return std::vector<std::string>{
            fmt::format("parts = {}", parts), fmt::format("partitioner = {}", static_cast<int>(partitioner)),
            fmt::format("imbalance = {}", options.imbalance), fmt::format("seed = {}", options.seed),
            fmt::format("effort = {}", static_cast<int>(options.effort))};
    });
    requireWeights(mesh.comm, weights, mesh.cells.owned);
    mesh.comm.guarded([&] {
        DNDS_CHECK(parts >= 1, ArgumentError, "cannot divide cells into {} parts: give at least 1", parts);
        DNDS_CHECK(partitioner != Partitioner::Given, ArgumentError, "Given is not a partitioner: use Graph or Curve");
        DNDS_CHECK(partitioner == Partitioner::Graph || partitioner == Partitioner::Curve, ArgumentError,
                   "{} is no partitioner: use Graph or Curve", static_cast<int>(partitioner));
        DNDS_CHECK(hasGhosts(mesh), ArgumentError,
                   "{}: the mesh has no ghosts, so neighbours of cells are unknown: build it with a layer",
                   mesh.origin);
    });
    if (partitioner == Partitioner::Curve)
        return partitionCurve(mesh.comm, keysOf(mesh), weights, parts);
    DistributedGraph graph = graphOf(mesh);
    graph.weights.assign(weights.begin(), weights.end());
    return partitionGraph(mesh.comm, graph, parts, options);
}

/// Counts of all parts are summed in one reduction of 5 x parts + 1 numbers. Links between parts are first gathered
/// by part, so that each pair is counted once, and then on rank 0.
PartitionReport judge(const UnstructuredMesh &mesh, std::span<const int> part, int parts, GhostNeighbours ghostsBy,
                      std::span<const index> weights) {
    requireWeights(mesh.comm, weights, mesh.cells.owned);
    mesh.comm.guarded([&] {
        DNDS_CHECK(parts >= 1 && static_cast<index>(part.size()) == mesh.cells.owned, ArgumentError,
                   "{} entries are given to divide {} cells into {} parts", part.size(), mesh.cells.owned, parts);
        for (const int p : part)
            DNDS_CHECK(p >= 0 && p < parts, ArgumentError, "a cell is in part {} of {}", p, parts);
        DNDS_CHECK(hasGhosts(mesh), ArgumentError,
                   "{}: the mesh has no ghosts, so neighbours of cells are unknown: build it with a layer",
                   mesh.origin);
    });
    CommunicatorContext &context = *CommunicatorContext::of(mesh.comm);
    const ArrayPair<ParArray<index, 1>> pair = partsWithGhosts(mesh, part);
    const auto partOf = pair.view();
    const auto cellCells = mesh.cellCells.view();
    const auto count = toSize(parts);
    std::vector<index> sums(5 * count + 1, 0); // cells, ghosts, faces, peers, weight; all inner faces from both sides
    for (index c = 0; c < mesh.cells.owned; c++) {
        const auto own = toSize(partOf(c, 0));
        sums[own]++;
        sums[4 * count + own] += weights.empty() ? 1 : weights[toSize(c)];
        for (const LocalIndex other : cellCells[c])
            if (other >= 0) {
                sums[5 * count]++;
                sums[2 * count + own] += partOf(other, 0) != partOf(c, 0);
            }
    }
    const auto links = gatherPairs(context, GhostCounter(mesh, pair, ghostsBy).count(), false);
    for (const auto &[link, ghosts] : links) {
        sums[count + static_cast<std::size_t>(link.first)] += ghosts;
        sums[3 * count + static_cast<std::size_t>(link.first)] += link.first != link.second;
    }
    mesh.comm.allReduce(sums.data(), static_cast<int>(sums.size()), MPI_SUM);

    PartitionReport report;
    index total = 0;
    index largest = 0;
    for (std::size_t p = 0; p < count; p++) {
        report.parts.push_back({sums[p], sums[count + p], sums[2 * count + p], static_cast<int>(sums[3 * count + p]),
                                sums[4 * count + p]});
        report.cut += sums[2 * count + p];
        total += sums[4 * count + p];
        largest = std::max(largest, sums[4 * count + p]);
    }
    report.cut /= 2;
    report.innerFaces = sums[5 * count] / 2;
    report.imbalance = total == 0 ? 0.0 : static_cast<real>(largest) * parts / static_cast<real>(total) - 1.0;
    for (const auto &[link, ghosts] : gatherPairs(context, links, true))
        report.links.push_back({link.first, link.second, ghosts});
    return report;
}

} // namespace

std::vector<int> partitionCells(const UnstructuredMesh &mesh, int parts, Partitioner partitioner,
                                const PartitionOptions &options, std::span<const index> weights) {
    return failTogether(mesh.comm, [&] { return divide(mesh, parts, partitioner, options, weights); });
}

PartitionReport reportPartition(const UnstructuredMesh &mesh, std::span<const int> part, int parts,
                                GhostNeighbours ghostsBy, std::span<const index> weights) {
    return failTogether(mesh.comm, [&] { return judge(mesh, part, parts, ghostsBy, weights); });
}

} // namespace DNDS::Geom
