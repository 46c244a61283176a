#include "DNDS/Geom/Cgns/NodeJoin.hpp"

#include "DNDS/Geom/Source/IndexPermutation.hpp"
#include "DNDS/Geom/Source/SourceChecks.hpp"
#include "DNDS/Index/SortUnique.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace DNDS::Geom::Cgns {

namespace {

using NodePair = std::pair<index, index>;

real distance(const Point &a, const Point &b) { return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]); }

/// Coordinates of some nodes, in order of their numbers.
struct FetchedPoints {
    std::vector<index> nodes;
    std::vector<Point> points;

    const Point &at(index node) const {
        return points[static_cast<std::size_t>(std::lower_bound(nodes.begin(), nodes.end(), node) - nodes.begin())];
    }
};

/// `nodes` ascend without duplicates. One query and reply for each pair of ranks.
FetchedPoints fetchPoints(CommunicatorContext &context, const NodeBlock &block, std::vector<index> nodes) {
    const auto blocks = GlobalMapping::create(context.comm(), block.own.size());
    std::vector<Point> points = fetchCoordinates(*blocks, block.coordinates, nodes);
    return {std::move(nodes), std::move(points)};
}

struct Bounds {
    Point low{};
    Point high{};
    real longest() const { return std::max({high[0] - low[0], high[1] - low[1], high[2] - low[2]}); }
};

// ---------------------------------------------------------------------------------------------------------------------
// Pairs of nodes from pairs of faces

/// Joins each node of a face with the nearest of the other. False if that is not a one-to-one relation between
/// coincident nodes.
/// O(corners^2); geometry rather than order decides, since files list the corners of the two faces from different
/// starts and in opposite directions.
bool matchFaces(std::span<const index> a, std::span<const index> b, const FetchedPoints &points,
                std::vector<NodePair> &pairs) {
    constexpr real tolerance = 1e-3; // of the face's size: corners of one face are much further apart
    if (a.size() != b.size())
        return false;
    real size = 0.0;
    for (const index node : a)
        size = std::max(size, distance(points.at(a.front()), points.at(node)));
    std::vector<bool> taken(b.size(), false);
    for (const index node : a) {
        std::size_t nearest = 0;
        for (std::size_t k = 1; k < b.size(); k++)
            if (distance(points.at(node), points.at(b[k])) < distance(points.at(node), points.at(b[nearest])))
                nearest = k;
        if (taken[nearest] || distance(points.at(node), points.at(b[nearest])) > tolerance * size)
            return false;
        taken[nearest] = true;
        pairs.emplace_back(node, b[nearest]);
    }
    return true;
}

/// Reduces pairs of faces to pairs of nodes. Corners of faces and their coordinates may be on any rank: two queries
/// fetch those of this rank's share.
class FaceJoiner {
  public:
    FaceJoiner(CommunicatorContext &context, const Model &model, const Elements &elements, const NodeBlock &block)
        : context_(context), model_(model), elements_(elements), block_(block) {}

    void join(const std::vector<JoinPairs::Faces> &faces, std::vector<NodePair> &pairs) {
        fetchFaces(faces);
        std::vector<index> nodes = rows_[0].nodes;
        nodes.insert(nodes.end(), rows_[1].nodes.begin(), rows_[1].nodes.end());
        const FetchedPoints points = fetchPoints(context_, block_, sortedUnique(nodes));
        context_.comm().guarded([&] {
            for (const JoinPairs::Faces &face : faces)
                DNDS_CHECK(matchFaces(nodesOf(face.face), nodesOf(face.donor), points, pairs), DataError,
                           "{}, connection '{}': faces {} and {} do not coincide",
                           model_.zoneText(model_.connections[static_cast<std::size_t>(face.connection)].zone),
                           model_.connections[static_cast<std::size_t>(face.connection)].name, idOf(face.face),
                           idOf(face.donor));
        });
    }

  private:
    void fetchFaces(const std::vector<JoinPairs::Faces> &faces) {
        std::array<std::vector<index>, 2> wanted;
        for (const JoinPairs::Faces &face : faces)
            for (const index key : {face.face, face.donor})
                wanted[ElementKey::inCells(key) ? 1 : 0].push_back(ElementKey::ordinal(key));
        rows_[0] = fetchElements(context_, elements_.faces, sortedUnique(wanted[0]));
        rows_[1] = fetchElements(context_, elements_.cells, sortedUnique(wanted[1]));
    }
    std::span<const index> nodesOf(index key) const {
        return rows_[ElementKey::inCells(key) ? 1 : 0].row(ElementKey::ordinal(key));
    }
    index idOf(index key) const {
        return (ElementKey::inCells(key) ? elements_.cellTable : elements_.faceTable).idOf(ElementKey::ordinal(key));
    }

    CommunicatorContext &context_;
    const Model &model_;
    const Elements &elements_;
    const NodeBlock &block_;
    std::array<ElementRows, 2> rows_; ///< rows of the list of faces, and of the list of cells
};

// ---------------------------------------------------------------------------------------------------------------------
// Pairs of coincident nodes

/// A node sent to the ranks of its region of space, and which of its bins.
struct PlacedNode {
    std::array<index, 3> bin;
    index node;
    Point point;
};

/// Sends each node to the rank of its bin, and to those of the bins nearer than the tolerance.
/// Seven words a node and bin: bin, node number, coordinates.
std::vector<PlacedNode> exchangePlaced(CommunicatorContext &context, const NodeBlock &block, const Bounds &box,
                                       real tolerance, real binSize) {
    const auto ranks = static_cast<std::uint64_t>(context.comm().size());
    std::vector<PlacedNode> placed;
    std::vector<int> rankOf;
    for (std::size_t i = 0; i < block.coordinates.size(); i++) {
        std::array<index, 3> low{};
        std::array<index, 3> high{};
        for (std::size_t k = 0; k < 3; k++) {
            const real x = block.coordinates[i][k] - box.low[k];
            low[k] = static_cast<index>(std::floor((x - tolerance) / binSize));
            high[k] = static_cast<index>(std::floor((x + tolerance) / binSize));
        }
        for (index x = low[0]; x <= high[0]; x++)
            for (index y = low[1]; y <= high[1]; y++)
                for (index z = low[2]; z <= high[2]; z++) {
                    std::uint64_t hash = 0;
                    for (const index coordinate : {x, y, z})
                        hash = mixBits(hash ^ static_cast<std::uint64_t>(coordinate));
                    rankOf.push_back(static_cast<int>(hash % ranks));
                    placed.push_back({{x, y, z}, block.own.begin + static_cast<index>(i), block.coordinates[i]});
                }
    }
    return exchangeRecords(
        context, placed.size(), [&](std::size_t i) { return rankOf[i]; }, [&](std::size_t i) { return placed[i]; });
}

// Spatial hashing: bins are 64 tolerances wide, and a node is sent to every bin that its ball touches, mostly one.
// Invariant: two nodes within the tolerance meet in the bin of either. In a bin, a node is joined to the nearest kept
// one of another zone: cells at walls may be thinner than the tolerance. To several as near, which are poles of
// collapsed cells. O(nodes) on average, one sparse exchange.
void addCoincident(CommunicatorContext &context, const Model &model, const NodeBlock &block, const Bounds &box,
                   real tolerance, std::vector<NodePair> &pairs) {
    const real binSize = std::max({64.0 * tolerance, 1e-12 * box.longest(), std::numeric_limits<real>::min()});
    std::vector<PlacedNode> nodes = exchangePlaced(context, block, box, tolerance, binSize);
    std::sort(nodes.begin(), nodes.end(), [](const PlacedNode &a, const PlacedNode &b) {
        return a.bin != b.bin ? a.bin < b.bin : a.node < b.node;
    });
    const auto zoneOf = [&](index node) {
        const auto after = std::upper_bound(model.zones.begin(), model.zones.end(), node,
                                            [](index n, const Zone &zone) { return n < zone.firstNode; });
        return after - model.zones.begin();
    };
    std::vector<std::size_t> kept; // of one bin: nodes that are not joined to an earlier one
    for (std::size_t i = 0; i < nodes.size(); i++) {
        if (i == 0 || nodes[i].bin != nodes[i - 1].bin)
            kept.clear();
        // All kept nodes of other zones at the least distance so far.
        real nearest = tolerance;
        std::vector<index> twins;
        for (const std::size_t other : kept) {
            const real apart = distance(nodes[i].point, nodes[other].point);
            if (!(apart <= nearest) || zoneOf(nodes[i].node) == zoneOf(nodes[other].node))
                continue;
            if (apart < nearest)
                twins.clear();
            nearest = apart;
            twins.push_back(nodes[other].node);
        }
        if (twins.empty())
            kept.push_back(i);
        for (const index twin : twins)
            pairs.emplace_back(twin, nodes[i].node);
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Chains of pairs

// Connected components of the pairs of nodes: every node starts with its own number, and nodes pass smaller labels on
// until none changes. One sparse exchange and one reduction per round, as many rounds as the longest chain. Result:
// each node has the least number of its component, whatever the distribution.
// O(links) time a round. Labels never grow, so the loop ends; the reduction makes all ranks end it together.
class LabelSpreader {
  public:
    LabelSpreader(CommunicatorContext &context, const NodeBlock &block)
        : context_(context), comm_(context.comm()), block_(block) {}

    /// For each node of this rank the lowest number of its joined nodes, itself included.
    std::vector<index> labels(const std::vector<NodePair> &pairs) {
        collectLinks(pairs);
        labels_.resize(static_cast<std::size_t>(block_.own.size()));
        for (std::size_t i = 0; i < labels_.size(); i++)
            labels_[i] = block_.own.begin + static_cast<index>(i);
        while (comm_.allReduce(spread() ? 1 : 0, MPI_MAX) > 0) {
        }
        return std::move(labels_);
    }

  private:
    using Link = std::array<index, 2>;

    /// Both directions of each pair, at the owner of the first node, which then sends its label without being asked.
    void collectLinks(const std::vector<NodePair> &pairs) {
        for (const auto &[a, b] : pairs) {
            links_.push_back({a, b});
            links_.push_back({b, a});
        }
        links_ = toOwners(links_);
        std::sort(links_.begin(), links_.end());
        links_.erase(std::unique(links_.begin(), links_.end()), links_.end());
    }
    /// To the owner of the first node of each.
    std::vector<Link> toOwners(const std::vector<Link> &links) {
        const EvenSplit blocks(block_.total, comm_.size());
        return exchangeRecords(
            context_, links.size(), [&](std::size_t i) { return blocks.owner(links[i][0]); },
            [&](std::size_t i) { return links[i]; });
    }
    index &label(index node) { return labels_[static_cast<std::size_t>(node - block_.own.begin)]; }
    /// Sends labels to the next nodes of the chains. Returns whether any label changed.
    bool spread() {
        std::vector<Link> passed;
        for (const auto &[node, other] : links_)
            if (label(node) < other)
                passed.push_back({other, label(node)});
        bool changed = false;
        for (const auto &[node, least] : toOwners(passed))
            if (least < label(node)) {
                label(node) = least;
                changed = true;
            }
        return changed;
    }

    CommunicatorContext &context_;
    const CommunicatorView &comm_;
    const NodeBlock &block_;
    std::vector<Link> links_; ///< {own node, other}
    std::vector<index> labels_;
};

/// Removes the nodes that were merged and numbers the rest.
/// Survivors are numbered in the order of the file, by a prefix sum over ranks; a merged node then asks for the
/// number of the one that it became. Labels are survivors themselves, so one query is enough.
void numberSurvivors(CommunicatorContext &context, const std::vector<index> &labels, NodeBlock &block) {
    std::vector<Point> kept;
    block.joined = true;
    block.numbers.assign(labels.size(), 0);
    std::vector<index> joined;
    for (std::size_t i = 0; i < labels.size(); i++)
        if (labels[i] == block.own.begin + static_cast<index>(i)) {
            block.numbers[i] = static_cast<index>(kept.size());
            kept.push_back(block.coordinates[i]);
        } else {
            joined.push_back(labels[i]);
        }
    const index before = GlobalMapping::create(context.comm(), static_cast<index>(kept.size()))->localBegin();
    for (std::size_t i = 0; i < labels.size(); i++)
        block.numbers[i] += before;
    block.coordinates = std::move(kept);

    renumberNodes(context, block, joined); // survivors have their numbers
    auto next = joined.begin();
    for (std::size_t i = 0; i < labels.size(); i++)
        if (labels[i] != block.own.begin + static_cast<index>(i))
            block.numbers[i] = *next++;
}

// Nodes that are far apart hint at a wrong connection; they are joined all the same, as the file says.
void warnOfDistances(CommunicatorContext &context, const Model &model, const NodeBlock &block,
                     const std::vector<NodePair> &pairs, const Bounds &box, std::vector<std::string> &warnings) {
    constexpr real notable = 1e-6;
    std::vector<index> nodes;
    for (const auto &[a, b] : pairs)
        nodes.insert(nodes.end(), {a, b});
    const FetchedPoints points = fetchPoints(context, block, sortedUnique(nodes));
    real furthest = 0.0;
    for (const auto &[a, b] : pairs)
        furthest = std::max(furthest, distance(points.at(a), points.at(b)));
    furthest = context.comm().allReduce(furthest, MPI_MAX);
    if (furthest > notable * box.longest())
        warnings.push_back(fmt::format("{}: connections join nodes up to {:g} apart", model.file, furthest));
}

} // namespace

/// A rank's share may start and end within zones.
NodeBlock readNodes(CommunicatorView comm, const Model &model, TreeSource &source) {
    NodeBlock block;
    block.total = model.nodes;
    block.own = EvenSplit(model.nodes, comm.size()).part(comm.rank());
    comm.guarded([&] {
        block.coordinates.resize(static_cast<std::size_t>(block.own.size()));
        std::vector<real> values;
        for (const Zone &zone : model.zones) {
            const Range part{std::max(block.own.begin, zone.firstNode),
                             std::min(block.own.end, zone.firstNode + zone.nodes)};
            if (part.begin >= part.end)
                continue;
            values.resize(static_cast<std::size_t>(part.size()));
            for (std::size_t k = 0; k < static_cast<std::size_t>(model.physicalDimension); k++) {
                source.read(*zone.coordinates[k], zone.skipped + part.begin - zone.firstNode, std::span<real>(values));
                for (std::size_t i = 0; i < values.size(); i++) {
                    DNDS_CHECK(std::isfinite(values[i]), DataError, "{}: zone '{}', node {}: {} is {}", model.file,
                               zone.name, part.begin - zone.firstNode + static_cast<index>(i) + 1,
                               zone.coordinates[k]->name, values[i]);
                    block.coordinates[static_cast<std::size_t>(part.begin - block.own.begin) + i][k] = values[i];
                }
            }
        }
    });
    return block;
}

// All ranks take part if any has pairs.
void joinNodes(CommunicatorContext &context, const Model &model, const Elements &elements, const JoinPairs &joins,
               const CgnsOptions &options, NodeBlock &block, std::vector<std::string> &warnings) {
    const CommunicatorView &comm = context.comm();
    std::vector<NodePair> pairs = joins.nodes;
    if (comm.allReduce(joins.faces.empty() ? 0 : 1, MPI_MAX) > 0)
        FaceJoiner(context, model, elements, block).join(joins.faces, pairs);
    const bool coincident = options.joinCoincidentNodes && model.zones.size() > 1;
    if (comm.allReduce(pairs.empty() ? 0 : 1, MPI_MAX) == 0 && !coincident)
        return;
    const auto [low, high] = nodeBoundsOf(comm, block.coordinates);
    const Bounds box{low, high};
    warnOfDistances(context, model, block, pairs, box, warnings);
    if (coincident)
        addCoincident(context, model, block, box, options.joinTolerance * box.longest(), pairs);
    numberSurvivors(context, LabelSpreader(context, block).labels(pairs), block);
}

/// One query and reply for each pair of ranks; nodes are owned by the even split of the file's numbering.
void renumberNodes(CommunicatorContext &context, const NodeBlock &block, std::span<index> nodes) {
    const std::vector<index> wanted = sortedUnique(nodes);
    const EvenSplit split(block.total, context.comm().size());
    std::vector<index> numbers(wanted.size());
    queryOwners(
        context, wanted.size(), [&](std::size_t i) { return split.owner(wanted[i]); },
        [&](std::size_t i) { return wanted[i]; },
        [&](index node, std::vector<index> &reply) { reply.push_back(block.numbers[toSize(node - block.own.begin)]); },
        [&](std::size_t i, RecordReader &reader) { numbers[i] = reader.next(); });
    for (index &node : nodes) {
        const auto at = std::lower_bound(wanted.begin(), wanted.end(), node) - wanted.begin();
        node = numbers[static_cast<std::size_t>(at)];
    }
}

} // namespace DNDS::Geom::Cgns
