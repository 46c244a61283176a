#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"

#include "DNDS/Geom/Source/NumberTable.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace DNDS::Geom {

// O(entries log ghosts) time. The result keeps the order of entries within rows, on which slots of faces rely.
LocalAdjacency toLocal(const GlobalAdjacency &rows, const GhostMapping &mapping) {
    DNDS_CHECK(mapping.fatherSize() + mapping.ghostSize() <= std::numeric_limits<LocalIndex>::max(), ArgumentError,
               "{} owned entities and {} ghosts do not fit 32-bit local numbers", mapping.fatherSize(),
               mapping.ghostSize());
    LocalAdjacency result(rows.name(), rows.comm());
    result.resize(rows.size(), [&](index i) { return rows.rowSize(i); });
    const auto from = rows.view();
    const auto to = result.view();
    for (index i = 0; i < rows.size(); i++)
        for (rowsize k = 0; k < from[i].size(); k++) {
            const index global = from[i][k];
            if (global < 0) {
                to[i][k] = noEntity;
                continue;
            }
            // A search among the sorted ghosts unless the entity is owned.
            const auto local = mapping.toLocal(global);
            DNDS_CHECK(local.has_value(), IndexError,
                       "'{}': row {} has global entity {}, which is neither owned here nor a ghost", rows.label(), i,
                       global);
            to[i][k] = static_cast<LocalIndex>(*local);
        }
    return result;
}

// Not the exact inverse of `toLocal`: `notLocal` becomes InvalidIndex too, as its global number is unknown.
GlobalAdjacency toGlobal(const LocalAdjacency &rows, const GhostMapping &mapping) {
    GlobalAdjacency result(rows.name(), rows.comm());
    result.resize(rows.size(), [&](index i) { return rows.rowSize(i); });
    const auto from = rows.view();
    const auto to = result.view();
    for (index i = 0; i < rows.size(); i++)
        for (rowsize k = 0; k < from[i].size(); k++)
            to[i][k] = from[i][k] == noEntity || from[i][k] == notLocal ? InvalidIndex : mapping.toGlobal(from[i][k]);
    return result;
}

// The array's own layout is the same list of entries, so one copy fills it.
LocalAdjacency makeAdjacency(std::string name, CommunicatorView comm, std::span<const index> starts,
                             std::span<const LocalIndex> entries) {
    LocalAdjacency result(std::move(name), comm);
    result.resize(static_cast<index>(starts.size()) - 1,
                  [&](index i) { return static_cast<rowsize>(starts[toSize(i) + 1] - starts[toSize(i)]); });
    if (!entries.empty())
        std::copy(entries.begin(), entries.end(), result.data());
    return result;
}

/// Counting sort: count, prefix sums, fill. Rows are visited in `order` in the second pass only, as counts do not
/// depend on it.
LocalAdjacency transpose(std::string name, const LocalAdjacency &rows, index columns,
                         std::span<const LocalIndex> order) {
    std::vector<index> starts(toSize(columns) + 1, 0);
    const auto view = rows.view();
    for (index row = 0; row < rows.size(); row++) // in memory's order, where the order does not matter
        for (const LocalIndex column : view[row])
            if (column >= 0)
                starts[static_cast<std::size_t>(column) + 1]++;
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::vector<LocalIndex> entries(toSize(starts.back()));
    std::vector<index> next(starts.begin(), starts.end() - 1);
    for (const LocalIndex row : order)
        for (const LocalIndex column : view[row])
            if (column >= 0)
                entries[toSize(next[static_cast<std::size_t>(column)]++)] = row;
    return makeAdjacency(std::move(name), rows.comm(), starts, entries);
}

// With rows in ascending order, the rows of the result ascend, too.
LocalAdjacency transpose(std::string name, const LocalAdjacency &rows, index columns) {
    std::vector<LocalIndex> order(toSize(rows.size()));
    std::iota(order.begin(), order.end(), 0);
    return transpose(std::move(name), rows, columns, order);
}

// Remembers for each entry the last row that has it, so that rows need no sort (the sparse accumulator of Gilbert,
// Moler and Schreiber, Sparse matrices in MATLAB, SIAM J. Matrix Anal. Appl. 13, 1992). One word for each entity.
// O(sum of row lengths) time. Entries of a row appear in the order of first discovery, hence in an order that
// depends on `first` and `second` alone.
LocalAdjacency compose(std::string name, const LocalAdjacency &first, const LocalAdjacency &second) {
    const auto through = first.view();
    const auto to = second.view();
    LocalIndex last = -1;
    for (index row = 0; row < second.size(); row++)
        for (const LocalIndex entry : to[row])
            // The largest entry sizes the table of marks.
            last = std::max(last, entry);
    std::vector<index> seen(static_cast<std::size_t>(last) + 1, -1);
    std::vector<index> starts{0};
    std::vector<LocalIndex> entries;
    for (index row = 0; row < first.size(); row++) {
        for (const LocalIndex middle : through[row]) {
            DNDS_CHECK(middle < second.size(), IndexError, "compose: row {} of '{}' has {}, and '{}' has {} rows", row,
                       first.label(), middle, second.label(), second.size());
            if (middle < 0)
                continue;
            for (const LocalIndex entry : to[middle])
                // One lookup an entry: marks of earlier rows need no clearing.
                if (entry >= 0 && std::exchange(seen[static_cast<std::size_t>(entry)], row) != row)
                    entries.push_back(entry);
        }
        starts.push_back(static_cast<index>(entries.size()));
    }
    return makeAdjacency(std::move(name), first.comm(), starts, entries);
}

// One pass; rows may be kept repeatedly and in any order.
LocalAdjacency restricted(std::string name, const LocalAdjacency &rows, std::span<const LocalIndex> kept,
                          std::span<const LocalIndex> newNumbers) {
    std::vector<index> starts{0};
    std::vector<LocalIndex> entries;
    const auto view = rows.view();
    for (const LocalIndex row : kept) {
        DNDS_CHECK(row >= 0 && row < rows.size(), IndexError, "restricted: '{}' has {} rows, not a row {}",
                   rows.label(), rows.size(), row);
        for (const LocalIndex entry : view[row]) {
            DNDS_CHECK(entry < static_cast<index>(newNumbers.size()), IndexError,
                       "restricted: row {} of '{}' has {}, and new numbers are given for {}", row, rows.label(), entry,
                       newNumbers.size());
            if (entry >= 0 && newNumbers[static_cast<std::size_t>(entry)] >= 0)
                entries.push_back(newNumbers[static_cast<std::size_t>(entry)]);
        }
        starts.push_back(static_cast<index>(entries.size()));
    }
    return makeAdjacency(std::move(name), rows.comm(), starts, entries);
}

} // namespace DNDS::Geom
