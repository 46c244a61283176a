/// @file RankQueries.hpp
/// @brief Questions about points to ranks that may know the answer, by the boxes of what they own.
#pragma once

#include "DNDS/Geom/Locate/BoundingBoxTree.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <cstddef>
#include <span>

namespace DNDS::Geom {

/// A tree of one box of each rank. Collective; O(ranks log ranks).
inline BoundingBoxTree treeOfRanks(const CommunicatorView &comm, const BoundingBox &mine) {
    return BoundingBoxTree(comm.allGatherV(std::span<const BoundingBox>(&mine, 1)));
}

/// A question about an item, a point for instance, to a rank.
struct RankQuery {
    int rank;
    std::size_t item;
};

/// Sends `width` words, which `write(item, words)` fills, with each query. There `answer(from, reader, reply)` reads
/// the words of one query and appends `replyWidth` words; here `take(rank, item, reader)` reads these. Collective; two
/// sparse exchanges; within `failTogether`.
template <class Write, class Answer, class Take>
void askRanks(CommunicatorContext &context, std::span<const RankQuery> queries, index width, Write &&write,
              index replyWidth, Answer &&answer, Take &&take) {
    const int ranks = context.comm().size();
    const auto rankOf = [&](std::size_t q) { return queries[q].rank; };
    const RankLists order = groupByRank(ranks, queries.size(), rankOf);
    const RankLists asked =
        sparseExchange(context, packByRank(
                                    ranks, queries.size(), rankOf, [&](std::size_t) { return width; },
                                    [&](std::size_t q, index *words) { write(queries[q].item, words); }));
    RankLists replies;
    for (std::size_t k = 0; k < asked.size(); k++) {
        for (RecordReader reader(asked.list(k)); !reader.atEnd();) {
            RecordReader question(reader.next(width));
            answer(asked.ranks[k], question, replies.values);
        }
        replies.ranks.push_back(asked.ranks[k]);
        replies.starts.push_back(static_cast<index>(replies.values.size()));
    }
    const RankLists received = sparseExchange(context, replies); // by the same ranks in the same order as the queries
    RecordReader reader(received.values);
    for (const index q : order.values) {
        RecordReader reply(reader.next(replyWidth));
        take(queries[toSize(q)].rank, queries[toSize(q)].item, reply);
    }
}

/// Writes a point as three words, for `RecordReader::nextPoint`. Local.
inline void writePoint(const Point &point, index *words) {
    for (std::size_t d = 0; d < 3; d++)
        words[d] = packReal(point[d]);
}

} // namespace DNDS::Geom
