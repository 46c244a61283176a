/// @file Rendezvous.hpp
/// @brief Records sent to the rank that owns their subject, where they meet those of other ranks, and
/// questions that this rank answers.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <exception>
#include <map>
#include <numeric>
#include <span>
#include <type_traits>
#include <vector>

namespace DNDS {

/// Reads records word by word. Local.
class RecordReader {
  public:
    explicit RecordReader(std::span<const index> words) : words_(words) {}

    bool atEnd() const noexcept { return words_.empty(); }
    std::span<const index> rest() const noexcept { return words_; }
    index next() {
        const index word = words_.front();
        words_ = words_.subspan(1);
        return word;
    }
    real nextReal() { return std::bit_cast<real>(next()); }
    std::array<real, 3> nextPoint() { return {nextReal(), nextReal(), nextReal()}; } // braces: from left to right
    std::span<const index> next(index count) {
        const auto part = words_.first(static_cast<std::size_t>(count));
        words_ = words_.subspan(static_cast<std::size_t>(count));
        return part;
    }

  private:
    /// Words that are not read yet.
    std::span<const index> words_;
};

inline index packReal(real value) { return std::bit_cast<index>(value); }

/// Record `i` of `count` has `widthOf(i)` words, which `write(i, words)` fills, and is sent to rank `rankOf(i)`, or
/// dropped if that is negative; records for one rank stay in order. Local. O(words + ranks).
template <class RankOf, class WidthOf, class Write>
RankLists packByRank(int ranks, std::size_t count, RankOf &&rankOf, WidthOf &&widthOf, Write &&write) {
    // Counting sort by rank: sizes, their prefix sums, then each record at its place. `starts[r]` moves to the end
    // of rank r's part, which is the start of the next.
    std::vector<index> starts(static_cast<std::size_t>(ranks) + 1, 0);
    for (std::size_t i = 0; i < count; i++)
        if (const int rank = rankOf(i); rank >= 0)
            starts[static_cast<std::size_t>(rank) + 1] += static_cast<index>(widthOf(i));
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    RankLists lists;
    lists.values.resize(static_cast<std::size_t>(starts.back()));
    for (int rank = 0; rank < ranks; rank++)
        if (const auto r = static_cast<std::size_t>(rank); starts[r + 1] > starts[r]) {
            lists.ranks.push_back(rank);
            lists.starts.push_back(starts[r + 1]);
        }
    for (std::size_t i = 0; i < count; i++)
        if (const int rank = rankOf(i); rank >= 0) {
            index &at = starts[static_cast<std::size_t>(rank)];
            write(i, lists.values.data() + at);
            at += static_cast<index>(widthOf(i));
        }
    return lists;
}

/// The numbers 0 .. count - 1 in lists for the ranks `rankOf(i)`, as above; in each list they ascend. Local. O(count +
/// ranks).
template <class RankOf>
RankLists groupByRank(int ranks, std::size_t count, RankOf &&rankOf) {
    return packByRank(
        ranks, count, rankOf, [](std::size_t) { return 1; },
        [](std::size_t i, index *word) { *word = static_cast<index>(i); });
}

/// Sends record `make(i)` of each of `count` items, a trivially copyable type of whole words, to rank `rankOf(i)`, or
/// to none if that is negative. Returns arriving records, by rank and in the order of their items. Collective; one
/// sparse exchange, which throws `failure`, an earlier exception of a rank, on all.
template <class RankOf, class Make>
auto exchangeRecords(CommunicatorContext &context, std::size_t count, RankOf &&rankOf, Make &&make,
                     const std::exception_ptr &failure = nullptr) {
    using Record = decltype(make(std::size_t{}));
    static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) % sizeof(index) == 0);
    constexpr std::size_t words = sizeof(Record) / sizeof(index);
    const auto write = [&](std::size_t i, index *to) {
        const Record record = make(i);
        std::memcpy(to, &record, sizeof(Record));
    };
    const RankLists received =
        sparseExchange(context,
                       packByRank(
                           context.comm().size(), count, rankOf, [](std::size_t) { return words; }, write),
                       PeerDiscovery::Auto, failure);
    std::vector<Record> records(received.values.size() / words);
    if (!records.empty())
        std::memcpy(records.data(), received.values.data(), records.size() * sizeof(Record));
    return records;
}

/// Words for other ranks, collected in any order of ranks.
class Outbox {
  public:
    std::vector<index> &to(int rank) { return lists_[rank]; }
    /// The words as `sparseExchange` takes them. Empties the box.
    RankLists take() {
        RankLists lists;
        for (const auto &[rank, values] : lists_)
            lists.append(rank, values);
        lists_.clear();
        return lists;
    }

  private:
    /// Ordered by rank, as RankLists asks.
    std::map<int, std::vector<index>> lists_;
};

/// For each item `i` of `count`, asks the owner `rankOf(i)` about the number `keyOf(i)`. There
/// `answer(number, reply)` appends the reply, a word at least; here `take(i, reader)` reads it, all of it, once for
/// each item: in the order of the ranks, and for one rank in that of the items. Collective; two sparse exchanges.
/// Exceptions of `answer` on any rank are thrown on all, and so is `failure`, an earlier exception of this rank.
template <class RankOf, class KeyOf, class Answer, class Take>
void queryOwners(CommunicatorContext &context, std::size_t count, RankOf &&rankOf, KeyOf &&keyOf, Answer &&answer,
                 Take &&take, const std::exception_ptr &failure = nullptr) {
    const int ranks = context.comm().size();
    RankLists items;
    RankLists questions;
    std::exception_ptr mine = failure;
    attempt(mine, [&] {
        if (!failure)
            items = groupByRank(ranks, count, rankOf);
        questions = items;
        for (index &question : questions.values)
            question = keyOf(static_cast<std::size_t>(question));
    });
    // First exchange: numbers alone. A rank that has failed takes part, so that all ranks throw here together.
    const RankLists asked = sparseExchange(context, questions, PeerDiscovery::Auto, mine);
    RankLists replies;
    attempt(mine, [&] {
        for (std::size_t k = 0; k < asked.size(); k++) {
            for (const index number : asked.list(k))
                answer(number, replies.values);
            // One list of replies for each list of questions, in its order: replies need no numbers.
            replies.ranks.push_back(asked.ranks[k]);
            replies.starts.push_back(static_cast<index>(replies.values.size()));
        }
    });
    if (mine)
        replies = {};
    const RankLists received = sparseExchange(context, replies, PeerDiscovery::Auto, mine);
    // Replies come in ascending order of ranks, as the questions did.
    RecordReader reader(received.values);
    for (const index i : items.values)
        take(static_cast<std::size_t>(i), reader);
}

} // namespace DNDS
