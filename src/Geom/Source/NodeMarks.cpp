#include "DNDS/Geom/Source/NodeMarks.hpp"

#include "DNDS/Mpi/Rendezvous.hpp"

#include <limits>
#include <utility>

namespace DNDS::Geom {

/// Rendezvous by node blocks: marks go to the owner of their node's block, whichever rank read them, and are sorted
/// and made unique there; then each rank asks the owners of its nodes. Two sparse exchanges and one query; O(marks +
/// nodes) memory.
/// Lists ascend and have no repeats, as commonMarks requires to intersect them.
CsrLists<int> fetchNodeMarks(const GlobalMapping &blocks, const SourceMesh &source, std::span<const index> nodes) {
    CommunicatorContext &context = *blocks.context();
    std::vector<std::pair<index, int>> table;
    for (const auto &[node, mark] : exchangeRecords(
             context, source.nodeMarks.size(),
             [&](std::size_t i) { return blocks.owner(source.nodeMarks[i].node).rank; },
             [&](std::size_t i) {
                 return std::array<index, 2>{source.nodeMarks[i].node, source.nodeMarks[i].mark};
             }))
        table.emplace_back(node, static_cast<int>(mark));
    std::sort(table.begin(), table.end());
    table.erase(std::unique(table.begin(), table.end()), table.end());
    std::vector<std::vector<int>> found(nodes.size());
    queryOwners(
        context, nodes.size(), [&](std::size_t i) { return blocks.owner(nodes[i]).rank; },
        [&](std::size_t i) { return nodes[i]; },
        [&](index node, std::vector<index> &reply) {
            const auto begin =
                std::lower_bound(table.begin(), table.end(), std::pair{node, std::numeric_limits<int>::min()});
            const auto end = std::lower_bound(begin, table.end(), std::pair{node + 1, std::numeric_limits<int>::min()});
            // A length and the marks.
            reply.push_back(end - begin);
            for (auto it = begin; it != end; ++it)
                reply.push_back(it->second);
        },
        [&](std::size_t i, RecordReader &reader) {
            for (index count = reader.next(); count > 0; count--)
                found[i].push_back(static_cast<int>(reader.next()));
        });
    CsrLists<int> result;
    for (const std::vector<int> &marks : found)
        result.append(marks);
    return result;
}

} // namespace DNDS::Geom
