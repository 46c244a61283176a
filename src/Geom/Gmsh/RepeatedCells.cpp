#include "DNDS/Geom/Gmsh/RepeatedCells.hpp"

#include "DNDS/Geom/File/ElementBlocks.hpp"
#include "DNDS/Geom/Source/IndexPermutation.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace DNDS::Geom::Detail {

/// Cheap test: distinct pairs are few. Most files have one group for each entity and skip dropRepeated.
/// One gather of O(pairs) words from each rank.
bool mayRepeat(CommunicatorView comm, std::span<const index> entities, std::span<const index> groups) {
    std::set<std::pair<index, index>> pairs;
    for (std::size_t c = 0; c < entities.size(); c++)
        pairs.emplace(entities[c], groups[c]);
    std::vector<index> words;
    for (const auto &[entity, group] : pairs)
        words.insert(words.end(), {entity, group});
    words = comm.allGatherV(std::span<const index>(words));
    for (std::size_t k = 0; k < words.size(); k += 2)
        pairs.emplace(words[k], words[k + 1]);
    return std::ranges::adjacent_find(pairs, {}, &std::pair<index, index>::first) != pairs.end();
}

/// Rendezvous by the least node, as sorted lists of nodes: O(n log n) for n cells that meet at a rank. Of equal cells
/// the one with the lowest number stays, so the result does not depend on the number of ranks.
/// Equal cells have the same least node, so they meet on one rank. Two exchanges: 2 + nodes words a cell, and a
/// word for each dropped one. Comparison is exact, by the sorted nodes.
index dropRepeated(CommunicatorView comm, ElementBlock &cells) {
    const auto ranks = static_cast<std::uint64_t>(comm.size());
    CommunicatorContext &context = *CommunicatorContext::of(comm);
    const auto nodesOf = [&](std::size_t c) { return cells.nodesOf(static_cast<index>(c)); };
    // Cells of the same nodes meet at a rank; a record is their number of nodes, their number, their nodes.
    const RankLists met =
        sparseExchange(context, packByRank(
                                    comm.size(), cells.types.size(),
                                    [&](std::size_t c) {
                                        return static_cast<int>(
                                            mixBits(static_cast<std::uint64_t>(std::ranges::min(nodesOf(c)))) % ranks);
                                    },
                                    [&](std::size_t c) { return nodesOf(c).size() + 2; },
                                    [&](std::size_t c, index *words) {
                                        words[0] = std::ssize(nodesOf(c));
                                        words[1] = cells.first + static_cast<index>(c);
                                        std::ranges::copy(nodesOf(c), words + 2);
                                        std::sort(words + 2, words + 2 + words[0]);
                                    }));
    struct Cell {
        std::span<const index> nodes;
        index number;
        int rank;
    };
    std::vector<Cell> sorted;
    for (std::size_t k = 0; k < met.size(); k++)
        for (auto list = met.list(k); !list.empty(); list = list.subspan(static_cast<std::size_t>(list[0]) + 2))
            sorted.push_back({list.subspan(2, static_cast<std::size_t>(list[0])), list[1], met.ranks[k]});
    std::ranges::sort(sorted, [](const Cell &a, const Cell &b) {
        return std::ranges::equal(a.nodes, b.nodes) ? a.number < b.number
                                                    : std::ranges::lexicographical_compare(a.nodes, b.nodes);
    });
    // All but the first of a run of equal cells are reported to the ranks that have them.
    Outbox repeated;
    for (std::size_t k = 1; k < sorted.size(); k++)
        if (std::ranges::equal(sorted[k].nodes, sorted[k - 1].nodes))
            repeated.to(sorted[k].rank).push_back(sorted[k].number);
    const RankLists dropped = sparseExchange(context, repeated.take());

    std::vector<bool> drop(cells.types.size());
    for (const index number : dropped.values)
        drop[static_cast<std::size_t>(number - cells.first)] = true;
    ElementBlock kept;
    for (std::size_t c = 0; c < drop.size(); c++)
        if (!drop[c])
            appendElement(kept, cells.types[c], nodesOf(c), cells.fileIds[c]);
    cells = std::move(kept);
    numberBlock(comm, cells);
    return comm.allReduce(std::ssize(dropped.values), MPI_SUM);
}

} // namespace DNDS::Geom::Detail
