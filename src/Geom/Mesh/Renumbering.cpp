#include "DNDS/Geom/Mesh/Renumbering.hpp"

#include "DNDS/Geom/Source/NumberTable.hpp"
#include "DNDS/Index/LocalityOrder.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace DNDS::Geom {

namespace {

/// The order of ghosts: (number, image).
std::vector<index> sortGhosts(std::span<const index> numbers, std::span<const GhostEntity> ghosts) {
    std::vector<index> order(ghosts.size());
    std::iota(order.begin(), order.end(), index{0});
    std::sort(order.begin(), order.end(), [&](index a, index b) {
        return numbers[toSize(a)] != numbers[toSize(b)] ? numbers[toSize(a)] < numbers[toSize(b)]
                                                        : ghosts[toSize(a)].image < ghosts[toSize(b)].image;
    });
    return order;
}

// The numbers in the order of a permutation.
std::vector<index> inOrder(std::span<const index> numbers, const std::vector<index> &order) {
    std::vector<index> sorted;
    sorted.reserve(order.size());
    for (const index i : order)
        sorted.push_back(numbers[toSize(i)]);
    return sorted;
}

/// Visits the vertices that can be reached from `root` breadth-first, neighbours by ascending degree.
/// Marks hold the number of the search that has reached a vertex, so trial searches need no clearing.
/// O(edges log degree) time a search: sorting by degree happens among the new neighbours of each vertex only.
/// Memory: one mark a vertex.
class BreadthFirst {
  public:
    BreadthFirst(std::span<const index> starts, std::span<const LocalIndex> neighbours)
        : starts_(starts), neighbours_(neighbours), mark_(starts.size() - 1, 0) {}

    bool visited(index v) const { return mark_[toSize(v)] == done; }
    /// Appends to `order` and returns the first position. With `keep`, vertices are not marked as visited.
    std::size_t search(index root, std::vector<index> &order, bool keep) {
        const std::size_t begin = order.size();
        const int seen = keep ? done : ++round_;
        mark_[toSize(root)] = seen;
        order.push_back(root);
        for (std::size_t at = begin; at < order.size(); at++) {
            const auto level = static_cast<std::ptrdiff_t>(order.size());
            const index v = order[at];
            for (index k = starts_[toSize(v)]; k < starts_[toSize(v) + 1]; k++) {
                const LocalIndex other = neighbours_[toSize(k)];
                // Ghosts and missing neighbours are outside the graph.
                if (other < 0 || other >= static_cast<index>(mark_.size()))
                    continue;
                int &mark = mark_[static_cast<std::size_t>(other)];
                if (mark == seen || mark == done)
                    continue;
                mark = seen;
                order.push_back(other);
            }
            // The neighbours that this vertex has added; ties by number, so that the order is reproducible.
            std::sort(order.begin() + level, order.end(),
                      [&](index a, index b) { return degree(a) != degree(b) ? degree(a) < degree(b) : a < b; });
        }
        return begin;
    }

  private:
    static constexpr int done = std::numeric_limits<int>::max();
    index degree(index v) const { return starts_[toSize(v) + 1] - starts_[toSize(v)]; }

    std::span<const index> starts_;
    std::span<const LocalIndex> neighbours_;
    std::vector<int> mark_;
    int round_ = 0;
};

} // namespace

// Two mappings: the first, in old numbers, tells owners which ranks copy which rows, from which the new order follows;
// owners then send the new numbers along the same lists, and the second mapping is made of these. O(entities) plus the
// sorts of ghosts. Invariant: ghosts ascend by new number, then image.
Renumbering renumber(std::shared_ptr<const GlobalMapping> global, std::span<const GhostEntity> ghosts,
                     std::span<const index> base) {
    const index owned = global->localSize();
    std::vector<index> numbers;
    numbers.reserve(ghosts.size());
    for (const GhostEntity &ghost : ghosts)
        numbers.push_back(ghost.global);
    std::vector<index> order = sortGhosts(numbers, ghosts);
    // Several images of an entity are ghosts of their own: numbers repeat.
    const auto before = GhostMapping::fromRepeatedPullList(global, inOrder(numbers, order));

    Renumbering result;
    result.newOfOld.resize(toSize(owned) + ghosts.size());
    RankLists readers = before->readerPeers();
    std::vector<index> place(toSize(owned)); // in the base order
    for (index k = 0; k < owned; k++)
        place[toSize(base.empty() ? k : base[toSize(k)])] = k;
    for (index &row : readers.values)
        row = place[toSize(row)];
    const std::vector<index> newPlace = inverseOrder(localityOrder(owned, readers));
    for (index old = 0; old < owned; old++)
        result.newOfOld[toSize(old)] = static_cast<LocalIndex>(newPlace[toSize(place[toSize(old)])]);

    for (index &row : readers.values)
        row = global->localBegin() + newPlace[toSize(row)];
    const RankLists told = sparseExchange(*global->context(), readers);
    for (std::size_t k = 0; k < order.size(); k++)
        numbers[toSize(order[k])] = told.values[k];
    order = sortGhosts(numbers, ghosts);
    for (std::size_t k = 0; k < order.size(); k++)
        result.newOfOld[toSize(owned + order[k])] = static_cast<LocalIndex>(owned + static_cast<index>(k));
    result.mapping = GhostMapping::fromRepeatedPullList(std::move(global), inOrder(numbers, order));
    return result;
}

// Each component is numbered breadth-first, neighbours by ascending degree; the whole order is reversed in the end. The
// root is the last vertex of two searches: the pseudo-peripheral vertex of George and Liu (ACM Transactions on
// Mathematical Software 5, 1979) with a fixed number of passes.
std::vector<index> reverseCuthillMcKee(std::span<const index> starts, std::span<const LocalIndex> neighbours) {
    BreadthFirst graph(starts, neighbours);
    std::vector<index> order;
    std::vector<index> trial;
    const auto vertices = static_cast<index>(starts.size()) - 1;
    order.reserve(toSize(vertices));
    for (index v = 0; v < vertices; v++) {
        if (graph.visited(v))
            continue;
        // Each pass goes to a vertex far from the last one.
        index end = v;
        for (int pass = 0; pass < 2; pass++) {
            trial.clear();
            graph.search(end, trial, false);
            end = trial.back();
        }
        graph.search(end, order, true);
    }
    std::reverse(order.begin(), order.end());
    return order;
}

} // namespace DNDS::Geom
