#include "DNDS/Geom/Mesh/PeriodicNodes.hpp"

#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "DNDS/Geom/Source/NumberTable.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>

namespace DNDS::Geom {

namespace {

/// Nodes at the same position form a set, represented by its least node. Method: union-find with path halving (Tarjan
/// and van Leeuwen, Worst-case analysis of set union algorithms, Journal of the ACM 31, 1984).
/// Without union by rank, O(log nodes) amortised a call; in exchange the representative is the least local number.
/// Sets are small: 2 to 8 nodes.
class SamePlace {
  public:
    explicit SamePlace(index nodes) : parent_(toSize(nodes)) { std::iota(parent_.begin(), parent_.end(), 0); }

    LocalIndex find(LocalIndex node) {
        auto &parent = parent_;
        const auto at = [&](LocalIndex n) -> LocalIndex & { return parent[static_cast<std::size_t>(n)]; };
        while (at(node) != node)
            node = at(node) = at(at(node));
        return node;
    }
    // The lesser root represents the set.
    void join(LocalIndex a, LocalIndex b) {
        a = find(a);
        b = find(b);
        parent_[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
    }

  private:
    std::vector<LocalIndex> parent_;
};

// The square of the distance between two nodes.
real distance2(const UnstructuredMesh &mesh, LocalIndex a, LocalIndex b) {
    real sum = 0;
    for (rowsize d = 0; d < 3; d++)
        sum += (mesh.coordinates(a, d) - mesh.coordinates(b, d)) * (mesh.coordinates(a, d) - mesh.coordinates(b, d));
    return sum;
}

/// The node of `list` nearest to a node.
/// O(nodes of the face).
LocalIndex nearestOf(const UnstructuredMesh &mesh, std::span<const LocalIndex> list, LocalIndex node) {
    return *std::ranges::min_element(list, {}, [&](LocalIndex other) { return distance2(mesh, node, other); });
}

/// The two cells of a periodic face have nodes of their own. Those on the face are joined if each is the other's
/// nearest, at any distance: `linkPeriodic` has matched the corners, and sides may be further apart than cells are
/// thick. (Polyhedra may not: which of their nodes are on a face with the other side's nodes is not known.)
/// O(nodes of the face^2). Being mutual nearest is symmetric, so the result does not depend on which cell is first.
void joinNodes(const UnstructuredMesh &mesh, LocalIndex face, SamePlace &places) {
    const std::vector<LocalIndex> first = nodesOnFace(mesh, mesh.faceCells(face, 0), face);
    const std::vector<LocalIndex> second = nodesOnFace(mesh, mesh.faceCells(face, 1), face);
    for (const LocalIndex a : first)
        if (const LocalIndex b = nearestOf(mesh, second, a); nearestOf(mesh, first, b) == a)
            places.join(a, b);
}

/// Sorts entities by their numbers, from 0; those of one number stay in order. O(entities) for each 11 bits of the
/// largest number.
/// Least significant digit first, each pass stable. 2^11 counters stay in the first-level cache.
/// Method: radix sort (Knuth, The Art of Computer Programming 3, section 5.2.5). One scratch list of the same
/// length.
void sortByNumber(std::vector<LocalIndex> &entities, std::span<const index> numbers) {
    // Passes beyond the largest number's bits are left out.
    constexpr int digitBits = 11;
    constexpr index digits = index{1} << digitBits;
    index all = 0;
    for (const index number : numbers)
        all |= number;
    std::vector<LocalIndex> sorted(entities.size());
    for (int shift = 0; shift < 63 && (all >> shift) != 0; shift += digitBits) {
        const auto digitOf = [&](LocalIndex entity) {
            return toSize((numbers[static_cast<std::size_t>(entity)] >> shift) & (digits - 1));
        };
        std::array<std::size_t, toSize(digits) + 1> next{};
        for (const LocalIndex entity : entities)
            next[digitOf(entity) + 1]++;
        std::partial_sum(next.begin(), next.end(), next.begin());
        for (const LocalIndex entity : entities)
            sorted[next[digitOf(entity)]++] = entity;
        entities.swap(sorted);
    }
}

} // namespace

// Sorts by image first, then by number with a stable radix sort: O(cells) for each 11 bits of the largest number.
// Invariant: copies of a cell follow each other in an order that all ranks share.
std::vector<LocalIndex> cellsInFileOrder(const UnstructuredMesh &mesh) {
    // Ranks number images in the order of discovery, but all describe them by the same steps.
    std::vector<int> byImage(mesh.images.size());
    std::iota(byImage.begin(), byImage.end(), 0);
    std::ranges::sort(byImage, {}, [&](int image) { return mesh.images[static_cast<std::size_t>(image)].steps; });
    std::vector<int> placeOfImage(mesh.images.size());
    for (std::size_t place = 0; place < byImage.size(); place++)
        placeOfImage[static_cast<std::size_t>(byImage[place])] = static_cast<int>(place);

    std::vector<LocalIndex> order(toSize(mesh.cells.size()));
    std::iota(order.begin(), order.end(), 0);
    if (mesh.images.size() > 1)
        std::ranges::stable_sort(order, {}, [&](LocalIndex cell) {
            return placeOfImage[static_cast<std::size_t>(mesh.cells.images[static_cast<std::size_t>(cell)])];
        });
    sortByNumber(order, mesh.cells.fileNumbers);
    return order;
}

// Joins the nodes of the two sides of each periodic face that are nearest to each other by union-find.
std::vector<LocalIndex> nodePlaces(const UnstructuredMesh &mesh) {
    SamePlace places(mesh.nodes.size());
    for (LocalIndex f = 0; f < static_cast<LocalIndex>(mesh.faces.size()); f++) {
        const auto cells = mesh.faceCells[f];
        // Faces between cells of different images lie on a periodic boundary.
        if (cells[0] >= 0 && cells[1] >= 0 &&
            mesh.cells.images[static_cast<std::size_t>(cells[0])] !=
                mesh.cells.images[static_cast<std::size_t>(cells[1])])
            joinNodes(mesh, f, places);
    }
    std::vector<LocalIndex> result(toSize(mesh.nodes.size()));
    for (std::size_t n = 0; n < result.size(); n++)
        result[n] = places.find(static_cast<LocalIndex>(n));
    return result;
}

// Merges the rows of the nodes of each place in file order. O(entries) plus the sorts of rows. Invariant: nodes of one
// place get equal rows.
LocalAdjacency nodeCellsAcrossPeriodic(const UnstructuredMesh &mesh) {
    const std::vector<LocalIndex> places = nodePlaces(mesh);

    // Nodes by place: a sort by counting.
    const auto nodes = toSize(mesh.nodes.size());
    std::vector<index> starts(nodes + 1, 0);
    for (std::size_t n = 0; n < nodes; n++)
        starts[static_cast<std::size_t>(places[n]) + 1]++;
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::vector<LocalIndex> ofPlace(nodes);
    std::vector<index> next(starts.begin(), starts.end() - 1);
    for (std::size_t n = 0; n < nodes; n++)
        ofPlace[toSize(next[static_cast<std::size_t>(places[n])]++)] = static_cast<LocalIndex>(n);

    // Ranks of cells in file order, by which rows are sorted.
    const std::vector<LocalIndex> order = cellsInFileOrder(mesh);
    std::vector<LocalIndex> placeOfCell(order.size());
    for (std::size_t k = 0; k < order.size(); k++)
        placeOfCell[static_cast<std::size_t>(order[k])] = static_cast<LocalIndex>(k);
    std::vector<index> rowStarts{0};
    std::vector<LocalIndex> entries;
    rowStarts.reserve(nodes + 1);
    entries.reserve(toSize(mesh.nodeCells.dataSize()));
    for (std::size_t n = 0; n < nodes; n++) {
        const auto place = static_cast<std::size_t>(places[n]);
        const auto begin = static_cast<std::ptrdiff_t>(entries.size());
        for (index k = starts[place]; k < starts[place + 1]; k++)
            for (const LocalIndex c : mesh.nodeCells[ofPlace[toSize(k)]])
                entries.push_back(c);
        std::ranges::sort(entries.begin() + begin, entries.end(), {},
                          [&](LocalIndex cell) { return placeOfCell[static_cast<std::size_t>(cell)]; });
        entries.erase(std::unique(entries.begin() + begin, entries.end()), entries.end());
        rowStarts.push_back(static_cast<index>(entries.size()));
    }
    return makeAdjacency("node cells across periodic boundaries", mesh.comm, rowStarts, entries);
}

} // namespace DNDS::Geom
