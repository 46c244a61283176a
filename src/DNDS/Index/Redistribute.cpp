#include "DNDS/Index/Mappings.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Index/RowPacking.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"
#include "DNDS/Storage/ArrayBase.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace DNDS {

namespace {

void requireMapping(const std::shared_ptr<const GlobalMapping> &mapping) {
    DNDS_CHECK(mapping != nullptr, StateError, "rows are moved from one numbering to another: create theirs first");
}

/// Throws unless `places` is a permutation of [0, rows). Local.
void checkPermutation(std::span<const index> places, index rows) {
    DNDS_CHECK(static_cast<index>(places.size()) == rows, ArgumentError, "{} places for {} rows", places.size(), rows);
    // Places equal rows in number, each is in range and none comes twice: a permutation. O(rows).
    std::vector<bool> taken(places.size());
    for (std::size_t row = 0; row < places.size(); ++row) {
        const index place = places[row];
        DNDS_CHECK(place >= 0 && place < rows, IndexError, "row {} is to become row {} of {}", row, place, rows);
        DNDS_CHECK(!taken[toSize(place)], IndexError, "row {} is to become row {}, and so is another", row, place);
        taken[toSize(place)] = true;
    }
}

/// The rows of one array received from one rank.
struct Arrival {
    std::span<const index> sizes;     ///< sizes of the rows in bytes, if they differ
    const std::byte *bytes = nullptr; ///< null for rows that stay on their rank, until they are copied
};

/// Whether rows that stay must be set aside, because their array is overwritten before they are copied.
bool overwritesSources(std::span<const Redistribute::Move> arrays) {
    return std::ranges::any_of(arrays, [&](const Redistribute::Move &one) {
        return std::ranges::any_of(arrays, [&](const Redistribute::Move &other) { return other.from == one.to; });
    });
}

/// Rows that are consecutive both before and after.
struct RowRun {
    index from;
    index to;
    index count;
};

/// Pairs of rows joined to runs as long as both sides are consecutive: rows that stay mostly keep their neighbours.
std::vector<RowRun> runsOf(std::span<const index> from, std::span<const index> to) {
    std::vector<RowRun> runs;
    for (std::size_t i = 0; i < from.size(); ++i)
        if (!runs.empty() && from[i] == runs.back().from + runs.back().count &&
            to[i] == runs.back().to + runs.back().count)
            ++runs.back().count;
        else
            runs.push_back({from[i], to[i], 1});
    return runs;
}

/// Copies rows between two arrays of one layout, of `rowBytes` bytes each where that is fixed, else -1.
void copyRuns(const Detail::HostRows &rows, std::span<const RowRun> runs, index rowBytes, const RowPart &to) {
    const RowPart &from = rows.layout().parts[0];
    for (const RowRun &run : runs)
        // One copy a run, with padding between rows where strides are equal.
        if (rowBytes >= 0 && from.stride == to.stride)
            Detail::copyBytes(to.base + to.begin(run.to), from.base + from.begin(run.from),
                              (run.count - 1) * static_cast<index>(from.stride) + rowBytes);
        else
            for (index k = 0; k < run.count; ++k)
                Detail::copyBytes(to.base + to.begin(run.to + k), rows.begin(run.from + k), rows.bytes(run.from + k));
}

/// Gives `to` rows of these sizes, or of `width`, the width of `from` before the move. Their contents are
/// unspecified.
void resizeLike(const ArrayBase &from, rowsize width, ArrayBase &to, index rows, std::span<const rowsize> sizes) {
    const auto sizeOf = [&](index row) { return sizes[toSize(row)]; };
    if (isFixedLayout(from.shape().layout)) {
        if (&from != &to)
            to.resize(0); // the old contents need not be copied
        if (width != DynamicSize)
            to.resize(rows, width);
    } else if (from.shape().layout == ArrayLayout::Max && width != DynamicSize) {
        to.resize(rows, width, sizeOf);
    } else {
        to.resize(rows, sizeOf);
    }
}

/// Fills `to` with its rows. Row i of the k-th received list becomes row `places.list(k)[i]`; `staying` are the rows of
/// `from` that stay on this rank. Arrays are filled in place: every size is known and checked before, so that only
/// memory can run out here.
/// O(rows + bytes). The lists of all sources together name each new row once, so every row is written exactly once.
void takeRows(const RankLists &places, std::span<const Arrival> arrived, std::span<const RowRun> staying,
              const ArrayBase &from, rowsize width, ArrayBase &to) {
    const auto elementBytes = static_cast<index>(from.shape().elementBytes);
    const bool fixed = isFixedLayout(from.shape().layout);
    const index rowBytes = width * elementBytes; // if it is fixed
    // Sizes first, then one resize, then the rows, each at its place. Rows of a list lie one after another in the
    // message.
    std::vector<rowsize> sizes(fixed ? 0 : places.values.size());
    for (std::size_t k = 0; k < arrived.size() && !fixed; ++k)
        for (std::size_t i = 0; i < arrived[k].sizes.size(); ++i)
            sizes[toSize(places.list(k)[i])] = static_cast<rowsize>(arrived[k].sizes[i] / elementBytes);
    resizeLike(from, width, to, static_cast<index>(places.values.size()), sizes);
    if (places.values.empty())
        return;
    const RowLayout layout = to.rowLayout(MemorySpace::Host, Access::Write);
    const RowPart &elements = layout.parts[0];
    for (std::size_t k = 0; k < arrived.size(); ++k) {
        const auto bytesOf = [&](index row) { return fixed ? rowBytes : sizes[toSize(row)] * elementBytes; };
        const std::byte *bytes = arrived[k].bytes;
        if (bytes == nullptr) {
            copyRuns(Detail::HostRows(from), staying, fixed ? rowBytes : -1, elements);
            continue;
        }
        for (const index row : places.list(k)) {
            Detail::copyBytes(elements.base + elements.begin(row), bytes, bytesOf(row));
            bytes += bytesOf(row);
        }
    }
}

} // namespace

std::vector<index> Detail::lookUp(const GlobalMapping &mapping, std::span<const index> numbers,
                                  std::span<const index> rows) {
    // One question and one answer a row, to and from its owner: O(rows) words, two sparse exchanges. Rows that are
    // InvalidIndex are not asked for.
    std::vector<index> found;
    const std::exception_ptr failure = attempt([&] { found.assign(rows.size(), InvalidIndex); });
    queryOwners(
        *mapping.context(), rows.size(),
        [&](std::size_t i) { return rows[i] == InvalidIndex ? -1 : mapping.owner(rows[i]).rank; },
        [&](std::size_t i) { return rows[i]; },
        [&](index row, std::vector<index> &reply) { reply.push_back(numbers[toSize(row - mapping.localBegin())]); },
        [&](std::size_t i, RecordReader &reader) { found[i] = reader.next(); }, failure);
    return found;
}

// Collective: a sparse exchange of old numbers to the targets, the new numbering, and a sparse exchange of new numbers
// back (`number`). O(rows) words.
// Rows arrive by source rank, and by row within a source, since sparse exchanges sort by rank: the result does not
// depend on timing.
Redistribute Redistribute::toRanks(std::shared_ptr<const GlobalMapping> before, std::span<const int> targets) {
    requireMapping(before);
    CommunicatorContext &context = *before->context();
    const CommunicatorView &comm = context.comm();
    Redistribute made;
    made.before_ = std::move(before);
    // Rows are grouped by target in their present order, which makes the result independent of timing.
    RankLists numbers;
    std::exception_ptr failure;
    try { // here, so that errors name this function
        DNDS_CHECK(static_cast<index>(targets.size()) == made.before_->localSize(), ArgumentError,
                   "{} targets for {} rows", targets.size(), made.before_->localSize());
        for (std::size_t row = 0; row < targets.size(); ++row)
            DNDS_CHECK(targets[row] >= 0 && targets[row] < comm.size(), IndexError,
                       "row {} (global row {}) is to go to rank {}, but ranks are 0 to {}", row,
                       made.before_->localBegin() + static_cast<index>(row), targets[row], comm.size() - 1);
        made.leaving_ = groupByRank(comm.size(), targets.size(), [&](std::size_t row) { return targets[row]; });
        numbers = made.leaving_;
        for (index &row : numbers.values)
            row += made.before_->localBegin();
    } catch (...) {
        failure = std::current_exception();
    }
    // The old global numbers travel: they tell each target its rows, and are `oldNumbers` in the order of arrival.
    made.arriving_ = sparseExchange(context, numbers, PeerDiscovery::Auto, failure);
    comm.guarded([&] {
        made.oldNumbers_ = made.arriving_.values;
        std::iota(made.arriving_.values.begin(), made.arriving_.values.end(), index{0});
    });
    made.number();
    return made;
}

// Rows leave as before and arrive at other places: the ranks that gave them are told their new numbers by `number`.
Redistribute Redistribute::permuted(std::span<const index> places) const {
    Redistribute made;
    comm().guarded([&] {
        checkPermutation(places, after_->localSize());
        made = *this;
        for (index &row : made.arriving_.values)
            row = places[toSize(row)];
        for (std::size_t row = 0; row < places.size(); ++row)
            made.oldNumbers_[toSize(places[row])] = oldNumbers_[row];
    });
    made.number();
    return made;
}

// O(rows) words. Both exchanges of a movement use the same pairs of ranks, and lists keep their order: position i of
// a list is the same row on both ends.
void Redistribute::number() {
    // New numbers follow from the places, which their targets know; each target tells the sources. One sparse
    // exchange along the same pairs of ranks, the other way.
    after_ = GlobalMapping::create(comm(), static_cast<index>(arriving_.values.size()));
    RankLists told;
    const std::exception_ptr failure = attempt([&] {
        told = arriving_;
        for (index &row : told.values)
            row += after_->localBegin();
        newNumbers_.resize(leaving_.values.size());
    });
    const RankLists numbers = sparseExchange(*before_->context(), told, PeerDiscovery::Auto, failure);
    for (std::size_t i = 0; i < numbers.values.size(); ++i) // lists arrive in the order of ranks, as they were sent
        newNumbers_[toSize(leaving_.values[i])] = numbers.values[i];
}

Redistribute Redistribute::inverse() const {
    // Sources become targets: the same lists, read the other way. No communication.
    Redistribute made = *this;
    std::swap(made.before_, made.after_);
    std::swap(made.leaving_, made.arriving_);
    std::swap(made.newNumbers_, made.oldNumbers_);
    return made;
}

std::vector<index> Redistribute::newNumbers(std::span<const index> oldRows) const {
    return Detail::lookUp(*before_, newNumbers_, oldRows);
}

std::vector<index> Redistribute::oldNumbers(std::span<const index> newRows) const {
    return Detail::lookUp(*after_, oldNumbers_, newRows);
}

void Redistribute::move(const ArrayBase &from, ArrayBase &to) const {
    const Move both{&from, &to};
    move(std::span<const Move>(&both, 1));
}
void Redistribute::move(ArrayBase &array) const { move(array, array); }

// O(rows + bytes), one message a peer for all arrays. Arrays change only after all ranks have agreed that all
// messages are right.
void Redistribute::move(std::span<const Move> arrays) const {
    // One sparse exchange for all arrays. Buffers of sent rows are freed before received ones are unpacked.
    RankLists outgoing;
    const std::exception_ptr failure = attempt([&] { outgoing = packRows(arrays); });
    const RankLists incoming = sparseExchange(*before_->context(), outgoing, PeerDiscovery::Auto, failure);
    outgoing = {};
    unpackRows(arrays, incoming);
}

/// Each list holds the numberings and the number of arrays, then for each array: its signature, the row sizes if they
/// differ, the bytes of rows.
/// O(rows + bytes). Everything is padded to words of 8 bytes, so that parts stay aligned and messages are lists of
/// `index`.
RankLists Redistribute::packRows(std::span<const Move> arrays) const {
    std::vector<Detail::HostRows> rows;
    for (const Move &array : arrays) {
        DNDS_CHECK(array.from != nullptr && array.to != nullptr, ArgumentError, "an array to move is null");
        DNDS_CHECK(array.from->size() == before_->localSize(), ArgumentError,
                   "{} has {} rows, but rank {} moves {}: the arrays of one movement have the rows of its numbering",
                   array.from->label(), array.from->size(), comm().rank(), before_->localSize());
        DNDS_CHECK(array.from->layoutHash() == array.to->layoutHash(), LayoutError,
                   "rows of {} ({}) cannot be moved to {} ({})", array.from->label(), array.from->layoutSignature(),
                   array.to->label(), array.to->layoutSignature());
        rows.emplace_back(*array.from);
    }
    // Rows that stay are copied from array to array in `unpackRows`, unless a source is overwritten before: then
    // they go through the message to this rank itself.
    const bool setAside = overwritesSources(arrays);
    RankLists outgoing;
    std::vector<index> &words = outgoing.values;
    for (std::size_t k = 0; k < leaving_.size(); ++k) {
        const auto members = leaving_.list(k);
        for (const std::uint64_t number : {before_->serial(), after_->serial(), std::uint64_t{arrays.size()}})
            words.push_back(static_cast<index>(number));
        for (std::size_t a = 0; a < arrays.size(); ++a) {
            words.push_back(static_cast<index>(rows[a].layout().signature));
            if (!isFixedLayout(arrays[a].from->shape().layout))
                for (const index row : members)
                    words.push_back(rows[a].bytes(row));
            if (leaving_.ranks[k] != comm().rank() || setAside)
                Detail::appendRows(words, rows[a], members);
        }
        outgoing.ranks.push_back(leaving_.ranks[k]);
        outgoing.starts.push_back(static_cast<index>(words.size()));
    }
    return outgoing;
}

void Redistribute::unpackRows(std::span<const Move> arrays, const RankLists &incoming) const {
    // Two stages with an agreement each: read all messages and check them; then resize and fill the arrays.
    std::vector<std::vector<Arrival>> arrived; // of each array, from each rank
    std::vector<rowsize> widths;               // saved: an array changed below may be the source of a later one
    std::vector<RowRun> staying;
    comm().guarded([&] {
        const bool setAside = overwritesSources(arrays);
        for (const Move &array : arrays)
            widths.push_back(array.from->width());
        arrived.assign(arrays.size(), std::vector<Arrival>(incoming.size()));
        DNDS_CHECK(
            incoming.ranks == arriving_.ranks, StateError,
            "{} ranks send rows to rank {}, which expects rows of {}: call move of the same movement on all ranks",
            incoming.size(), comm().rank(), arriving_.size());
        for (std::size_t k = 0; k < incoming.size(); ++k) {
            if (incoming.ranks[k] == comm().rank() && !setAside) {
                const auto own = std::ranges::find(leaving_.ranks, comm().rank()) - leaving_.ranks.begin();
                staying = runsOf(leaving_.list(static_cast<std::size_t>(own)), arriving_.list(k));
            }
            const index rows = arriving_.starts[k + 1] - arriving_.starts[k];
            // The head tells whether the sender makes the same movement of the same arrays. All ranks check all
            // messages before any array changes, so that an error leaves the arrays as they were.
            RecordReader reader(incoming.list(k));
            const index fromBefore = reader.next();
            const index fromAfter = reader.next();
            DNDS_CHECK(fromBefore == static_cast<index>(before_->serial()) &&
                           fromAfter == static_cast<index>(after_->serial()),
                       StateError,
                       "rank {} moves rows from numbering {} to {}, but rank {} from {} to {}: call move of the same "
                       "movement on all ranks",
                       incoming.ranks[k], fromBefore, fromAfter, comm().rank(), before_->serial(), after_->serial());
            const index count = reader.next();
            DNDS_CHECK(count == static_cast<index>(arrays.size()), LayoutError,
                       "rank {} moves {} arrays, but rank {} {}: pass the same arrays on all ranks", incoming.ranks[k],
                       count, comm().rank(), arrays.size());
            for (std::size_t a = 0; a < arrays.size(); ++a) {
                const ArrayBase &from = *arrays[a].from;
                const auto mine = static_cast<index>(from.rowLayout(MemorySpace::Host).signature);
                DNDS_CHECK(
                    reader.next() == mine, LayoutError,
                    "array {} of those moved: rank {} moves {} ({}, of width {}), but rank {} another type or width", a,
                    comm().rank(), from.label(), from.layoutSignature(), from.width(), incoming.ranks[k]);
                index bytes = rows * from.width() * static_cast<index>(from.shape().elementBytes);
                if (!isFixedLayout(from.shape().layout)) {
                    arrived[a][k].sizes = reader.next(rows);
                    bytes = std::accumulate(arrived[a][k].sizes.begin(), arrived[a][k].sizes.end(), index{0});
                }
                if (incoming.ranks[k] == comm().rank() && !setAside)
                    continue;
                const auto words = reader.next(Detail::wordsOf(bytes));
                arrived[a][k].bytes = reinterpret_cast<const std::byte *>(words.data());
            }
        }
    });
    comm().guarded([&] { // from here on arrays change
        for (std::size_t a = 0; a < arrays.size(); ++a)
            takeRows(arriving_, arrived[a], staying, *arrays[a].from, widths[a], *arrays[a].to);
    });
}

} // namespace DNDS
