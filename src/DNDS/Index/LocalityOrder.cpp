#include "DNDS/Index/LocalityOrder.hpp"

#include <algorithm>
#include <span>

namespace DNDS {

// Inverts the readers' lists (rows by reader) to readers by row, by counting, then sorts boundary rows by their sets of
// readers. The sort is stable: rows of one set keep their order, and inner rows theirs.
// O(rows + entries) for the inversion, and comparisons of reader lists for the sort, which are short: most boundary
// rows have one or two readers.
std::vector<index> localityOrder(index rows, const RankLists &readers) {
    DNDS_CHECK(rows >= 0, ArgumentError, "an order of {} rows", rows);
    // For each row the positions of its readers, as CSR: ascending because lists are visited in order.
    std::vector<index> starts(static_cast<std::size_t>(rows) + 1, 0);
    for (const index row : readers.values) {
        DNDS_CHECK(row >= 0 && row < rows, IndexError, "a reader wants row {}, but there are {} rows", row, rows);
        ++starts[static_cast<std::size_t>(row) + 1];
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i)
        starts[i + 1] += starts[i];
    std::vector<int> readersOfRow(readers.values.size());
    std::vector<index> next(starts.begin(), starts.end() - 1);
    for (std::size_t k = 0; k < readers.size(); ++k)
        for (const index row : readers.list(k))
            readersOfRow[static_cast<std::size_t>(next[static_cast<std::size_t>(row)]++)] = readers.ranks[k];

    const auto readersOf = [&](index row) {
        const auto begin = static_cast<std::size_t>(starts[static_cast<std::size_t>(row)]);
        const auto end = static_cast<std::size_t>(starts[static_cast<std::size_t>(row) + 1]);
        return std::span<const int>(readersOfRow).subspan(begin, end - begin);
    };
    // Inner rows go to the result at once, boundary rows are sorted first.
    std::vector<index> order;
    std::vector<index> boundary;
    order.reserve(static_cast<std::size_t>(rows));
    for (index row = 0; row < rows; ++row)
        (readersOf(row).empty() ? order : boundary).push_back(row);
    // Example: with the groups {1}, {1, 2} and {2} in this order, each of ranks 1 and 2 reads one run.
    // Rows with the same first reader are contiguous; rows with several readers add runs for the others.
    std::stable_sort(boundary.begin(), boundary.end(), [&](index a, index b) {
        return std::ranges::lexicographical_compare(readersOf(a), readersOf(b));
    });
    order.insert(order.end(), boundary.begin(), boundary.end());
    return order;
}

// `order` must be a permutation; it is not checked.
std::vector<index> inverseOrder(const std::vector<index> &order) {
    std::vector<index> inverse(order.size());
    for (std::size_t k = 0; k < order.size(); ++k)
        inverse[static_cast<std::size_t>(order[k])] = static_cast<index>(k);
    return inverse;
}

} // namespace DNDS
