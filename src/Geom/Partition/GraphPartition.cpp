#include "DNDS/Geom/Partition/GraphPartition.hpp"

#include "DNDS/Geom/Source/IndexPermutation.hpp"
#include "DNDS/Index/Mappings.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>

// It uses FILE without including <cstdio>.
#include <ptscotch.h>

namespace DNDS::Geom {

namespace {

/// The largest number that PT-Scotch can represent.
constexpr index scotchMax = std::numeric_limits<SCOTCH_Num>::max();

/// Makes a PT-Scotch failure on any rank an exception on all. Collective.
void checkScotch(CommunicatorView comm, int code, const char *call) {
    comm.guarded([&] { DNDS_CHECK(code == 0, StateError, "PT-Scotch failed in {}", call); });
}

/// Frees a PT-Scotch object at the end of its scope.
/// `alive` is set by the caller after a successful initialisation.
template <class T, auto Exit>
struct ScotchObject {
    T object{};
    bool alive = false;

    ScotchObject() = default;
    ScotchObject(const ScotchObject &) = delete;
    ScotchObject &operator=(const ScotchObject &) = delete;
    ~ScotchObject() {
        if (alive)
            Exit(&object);
    }
};
using ScotchContext = ScotchObject<SCOTCH_Context, SCOTCH_contextExit>;
using ScotchStrategy = ScotchObject<SCOTCH_Strat, SCOTCH_stratExit>;
using ScotchGraph = ScotchObject<SCOTCH_Dgraph, SCOTCH_dgraphExit>;

/// Distributions ship 32- and 64-bit libraries with one file name: a mismatch would corrupt memory.
void checkBuild() {
    DNDS_CHECK(static_cast<std::size_t>(SCOTCH_numSizeof()) == sizeof(SCOTCH_Num) &&
                   static_cast<std::size_t>(SCOTCH_dgraphSizeof()) <= sizeof(SCOTCH_Dgraph),
               StateError,
               "DNDS was built with the header of a PT-Scotch of {}-bit integers but runs with one of {}-bit",
               8 * sizeof(SCOTCH_Num), 8 * SCOTCH_numSizeof());
}

/// Throws unless `starts` and `weights` match the rows of `neighbours`. Local.
void checkShape(const DistributedGraph &graph, bool weighted) {
    DNDS_CHECK(!graph.starts.empty() && graph.starts.front() == 0 &&
                   graph.starts.back() == static_cast<index>(graph.neighbours.size()) &&
                   std::is_sorted(graph.starts.begin(), graph.starts.end()),
               ArgumentError, "the graph's starts do not ascend from 0 to its {} neighbours", graph.neighbours.size());
    DNDS_CHECK(static_cast<index>(graph.weights.size()) == (weighted ? graph.size() : 0), ArgumentError,
               "this rank gives {} weights for its {} vertices: give one for each on all ranks, or none on any",
               graph.weights.size(), graph.size());
    for (const index weight : graph.weights)
        DNDS_CHECK(weight >= 1, ArgumentError, "a vertex has weight {}: weights must be at least 1", weight);
}

/// Whether any rank gives weights. Collective.
bool hasWeights(CommunicatorView comm, const DistributedGraph &graph) {
    return comm.allReduce(graph.weights.empty() ? 0 : 1, MPI_MAX) != 0;
}

/// Each edge is counted +1 from its lower end and -1 from its upper end, times a number that both ends compute. The sum
/// over all ranks vanishes if every edge is seen from both ends; otherwise only once in 2^64.
/// O(edges) time, one reduction of a word, no message an edge. Sums wrap modulo 2^64, where `~edge + 1` is the
/// negative of `edge`.
std::uint64_t asymmetry(const DistributedGraph &graph, index firstVertex) {
    std::uint64_t sum = 0;
    for (index v = 0; v < graph.size(); v++)
        for (const index other : graph.neighboursOf(v)) {
            const index mine = firstVertex + v;
            const auto [low, high] = std::minmax(mine, other);
            const std::uint64_t edge =
                mixBits(mixBits(static_cast<std::uint64_t>(low)) ^ static_cast<std::uint64_t>(high));
            sum += mine == other ? 0 : mine < other ? edge : ~edge + 1;
        }
    return sum;
}

/// The graph in PT-Scotch's integers, without self-loops and repeated neighbours.
/// One copy in the library's integers; the caller has checked that all numbers fit. Repeated neighbours (cells that
/// share two faces) become edge loads.
/// O(edges log degree) time. Merging is symmetric: both ends of an edge count it equally often, so edge loads
/// agree, as PT-Scotch requires.
struct NarrowGraph {
    std::vector<SCOTCH_Num> starts{0};
    std::vector<SCOTCH_Num> neighbours;
    std::vector<SCOTCH_Num> multiplicity; ///< multiplicity of each neighbour
    std::vector<SCOTCH_Num> weights;
    bool repeats = false; ///< some multiplicity is not 1

    /// O(edges log degree); rows stay sorted, so the result does not depend on the order in which neighbours are
    /// given.
    NarrowGraph(const DistributedGraph &graph, index firstVertex, index weightDivisor) {
        starts.reserve(graph.starts.size());
        // One more than needed: PT-Scotch does not accept null pointers.
        neighbours.reserve(graph.neighbours.size() + 1);
        multiplicity.reserve(graph.neighbours.size() + 1);
        std::vector<index> row;
        for (index v = 0; v < graph.size(); v++) {
            // Sorted, so that repeated neighbours follow each other.
            const auto all = graph.neighboursOf(v);
            row.assign(all.begin(), all.end());
            std::sort(row.begin(), row.end());
            const auto begin = neighbours.size();
            for (const index other : row) {
                if (other == firstVertex + v)
                    continue;
                if (neighbours.size() > begin && neighbours.back() == static_cast<SCOTCH_Num>(other)) {
                    multiplicity.back()++;
                    repeats = true;
                } else {
                    neighbours.push_back(static_cast<SCOTCH_Num>(other));
                    multiplicity.push_back(1);
                }
            }
            starts.push_back(static_cast<SCOTCH_Num>(neighbours.size()));
        }
        weights.reserve(graph.weights.size() + 1);
        for (const index weight : graph.weights)
            weights.push_back(static_cast<SCOTCH_Num>(std::max<index>(1, weight / weightDivisor)));
    }
};

/// The divisor that keeps the sum of weights within PT-Scotch's integers. Collective.
/// Dividing all weights by one number keeps their ratios; a weight never becomes 0.
/// The sum in doubles may differ in its last bits between numbers of ranks, which only matters at the limit of
/// 32-bit integers; `room` leaves one unit a vertex for weights that the maximum with 1 raises.
index weightDivisor(CommunicatorView comm, const DistributedGraph &graph, index globalVertices) {
    double total = 0.0;
    for (const index weight : graph.weights)
        total += static_cast<double>(weight);
    total = comm.allReduce(total, MPI_SUM);
    const double room = static_cast<double>(scotchMax - globalVertices);
    return total <= room ? 1 : static_cast<index>(total / std::max(room, 1.0)) + 1;
}

/// Fills `part` by PT-Scotch's k-way partitioning. Collective over `comm`, which must not be used otherwise.
/// Every call of the library is collective and may fail on one rank alone: its code is agreed on after each, so that
/// no rank goes into the next call without the others.
void runScotch(CommunicatorView comm, NarrowGraph &graph, bool weighted, int parts, const PartitionOptions &options,
               std::vector<SCOTCH_Num> &part) {
    const bool repeats = comm.allReduce(graph.repeats ? 1 : 0, MPI_MAX) != 0;
    const auto vertices = static_cast<SCOTCH_Num>(graph.starts.size() - 1);
    // Arcs are edges counted from both ends.
    const auto arcs = static_cast<SCOTCH_Num>(graph.neighbours.size());

    // A separate context isolates the seed, and the choice of one thread per rank, from the rest of the process.
    ScotchContext context;
    context.alive = SCOTCH_contextInit(&context.object) == 0;
    int code = context.alive ? 0 : 1;
    if (context.alive) {
        code |= SCOTCH_contextOptionSetNum(&context.object, SCOTCH_OPTIONNUMDETERMINISTIC, 1);
        // PT-Scotch gives neighbouring seeds the same numbers, so spread them.
        const std::uint64_t seed = mixBits(static_cast<std::uint64_t>(options.seed));
        SCOTCH_contextRandomSeed(&context.object, static_cast<SCOTCH_Num>(seed & 0x7fffffffU));
        SCOTCH_contextRandomReset(&context.object);
        code |= SCOTCH_contextThreadSpawn(&context.object, 1, nullptr);
    }
    const SCOTCH_Num effort = options.effort == PartitionEffort::Quick ? SCOTCH_STRATSPEED : SCOTCH_STRATQUALITY;
    ScotchStrategy strategy;
    strategy.alive = SCOTCH_stratInit(&strategy.object) == 0;
    code |= strategy.alive ? SCOTCH_stratDgraphMapBuild(&strategy.object, effort, static_cast<SCOTCH_Num>(comm.size()),
                                                        static_cast<SCOTCH_Num>(parts), options.imbalance)
                           : 1;
    checkScotch(comm, code, "its set-up");

    ScotchGraph whole;
    code = SCOTCH_dgraphInit(&whole.object, comm.handle());
    whole.alive = code == 0;
    checkScotch(comm, code, "SCOTCH_dgraphInit");
    code = SCOTCH_dgraphBuild(&whole.object, 0, vertices, vertices, graph.starts.data(), graph.starts.data() + 1,
                              weighted ? graph.weights.data() : nullptr, nullptr, arcs, arcs, graph.neighbours.data(),
                              nullptr, repeats ? graph.multiplicity.data() : nullptr);
    checkScotch(comm, code, "SCOTCH_dgraphBuild");

    // A view of the graph, in which the context's options hold.
    ScotchGraph bound;
    code = SCOTCH_dgraphInit(&bound.object, comm.handle());
    bound.alive = code == 0;
    checkScotch(comm, code, "SCOTCH_dgraphInit");
    checkScotch(comm, SCOTCH_contextBindDgraph(&context.object, &whole.object, &bound.object),
                "SCOTCH_contextBindDgraph");
    code = SCOTCH_dgraphPart(&bound.object, static_cast<SCOTCH_Num>(parts), &strategy.object, part.data());
    checkScotch(comm, code, "SCOTCH_dgraphPart");
}

/// Throws on all ranks unless all gave the same valid options. Collective.
void checkOptions(CommunicatorView comm, int parts, const PartitionOptions &options) {
    comm.guarded([&] {
        checkBuild();
        DNDS_CHECK(parts >= 1, ArgumentError, "cannot partition into {} parts: give at least 1", parts);
        DNDS_CHECK(options.imbalance >= 0.0 && options.imbalance <= 1.0, ArgumentError,
                   "an imbalance of {} is outside [0, 1]", options.imbalance);
    });
    // Values and their negatives: one reduction finds both extremes.
    std::array<double, 8> extremes{static_cast<double>(parts), static_cast<double>(options.seed), options.imbalance,
                                   static_cast<double>(options.effort)};
    for (std::size_t i = 0; i < 4; i++)
        extremes[i + 4] = -extremes[i];
    comm.allReduce(extremes.data(), 8, MPI_MAX);
    for (std::size_t i = 0; i < 4; i++)
        DNDS_CHECK(extremes[i] == -extremes[i + 4], ArgumentError,
                   "parts, seed, imbalance or effort differ between ranks: they range from {} to {}", -extremes[i + 4],
                   extremes[i]);
}

} // namespace

/// The library is given a duplicate of the communicator, as it uses tags of its own. Empty graphs and one part are
/// answered without it.
std::vector<int> partitionGraph(CommunicatorView comm, const DistributedGraph &graph, int parts,
                                const PartitionOptions &options) {
    checkOptions(comm, parts, options);
    const bool weighted = hasWeights(comm, graph);
    comm.guarded([&] { checkShape(graph, weighted); });
    const auto numbering = GlobalMapping::create(comm, graph.size());
    const index globalArcs = comm.allReduce(static_cast<index>(graph.neighbours.size()), MPI_SUM);
    const index firstVertex = numbering->localBegin();
    comm.guarded([&] {
        for (const index other : graph.neighbours)
            DNDS_CHECK(numbering->contains(other), IndexError,
                       "a neighbour is vertex {}, but the graph has {} vertices", other, numbering->globalSize());
        DNDS_CHECK(numbering->globalSize() < scotchMax && globalArcs <= scotchMax, ArgumentError,
                   "{} vertices and {} neighbours are too many for PT-Scotch with {}-bit integers; link with a "
                   "64-bit one",
                   numbering->globalSize(), globalArcs, 8 * sizeof(SCOTCH_Num));
    });
    DNDS_CHECK(comm.allReduce(asymmetry(graph, firstVertex), MPI_SUM) == 0, DataError,
               "the graph is not symmetric: a vertex lists a neighbour that does not list it");

    if (parts == 1 || numbering->globalSize() == 0)
        return std::vector<int>(static_cast<std::size_t>(graph.size()), 0);

    // Not reached by graphs without vertices or with one part.
    const index divisor = weightDivisor(comm, graph, numbering->globalSize());
    std::vector<SCOTCH_Num> part;
    std::vector<int> result;
    std::optional<NarrowGraph> narrow;
    comm.guarded([&] {
        narrow.emplace(graph, firstVertex, divisor);
        part.resize(static_cast<std::size_t>(graph.size()) +
                    1); // never empty: PT-Scotch does not accept a null pointer
    });
    const Communicator own = Communicator::duplicate(comm);
    runScotch(own.view(), *narrow, weighted, parts, options, part);
    comm.guarded([&] {
        result.assign(part.begin(), part.end() - 1);
        for (const int number : result)
            DNDS_CHECK(number >= 0 && number < parts, StateError, "PT-Scotch put a vertex into part {} of {}", number,
                       parts);
    });
    return result;
}

} // namespace DNDS::Geom
