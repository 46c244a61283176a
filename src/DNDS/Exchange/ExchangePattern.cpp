#include "DNDS/Exchange/ExchangePattern.hpp"
#include "DNDS/Base/Error.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Index/Mappings.hpp"
#include "DNDS/Index/SortUnique.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace DNDS {

namespace {

/// A view of lists that the pattern or its mapping keeps, with the properties of each peer's rows.
PeerRows listed(const RankLists &lists) {
    PeerRows rows{lists.ranks, lists.starts, lists.values, {}};
    rows.lists.reserve(lists.size());
    for (std::size_t k = 0; k < lists.size(); ++k)
        rows.lists.emplace_back(lists.list(k));
    return rows;
}

/// Ranges where rows follow each other, which transports write without unpacking.
PeerRows rangesOrLists(const RankLists &lists) {
    PeerRows rows = listed(lists);
    for (RowList &list : rows.lists)
        if (list.extent().runs == 1)
            list = RowList(list.first(), list.first() + list.count());
    return rows;
}

/// Pairs without rows exchange no message: both sides leave them out, so that counts agree.
RankLists withoutEmpty(const RankLists &all) {
    RankLists lists;
    for (std::size_t k = 0; k < all.size(); ++k)
        if (!all.list(k).empty())
            lists.append(all.ranks[k], all.list(k));
    return lists;
}

/// Throws on this rank alone; `agreeOnCounts` passes it on. O(rows).
void requireRows(const RankLists &lists, const char *what, index size, int ranks) {
    DNDS_CHECK(
        lists.starts.size() == lists.ranks.size() + 1 && lists.starts.front() == 0 &&
            lists.starts.back() == static_cast<index>(lists.values.size()) && std::ranges::is_sorted(lists.starts),
        ArgumentError, "the starts of the {} rows must ascend from 0 to their number {}", what, lists.values.size());
    DNDS_CHECK(std::ranges::is_sorted(lists.ranks, std::ranges::less_equal()) &&
                   (lists.ranks.empty() || (lists.ranks.front() >= 0 && lists.ranks.back() < ranks)),
               ArgumentError, "the lists of {} rows must be in the order of ranks, of which there are 0 to {}", what,
               ranks - 1);
    for (std::size_t k = 0; k < lists.size(); ++k)
        for (const index row : lists.list(k))
            DNDS_CHECK(row >= 0 && row < size, IndexError,
                       "row {} is in the list of {} rows, with rank {}; there are {}", row, what, lists.ranks[k], size);
}

/// The same for boxes, by their extremes: O(boxes).
void requireRows(const ExchangePattern::PeerBoxes &boxes, const char *what, index size, int ranks) {
    DNDS_CHECK(boxes.ranks.size() == boxes.lists.size() &&
                   std::ranges::is_sorted(boxes.ranks, std::ranges::less_equal()) &&
                   (boxes.ranks.empty() || (boxes.ranks.front() >= 0 && boxes.ranks.back() < ranks)),
               ArgumentError, "the boxes of {} rows must be in the order of ranks, of which there are 0 to {}", what,
               ranks - 1);
    for (std::size_t k = 0; k < boxes.lists.size(); ++k) {
        const RowList &rows = boxes.lists[k];
        DNDS_CHECK(!rows.isList(), ArgumentError, "the {} rows with rank {} are a list: make boxes or a range of them",
                   what, boxes.ranks[k]);
        if (rows.count() == 0)
            continue;
        const index least = rows.isRange() ? rows.first() : rows.extent().least;
        const index most = rows.isRange() ? rows.first() + rows.count() - 1 : rows.extent().most;
        DNDS_CHECK(least >= 0 && most < size, IndexError,
                   "row {} is in the boxes of {} rows, with rank {}; there are {}", least < 0 ? least : most, what,
                   boxes.ranks[k], size);
    }
}

/// A set of rows: one bit each.
/// rows / 8 bytes. Whole words are tested and set, so a run of n rows costs n / 64 steps.
class RowBits {
  public:
    explicit RowBits(index rows) : words_(toSize((rows + bitsOfWord - 1) / bitsOfWord)) {}
    /// Adds the rows [first, last) up to the first one that is there already; returns that, or `last`. O(rows / 64).
    index add(index first, index last) {
        // Word by word: the bits of the rows that lie in it, all at once.
        for (index row = first; row < last;) {
            const index end = std::min(last, (row / bitsOfWord + 1) * bitsOfWord);
            const std::uint64_t bits = (~std::uint64_t{0} >> (bitsOfWord - (end - row))) << (row % bitsOfWord);
            std::uint64_t &word = words_[toSize(row / bitsOfWord)];
            if (const std::uint64_t twice = word & bits; twice != 0)
                return row / bitsOfWord * bitsOfWord + std::countr_zero(twice);
            word |= bits;
            row = end;
        }
        return last;
    }

  private:
    static constexpr index bitsOfWord = 64;
    std::vector<std::uint64_t> words_;
};

void requireOnce(const PeerRows &received, index sonSize) {
    // A ghost with two senders would have the contents of the later one. O(runs + ghosts / 64).
    RowBits seen(sonSize);
    for (const RowList &rows : received.lists)
        rows.forEachRun([&](index first, index last) {
            const index twice = seen.add(first, last);
            DNDS_CHECK(twice == last, ArgumentError, "ghost {} is received twice: give it one owner", twice);
        });
}

/// Ranks and counts without rows.
RankLists countsOf(const ExchangePattern::PeerBoxes &boxes) {
    RankLists counts;
    counts.ranks = boxes.ranks;
    counts.starts = {0};
    for (const RowList &rows : boxes.lists)
        counts.starts.push_back(counts.starts.back() + rows.count());
    return counts;
}

ExchangePattern::PeerBoxes withoutEmpty(ExchangePattern::PeerBoxes all) {
    ExchangePattern::PeerBoxes boxes;
    for (std::size_t k = 0; k < all.lists.size(); ++k)
        if (all.lists[k].count() > 0)
            boxes.append(all.ranks[k], std::move(all.lists[k]));
    return boxes;
}

/// The key of one pair's message, for sums over ranks.
std::uint64_t keyOf(std::uint64_t serial, int sender, int receiver, index rows) {
    ContentHash hash;
    for (const std::uint64_t term : {serial, static_cast<std::uint64_t>(sender), static_cast<std::uint64_t>(receiver),
                                     static_cast<std::uint64_t>(rows)})
        hash.add(term);
    return hash.value();
}

/// Throws StateError on all ranks unless each gives as many rows as the other expects. Collective; one reduction where
/// all is well.
/// O(peers) hashes and one reduction of two words where all agree; otherwise a sparse exchange finds the pair to
/// name. Row numbers are not compared: patterns from lists have no global ones.
void agreeOnCounts(CommunicatorContext &context, std::uint64_t serial, const ExchangePattern::Rows &rows,
                   const std::exception_ptr &mine) {
    const CommunicatorView &comm = context.comm();
    // One sum over all ranks is 0 if all agree, and by accident with a probability of 2^-64: each pair's key
    // (serial, both ranks, number of rows) is added by the sender and subtracted by the receiver, and each rank
    // adds the key of its own serial and subtracts the next rank's, as it would be with this serial.
    std::array<std::uint64_t, 2> sums{mine ? 1U : 0U, keyOf(serial, comm.rank(), 0, 0) -
                                                          keyOf(serial, (comm.rank() + 1) % comm.size(), 0, 0)};
    const auto countOf = [](const RankLists &lists, std::size_t k) { return lists.starts[k + 1] - lists.starts[k]; };
    for (std::size_t k = 0; k < rows.given.size(); ++k)
        sums[1] += keyOf(serial, comm.rank(), rows.given.ranks[k], countOf(rows.given, k));
    for (std::size_t k = 0; k < rows.received.size(); ++k)
        sums[1] -= keyOf(serial, rows.received.ranks[k], comm.rank(), countOf(rows.received, k));
    comm.allReduce(sums.data(), 2, MPI_SUM);
    if (sums[0] != 0)
        comm.agree(mine);
    if (sums[1] == 0) [[likely]]
        return;
    // Some pair disagrees: owners tell their counts, and the first reader that finds a difference names the pair.
    RankLists told;
    for (std::size_t k = 0; k < rows.given.size(); ++k) {
        const index count = countOf(rows.given, k);
        told.append(rows.given.ranks[k], {&count, 1});
    }
    const RankLists heard = sparseExchange(context, told);
    comm.guarded([&] {
        const auto at = [](const RankLists &lists, int rank) {
            return static_cast<std::size_t>(std::ranges::find(lists.ranks, rank) - lists.ranks.begin());
        };
        const auto compare = [&](int owner) {
            const std::size_t expected = at(rows.received, owner);
            const std::size_t given = at(heard, owner);
            const index here = expected < rows.received.size() ? countOf(rows.received, expected) : 0;
            const index there = given < heard.size() ? heard.list(given).front() : 0;
            DNDS_CHECK(here == there, StateError,
                       "rank {} gives {} rows to rank {}, which expects {}: name the same rows, in the same order, on "
                       "both ranks",
                       owner, there, comm.rank(), here);
        };
        std::ranges::for_each(rows.received.ranks, compare);
        std::ranges::for_each(heard.ranks, compare);
    });
    throw StateError("ranks make different patterns: make mappings and patterns in the same order on all ranks");
}

} // namespace

ExchangePattern::ExchangePattern(std::shared_ptr<const GhostMapping> mapping) : mapping_(std::move(mapping)) {
    DNDS_CHECK(mapping_ != nullptr, StateError, "an exchange pattern needs a ghost mapping: create it first");
    // O(peers): lists stay with the mapping, and ranges need two numbers each.
    // Ghosts of a mapping are sorted by owner: the ghosts of one owner are a range, and a pull writes them without
    // unpacking. Only the numbers of sent rows are lists, which stay with the mapping.
    context_ = mapping_->global()->context();
    serial_ = mapping_->serial();
    fatherSize_ = mapping_->fatherSize();
    sonSize_ = mapping_->ghostSize();
    readers_ = listed(mapping_->readerPeers());
    const RankLists &ghosts = mapping_->ownerPeers();
    owners_ = {ghosts.ranks, ghosts.starts, {}, {}};
    for (std::size_t k = 0; k < ghosts.size(); ++k)
        owners_.lists.emplace_back(ghosts.starts[k], ghosts.starts[k + 1]);
}

// `readers_` and `owners_` are views of `rows_`, which is initialised before them and never changes.
ExchangePattern::ExchangePattern(std::shared_ptr<CommunicatorContext> context, std::uint64_t serial, Rows rows)
    : context_(std::move(context)), serial_(serial), fatherSize_(rows.fatherSize), sonSize_(rows.sonSize),
      rows_(std::move(rows)), readers_(listed(rows_.given)), owners_(rangesOrLists(rows_.received)) {}

// Boxes stay boxes: `rows_` has only ranks and counts, to which the views point; row numbers are not expanded.
ExchangePattern::ExchangePattern(std::shared_ptr<CommunicatorContext> context, std::uint64_t serial, Boxes boxes)
    : context_(std::move(context)), serial_(serial), fatherSize_(boxes.fatherSize),
      sonSize_(boxes.sonSize), rows_{fatherSize_, sonSize_, countsOf(boxes.given), countsOf(boxes.received)},
      readers_{rows_.given.ranks, rows_.given.starts, {}, std::move(boxes.given.lists)},
      owners_{rows_.received.ranks, rows_.received.starts, {}, std::move(boxes.received.lists)},
      pushOrder_(std::move(boxes.pushOrder)) {}

std::vector<index> PeerRows::allRows() const {
    std::vector<index> rows;
    rows.reserve(starts.empty() ? 0 : static_cast<std::size_t>(starts.back() - starts.front()));
    forEachRow([&](index row) { rows.push_back(row); });
    return rows;
}

// Collective: one number (local) and one reduction. All checks of one rank's lists come before it, and their failure
// is part of it, so no rank waits for one that has thrown.
template <class Described>
std::shared_ptr<const ExchangePattern> ExchangePattern::make(const std::shared_ptr<CommunicatorContext> &context,
                                                             const std::function<Described()> &describe) {
    // Everything local first, with its exception kept; then one agreement on failures and counts. Nothing else
    // tells the sides of a pair that their lists match: rows have no global numbers here.
    DNDS_CHECK(context != nullptr, ArgumentError, "a pattern needs a communicator's context");
    const CommunicatorContext::SetUp setUp(*context);
    const int ranks = context->comm().size();
    const std::uint64_t serial = context->nextSerial();
    std::shared_ptr<const ExchangePattern> made;
    std::exception_ptr failure;
    try { // here, so that errors name this function
        setUp.requireAlone();
        Described rows = describe();
        DNDS_CHECK(rows.fatherSize >= 0 && rows.sonSize >= 0, ArgumentError,
                   "a pattern cannot have {} owned rows and {} ghosts", rows.fatherSize, rows.sonSize);
        requireRows(rows.given, "given", rows.fatherSize, ranks);
        requireRows(rows.received, "received", rows.sonSize, ranks);
        rows.given = withoutEmpty(std::move(rows.given));
        rows.received = withoutEmpty(std::move(rows.received));
        made.reset(new ExchangePattern(context, serial, std::move(rows)));
        requireOnce(made->owners_, made->sonSize_);
    } catch (...) {
        failure = std::current_exception();
    }
    static const Rows none; // nothing is allocated between here and the reduction
    agreeOnCounts(*context, serial, failure ? none : made->rows_, failure);
    return made;
}

std::shared_ptr<const ExchangePattern> ExchangePattern::fromLists(const std::shared_ptr<CommunicatorContext> &context,
                                                                  const std::function<Rows()> &describe) {
    return make(context, describe);
}

std::shared_ptr<const ExchangePattern> ExchangePattern::fromBoxes(const std::shared_ptr<CommunicatorContext> &context,
                                                                  const std::function<Boxes()> &describe) {
    return make(context, describe);
}

// Collective; one sparse exchange, O(ghosts + rows sent). Owners learn positions in a list that both sides have, so the
// order of rows in each message is that of the whole pattern.
// Invariant: positions ascend for each owner, so restricted messages keep the order of rows of the whole pattern.
std::shared_ptr<const ExchangePattern> ExchangePattern::restrictedTo(std::span<const index> ghosts) const {
    const CommunicatorContext::SetUp setUp(*context_);
    const std::uint64_t serial = context_->nextSerial();
    RankLists wanted; // for each owner: numbers in its list of sent rows
    Rows rows{fatherSize_, sonSize_, {}, {}};
    std::exception_ptr failure;
    try { // here, so that errors name this function
        setUp.requireAlone();
        DNDS_CHECK(!weak_from_this().expired(), StateError, "a pattern that is restricted is kept by a shared_ptr");
        // Owners are told positions in their own lists of sent rows, which both sides have in the same order: no
        // global numbers are needed.
        std::vector<bool> keep(static_cast<std::size_t>(sonSize_));
        for (const index row : ghosts) {
            DNDS_CHECK(row >= 0 && row < sonSize_, IndexError, "there is no ghost {}, but 0 to {}", row, sonSize_ - 1);
            keep[static_cast<std::size_t>(row)] = true;
        }
        // Both lists of an owner, positions for it and ghosts for this rank, are in the order of its whole list.
        for (std::size_t k = 0; k < owners_.size(); ++k) {
            std::vector<index> numbers{static_cast<index>(serial_)}; // first: of which pattern
            std::vector<index> kept;
            index number = 0;
            owners_.lists[k].forEach([&](index row) {
                if (keep[static_cast<std::size_t>(row)]) {
                    numbers.push_back(number);
                    kept.push_back(row);
                    keep[static_cast<std::size_t>(row)] = false;
                }
                ++number;
            });
            if (kept.empty())
                continue;
            wanted.append(owners_.ranks[k], numbers);
            rows.received.append(owners_.ranks[k], kept);
        }
        // Flags are reset where an owner was found.
        const auto left = std::ranges::find(keep, true);
        DNDS_CHECK(left == keep.end(), IndexError, "nobody sends ghost {} by this pattern", left - keep.begin());
    } catch (...) {
        failure = std::current_exception();
    }
    // The owners' side: for each reader, the rows that it still wants.
    const RankLists heard = sparseExchange(*context_, wanted, PeerDiscovery::Auto, failure);
    std::shared_ptr<ExchangePattern> made;
    context_->comm().guarded([&] {
        for (std::size_t k = 0; k < heard.size(); ++k) {
            const auto numbers = heard.list(k);
            const auto reader = std::ranges::find(readers_.ranks, heard.ranks[k]) - readers_.ranks.begin();
            DNDS_CHECK(numbers.front() == static_cast<index>(serial_) &&
                           static_cast<std::size_t>(reader) < readers_.ranks.size(),
                       StateError,
                       "rank {} restricts pattern {} where rank {} restricts pattern {}: restrict them in the same "
                       "order on all ranks",
                       heard.ranks[k], numbers.front(), context_->comm().rank(), serial_);
            // The rows in the order of this rank's whole list, from which the positions choose.
            std::vector<index> all;
            readers_.lists[static_cast<std::size_t>(reader)].forEach([&](index row) { all.push_back(row); });
            std::vector<index> given;
            for (const index number : numbers.subspan(1))
                given.push_back(all[static_cast<std::size_t>(number)]);
            rows.given.append(heard.ranks[k], given);
        }
        made.reset(new ExchangePattern(context_, serial, std::move(rows)));
        made->mapping_ = mapping_;
        made->whole_ = shared_from_this();
    });
    return made;
}

// Called under `classified_`, once a pattern. Both lists ascend.
void ExchangePattern::classifyRows() const {
    // Boundary rows sorted without duplicates; inner rows are the others, by one merge. O(owned rows + rows sent).
    boundary_ = sortedUnique(readers().allRows());
    inner_.clear(); // what an attempt without memory left
    inner_.reserve(static_cast<std::size_t>(fatherSize()) - boundary_.size());
    auto next = boundary_.begin();
    for (index row = 0; row < fatherSize(); ++row) {
        if (next != boundary_.end() && *next == row)
            ++next;
        else
            inner_.push_back(row);
    }
}

// Computed at the first call, for programs that overlap; call_once, since a pattern is shared between threads.
std::span<const index> ExchangePattern::boundaryRows() const {
    std::call_once(classified_, [this] { classifyRows(); });
    return boundary_;
}

std::span<const index> ExchangePattern::innerRows() const {
    std::call_once(classified_, [this] { classifyRows(); });
    return inner_;
}

} // namespace DNDS
