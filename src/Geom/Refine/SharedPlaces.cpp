#include "DNDS/Geom/Refine/SharedPlaces.hpp"

#include "DNDS/Geom/Source/NumberTable.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace DNDS::Geom {

// The row of a place is rewritten whenever an earlier element asks for it.
std::pair<LocalIndex, bool> SharedPlaces::add(const PlaceKey &key, index order) {
    const auto [it, isNew] = slots.try_emplace(key, static_cast<LocalIndex>(keys.size()));
    if (isNew) {
        DNDS_CHECK(keys.size() < static_cast<std::size_t>(std::numeric_limits<LocalIndex>::max()), ArgumentError,
                   "more than {} shared nodes on one rank do not fit 32-bit local numbers: use more ranks",
                   keys.size());
        keys.push_back(key);
        orders.push_back(order);
        known.push_back(none);
        return {it->second, true};
    }
    index &first = orders[static_cast<std::size_t>(it->second)];
    const bool isFirst = order < first;
    first = std::min(first, order);
    return {it->second, isFirst};
}

namespace {

/// The requests of all ranks for places of this one, one entry of each list a request, in the order of arrival. `lists`
/// keeps the senders, to which answers go.
/// 6 + width words a request: four of the key, order, known node, and the row.
struct Gathered {
    std::size_t width;
    RankLists lists;
    std::vector<PlaceKey> keys;
    std::vector<index> orders;
    std::vector<index> known;
    std::vector<real> rows;

    Gathered(RankLists received, std::size_t rowWidth) : width(rowWidth), lists(std::move(received)) {
        for (RecordReader reader(lists.values); !reader.atEnd();) {
            PlaceKey &key = keys.emplace_back();
            for (index &word : key)
                word = reader.next();
            orders.push_back(reader.next());
            known.push_back(reader.next());
            for (std::size_t i = 0; i < width; i++)
                rows.push_back(reader.nextReal());
        }
        lists.values.clear();
    }
};

/// Numbers the gathered places; returns the number of each request.
///
/// Requests are sorted by place, then by element, so that equal places follow each other and the first of them is the
/// one whose row counts. Where nodes exist, the least counts.
/// O(n log n) for n requests. Negative numbers stand for new nodes until the scan over ranks gives the first number
/// of this rank.
std::vector<index> numberGathered(const GlobalMapping &blocks, const Gathered &gathered, NumberedPlaces &result) {
    std::vector<std::size_t> sorted(gathered.keys.size());
    std::iota(sorted.begin(), sorted.end(), std::size_t{0});
    std::sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) {
        return std::tie(gathered.keys[a], gathered.orders[a]) < std::tie(gathered.keys[b], gathered.orders[b]);
    });
    std::vector<index> numbers(sorted.size());
    index count = 0;
    for (std::size_t at = 0; at < sorted.size();) {
        const std::size_t first = sorted[at];
        std::size_t end = at;
        index node = SharedPlaces::none;
        for (; end < sorted.size() && gathered.keys[sorted[end]] == gathered.keys[first]; end++)
            node = std::min(node, gathered.known[sorted[end]]);
        if (node == SharedPlaces::none) {
            node = -1 - count++; // its final number is not known yet
            const auto row = gathered.rows.begin() + static_cast<std::ptrdiff_t>(first * gathered.width);
            result.rows.insert(result.rows.end(), row, row + static_cast<std::ptrdiff_t>(gathered.width));
        }
        for (; at < end; at++)
            numbers[sorted[at]] = node;
        result.held.emplace_back(gathered.keys[first], node);
    }
    const auto mapping = GlobalMapping::create(blocks.context()->comm(), count);
    result.first = blocks.globalSize() + mapping->localBegin();
    result.newNodes = mapping->globalSize();
    const auto finish = [&](index &node) { node = node < 0 ? result.first - 1 - node : node; };
    std::ranges::for_each(numbers, finish);
    for (auto &[key, node] : result.held)
        finish(node);
    return numbers;
}

} // namespace

// Rendezvous at the rank that has the least corner in its block of the file: blocks ascend with ranks and keys begin
// with the least corner, so that numbers in the order of keys are those of one rank with all places.
// Two exchanges: 6 + width words a place, and one word back. O(places) memory here and at the meeting rank.
NumberedPlaces numberPlaces(const GlobalMapping &blocks, const SharedPlaces &places, std::size_t width) {
    CommunicatorContext &context = *blocks.context();
    const auto rankOf = [&](std::size_t i) { return blocks.owner(places.keys[i][0] >> 5).rank; };
    const Gathered gathered(
        sparseExchange(context, packByRank(
                                    blocks.ranks(), places.keys.size(), rankOf, [&](std::size_t) { return 6 + width; },
                                    [&](std::size_t i, index *words) {
                                        words = std::ranges::copy(places.keys[i], words).out;
                                        *words++ = places.orders[i];
                                        *words++ = places.known[i];
                                        for (std::size_t k = 0; k < width; k++)
                                            *words++ = packReal(places.rows[i * width + k]);
                                    })),
        width);
    NumberedPlaces result;
    const std::vector<index> replies = numberGathered(blocks, gathered, result);
    // Answers: one word where a request had 6 + width.
    RankLists answers;
    answers.ranks = gathered.lists.ranks;
    for (std::size_t k = 1; k < gathered.lists.starts.size(); k++)
        answers.starts.push_back(gathered.lists.starts[k] / static_cast<index>(6 + width));
    answers.values = replies;
    const RankLists received = sparseExchange(context, answers);
    // groupByRank and packByRank give the same order, so answer i is that of place i of `asked`.
    const RankLists asked = groupByRank(blocks.ranks(), places.keys.size(), rankOf);
    result.numbers.resize(places.keys.size());
    for (std::size_t i = 0; i < asked.values.size(); i++)
        result.numbers[toSize(asked.values[i])] = received.values[i];
    return result;
}

} // namespace DNDS::Geom
