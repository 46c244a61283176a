#include "DNDS/Geom/Partition/GraphPartition.hpp"

#include "DNDS/Geom/Source/IndexPermutation.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

namespace DNDS::Geom {
namespace {

CommunicatorView world() { return CommunicatorView(MPI_COMM_WORLD); }

/// The triangles that halve the squares of a grid, about `cells` of them, joined where they share an edge and numbered
/// at random.
DistributedGraph triangles(index cells) {
    const auto side = static_cast<index>(std::lround(std::sqrt(0.5 * static_cast<double>(cells))));
    const IndexPermutation number(2 * side * side, 1);
    const index begin = number.size() * world().rank() / world().size();
    const index end = number.size() * (world().rank() + 1) / world().size();
    DistributedGraph graph;
    const auto join = [&](index i, index j, index upper) {
        if (i >= 0 && i < side && j >= 0 && j < side)
            graph.neighbours.push_back(number(2 * (j * side + i) + upper));
    };
    for (index v = begin; v < end; v++) {
        const index triangle = number.inverse(v);
        const index i = triangle / 2 % side;
        const index j = triangle / 2 / side;
        const index upper = triangle % 2;
        join(i, j, 1 - upper);                         // across the diagonal
        join(i + (upper == 0 ? 1 : -1), j, 1 - upper); // the lower one has the right and the bottom side
        join(i, j + (upper == 0 ? -1 : 1), 1 - upper);
        graph.finishVertex();
    }
    return graph;
}

/// A graph of `rows` x `columns` vertices, joined to the right and below; this rank gets the vertices [begin, end).
DistributedGraph grid(index rows, index columns, index begin, index end) {
    DistributedGraph graph;
    for (index v = begin; v < end; v++) {
        const index i = v / columns;
        const index j = v % columns;
        if (i > 0)
            graph.neighbours.push_back(v - columns);
        if (j > 0)
            graph.neighbours.push_back(v - 1);
        if (j + 1 < columns)
            graph.neighbours.push_back(v + 1);
        if (i + 1 < rows)
            graph.neighbours.push_back(v + columns);
        graph.starts.push_back(static_cast<index>(graph.neighbours.size()));
    }
    return graph;
}

DistributedGraph evenGrid(index rows, index columns) {
    const index vertices = rows * columns;
    return grid(rows, columns, vertices * world().rank() / world().size(),
                vertices * (world().rank() + 1) / world().size());
}

struct PartitionQuality {
    index edges = 0;        ///< in the whole graph, each counted once
    index edgeCut = 0;      ///< between different parts
    double imbalance = 0.0; ///< weight of the heaviest part over the average, minus 1
    int emptyParts = 0;
};

/// Each rank gathers the parts of all vertices. Collective.
PartitionQuality partitionQuality(const DistributedGraph &graph, const std::vector<int> &part, int parts) {
    const index first = world().exclusiveScan(graph.size());
    const std::vector<int> all = world().allGatherV(std::span(part));
    std::array<index, 2> seen{}; // arcs, from both ends of each edge, and those between parts
    std::vector<double> weight(static_cast<std::size_t>(parts), 0.0);
    for (index v = 0; v < graph.size(); v++) {
        const auto row = static_cast<std::size_t>(v);
        weight[static_cast<std::size_t>(part[row])] +=
            graph.weights.empty() ? 1.0 : static_cast<double>(graph.weights[row]);
        for (const index other : graph.neighboursOf(v)) {
            seen[0] += other != first + v;
            seen[1] += all[static_cast<std::size_t>(other)] != part[row];
        }
    }
    world().allReduce(seen.data(), 2, MPI_SUM);
    world().allReduce(weight.data(), parts, MPI_SUM);
    const double total = std::accumulate(weight.begin(), weight.end(), 0.0);
    return {seen[0] / 2, seen[1] / 2, total > 0.0 ? std::ranges::max(weight) * parts / total - 1.0 : 0.0,
            static_cast<int>(std::ranges::count(weight, 0.0))};
}

void expectEveryPartIsUsed(const DistributedGraph &graph, const std::vector<int> &part, int parts, double imbalance) {
    ASSERT_EQ(static_cast<index>(part.size()), graph.size());
    const PartitionQuality quality = partitionQuality(graph, part, parts);
    EXPECT_EQ(quality.emptyParts, 0);
    EXPECT_LE(quality.imbalance, imbalance);
    EXPECT_GE(quality.imbalance, 0.0);
}

TEST(GraphPartition, DividesAMeshEvenlyAndWithShortInterfaces) {
    const DistributedGraph graph = triangles(20000);
    for (const int parts : {2, 3, 4, 7, 16}) {
        const std::vector<int> part = partitionGraph(world(), graph, parts);
        expectEveryPartIsUsed(graph, part, parts, 0.06);
        const PartitionQuality quality = partitionQuality(graph, part, parts);
        // Interfaces of k compact parts of n cells are a few times sqrt(k n) edges; a random division cuts most of 1.5
        // n.
        EXPECT_LT(static_cast<double>(quality.edgeCut), 1.5 * std::sqrt(20000.0 * parts)) << parts << " parts";
        EXPECT_GT(quality.edgeCut, 0);
    }
}

TEST(GraphPartition, TakesMoreOrLessEffort) {
    const DistributedGraph graph = triangles(20000);
    const auto cutBy = [&](PartitionEffort effort) {
        const std::vector<int> part = partitionGraph(world(), graph, 7, {.effort = effort});
        expectEveryPartIsUsed(graph, part, 7, 0.06);
        return static_cast<double>(partitionQuality(graph, part, 7).edgeCut);
    };
    EXPECT_LT(cutBy(PartitionEffort::Quick), 1.5 * cutBy(PartitionEffort::Thorough));
    if (world().size() > 1) {
        const PartitionEffort own = world().rank() == 0 ? PartitionEffort::Quick : PartitionEffort::Thorough;
        EXPECT_THROW(partitionGraph(world(), graph, 7, {.effort = own}), ArgumentError);
    }
}

TEST(GraphPartition, IsTheSameEachTimeAndVariesWithTheSeed) {
    DistributedGraph graph = triangles(5000);
    for (index v = 0; v < graph.size(); v++) // a mesh as even as this one has few good partitions
        graph.weights.push_back(1 +
                                static_cast<index>(mixBits(static_cast<std::uint64_t>(graph.neighboursOf(v)[0])) % 4));
    const std::vector<int> first = partitionGraph(world(), graph, 5);
    EXPECT_EQ(partitionGraph(world(), graph, 5), first);
    EXPECT_EQ(partitionGraph(world(), graph, 5), first);
    int different = 0;
    for (int seed = 2; seed < 12; seed++) {
        const std::vector<int> other = partitionGraph(world(), graph, 5, {0.03, seed});
        different += world().allReduce(first != other ? 1 : 0, MPI_MAX);
        expectEveryPartIsUsed(graph, other, 5, 0.06);
    }
    EXPECT_GE(different, 1);
}

TEST(GraphPartition, OnePartHoldsEverything) {
    const DistributedGraph graph = triangles(200);
    const std::vector<int> part = partitionGraph(world(), graph, 1);
    EXPECT_EQ(part, std::vector<int>(static_cast<std::size_t>(graph.size()), 0));
    const PartitionQuality quality = partitionQuality(graph, part, 1);
    EXPECT_EQ(quality.edgeCut, 0);
    EXPECT_EQ(quality.edges, 280); // (3 * 200 - 4 * 10) / 2
    EXPECT_EQ(quality.imbalance, 0.0);
}

TEST(GraphPartition, TakesRanksWithoutVertices) {
    const index side = 40;
    for (int holder = 0; holder < world().size(); holder++) {
        const bool mine = world().rank() == holder;
        const DistributedGraph graph = grid(side, side, 0, mine ? side * side : 0);
        expectEveryPartIsUsed(graph, partitionGraph(world(), graph, 4), 4, 0.06);
    }
}

TEST(GraphPartition, TakesAnEmptyGraph) {
    EXPECT_TRUE(partitionGraph(world(), {}, 4).empty());
    const PartitionQuality quality = partitionQuality({}, {}, 4);
    EXPECT_EQ(quality.edges, 0);
    EXPECT_EQ(quality.imbalance, 0.0);
    EXPECT_EQ(quality.emptyParts, 4);
}

TEST(GraphPartition, TakesFewerVerticesThanParts) {
    const DistributedGraph graph = evenGrid(1, 3);
    const std::vector<int> part = partitionGraph(world(), graph, 8);
    ASSERT_EQ(static_cast<index>(part.size()), graph.size());
    EXPECT_GE(partitionQuality(graph, part, 8).emptyParts, 5);
}

TEST(GraphPartition, TakesDisconnectedGraphs) {
    DistributedGraph graph = evenGrid(30, 30);
    // Cut the grid into rows that do not touch.
    DistributedGraph rows;
    const index first = 900 * world().rank() / world().size();
    for (index v = 0; v < graph.size(); v++) {
        for (const index other : graph.neighboursOf(v))
            if (other / 30 == (first + v) / 30)
                rows.neighbours.push_back(other);
        rows.starts.push_back(static_cast<index>(rows.neighbours.size()));
    }
    expectEveryPartIsUsed(rows, partitionGraph(world(), rows, 4), 4, 0.1);

    DistributedGraph isolated;
    isolated.starts.assign(101, 0);
    expectEveryPartIsUsed(isolated, partitionGraph(world(), isolated, 4), 4, 0.1);
}

TEST(GraphPartition, BalancesWeights) {
    const index side = 40;
    DistributedGraph graph = evenGrid(side, side);
    const index first = side * side * world().rank() / world().size();
    for (index v = 0; v < graph.size(); v++)
        graph.weights.push_back((first + v) / side < side / 4 ? 30 : 1); // a heavy quarter
    const std::vector<int> part = partitionGraph(world(), graph, 4);
    expectEveryPartIsUsed(graph, part, 4, 0.1);

    // The same in units that only 64 bits hold.
    for (index &weight : graph.weights)
        weight *= index{1} << 45;
    expectEveryPartIsUsed(graph, partitionGraph(world(), graph, 4), 4, 0.1);
}

TEST(GraphPartition, RepeatedNeighboursAreHeavierEdgesAndLoopsAreIgnored) {
    // A ring of 24 vertices in which every third edge is weak.
    const index n = 24;
    DistributedGraph graph;
    const index begin = n * world().rank() / world().size();
    const index end = n * (world().rank() + 1) / world().size();
    for (index v = begin; v < end; v++) {
        graph.neighbours.push_back(v);
        for (int copy = 0; copy < (v % 3 == 2 ? 1 : 50); copy++)
            graph.neighbours.push_back((v + 1) % n);
        for (int copy = 0; copy < ((v + n - 1) % 3 == 2 ? 1 : 50); copy++)
            graph.neighbours.push_back((v + n - 1) % n);
        graph.starts.push_back(static_cast<index>(graph.neighbours.size()));
    }
    const std::vector<int> part = partitionGraph(world(), graph, 2, {0.3, 1});
    const PartitionQuality quality = partitionQuality(graph, part, 2);
    EXPECT_EQ(quality.edgeCut, 2);
    EXPECT_EQ(quality.edges, 8 + 16 * 50);
}

TEST(GraphPartition, ThrowsOnAllRanksWhenOneRankIsWrong) {
    const bool wrong = world().rank() == world().size() - 1;
    const DistributedGraph good = evenGrid(8, 8);

    DistributedGraph bad = good;
    if (wrong)
        bad.neighbours.back() = 64;
    EXPECT_THROW(partitionGraph(world(), bad, 2), IndexError);

    bad = good;
    if (wrong)
        bad.neighbours.back() = 0; // 0 does not know of it
    EXPECT_THROW(partitionGraph(world(), bad, 2), DataError);

    bad = good;
    if (wrong)
        bad.starts.back()++;
    EXPECT_THROW(partitionGraph(world(), bad, 2), ArgumentError);

    bad = good;
    bad.weights.assign(static_cast<std::size_t>(good.size()), 1);
    if (wrong)
        bad.weights.back() = 0;
    EXPECT_THROW(partitionGraph(world(), bad, 2), ArgumentError);
    if (wrong)
        bad.weights.pop_back();
    EXPECT_THROW(partitionGraph(world(), bad, 2), ArgumentError);

    EXPECT_THROW(partitionGraph(world(), good, 0), ArgumentError);
    EXPECT_THROW(partitionGraph(world(), good, 2, {-0.1, 1}), ArgumentError);
    if (world().size() > 1) {
        EXPECT_THROW(partitionGraph(world(), good, wrong ? 3 : 2), ArgumentError);
        EXPECT_THROW(partitionGraph(world(), good, 2, {0.03, wrong ? 3 : 2}), ArgumentError);
    }
}

} // namespace
} // namespace DNDS::Geom
