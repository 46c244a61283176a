#include "DNDS/Serialize/RowBlocks.hpp"
#include "DNDS/Base/Error.hpp"

#include "DNDS/Index/RowPacking.hpp"
#include "DNDS/Mpi/FindCuts.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace DNDS::Detail {

// Finds the least id of each share by counting ids below trial values on all ranks, without moving ids: O(n log n) to
// sort own ids, then the reductions of `findCuts`. Method: the splitters of histogram sort (Kale and Krishnan, A
// comparison based parallel sorting algorithm, ICPP 1993).
std::vector<index> evenShares(CommunicatorView comm, std::span<const index> ids, int shares) {
    std::vector<index> sorted(ids.begin(), ids.end());
    std::sort(sorted.begin(), sorted.end());
    const index least = comm.allReduce(sorted.empty() ? std::numeric_limits<index>::max() : sorted.front(), MPI_MIN);
    const index largest = comm.allReduce(sorted.empty() ? index{0} : sorted.back(), MPI_MAX);
    const index all = comm.allReduce(static_cast<index>(sorted.size()), MPI_SUM);
    // Goals: the number of ids before each share.
    const EvenSplit split(all, shares);
    std::vector<index> goals(toSize(shares));
    for (int share = 0; share < shares; share++)
        goals[toSize(share)] = split.begin(share);
    const auto cuts =
        findCuts(comm, goals, static_cast<std::uint64_t>(std::min(least, largest)), static_cast<std::uint64_t>(largest),
                 [&](std::uint64_t id) {
                     return std::lower_bound(sorted.begin(), sorted.end(), static_cast<index>(id)) - sorted.begin();
                 });
    return {cuts.begin(), cuts.end()};
}

// A distributed ranking: the ranks of the file sort even shares of the ids, and a prefix sum over the shares makes
// positions global. Two sparse exchanges of one word per row, O(n log n) on average. Invariant: the row of an id is the
// number of smaller ids on all ranks, whatever the distribution.
// Shares are cut by count, not by range of ids, so that no rank sorts more than its part however ids are spread.
std::vector<index> rowsOfIds(CommunicatorContext &context, const FileRanks &files, std::span<const index> ids,
                             bool listed) {
    if (!listed)
        return {ids.begin(), ids.end()};
    const CommunicatorView comm = context.comm();
    const std::vector<index> shares = evenShares(comm, ids, files.count());
    const RankLists groups = groupByRank(comm.size(), ids.size(), [&](std::size_t i) {
        // The last share that begins at or before the id.
        const auto next = std::upper_bound(shares.begin(), shares.end(), ids[i]);
        return files.rank(static_cast<int>(next - shares.begin()) - 1);
    });
    RankLists outgoing = groups;
    for (index &id : outgoing.values)
        id = ids[toSize(id)];
    const RankLists asked = sparseExchange(context, outgoing);

    // The k-th smallest id of this rank's share is in row `before + k`.
    std::vector<index> order(asked.values.size());
    std::iota(order.begin(), order.end(), index{0});
    std::sort(order.begin(), order.end(),
              [&](index a, index b) { return asked.values[toSize(a)] < asked.values[toSize(b)]; });
    const index before = comm.exclusiveScan(static_cast<index>(order.size()));
    RankLists answers = asked;
    std::exception_ptr failure;
    for (std::size_t k = 0; k < order.size(); k++) {
        const index id = asked.values[toSize(order[k])];
        if (k > 0 && id == asked.values[toSize(order[k - 1])] && !failure)
            failure = std::make_exception_ptr(
                ArgumentError(fmt::format("two rows have the id {}: ids must be unique over all ranks", id)));
        answers.values[toSize(order[k])] = before + static_cast<index>(k);
    }
    const RankLists back = sparseExchange(context, answers, PeerDiscovery::Auto, failure);
    std::vector<index> places(ids.size());
    for (std::size_t i = 0; i < places.size(); i++) // replies are in the order of ranks, as the lists sent
        places[toSize(groups.values[i])] = back.values[i];
    return places;
}

// Each row travels once, as whole words; rows whose block this rank writes are copied from the array. Rows arrive in
// any order; two that claim one place, or a place without a row, reveal repeated ids. Cost: one sparse exchange of 8 to
// 24 bytes a row and the rows' bytes, twice in memory on the receiving rank.
RowSlab gatherSlab(CommunicatorContext &context, const FileRanks &files, const CheckpointArray &target,
                   const ArrayBase &array, std::span<const index> places, std::span<const index> ids) {
    const CommunicatorView comm = context.comm();
    const BlockSpread spread(target, files);
    RankLists outgoing;
    RowSlab slab;
    slab.first = spread.firstRow(comm.rank());
    slab.rows = spread.firstRow(comm.rank() + 1) - slab.first;
    slab.rowBytes = target.width * target.elementBytes;
    std::vector<std::span<const std::byte>> found; // the bytes of each row of the slab; null until it is found
    const auto add = [&](index place, const std::byte *from, index bytes, index id) {
        static constexpr std::byte nothing{}; // an empty row may have no address
        const std::size_t row = toSize(place - slab.first);
        DNDS_CHECK(found[row].data() == nullptr, ArgumentError,
                   "{}: two rows have the id {}: ids must be unique over all ranks", target.name, place);
        found[row] = {bytes == 0 ? &nothing : from, toSize(bytes)};
        if (target.listed)
            slab.ids[row] = id;
    };
    const std::exception_ptr failure = attempt([&] { // of each row: its place, its id and size if need be, its bytes
        const HostRows rows(array);
        found.resize(toSize(slab.rows));
        slab.ids.resize(target.listed ? found.size() : 0);
        std::vector<int> ranks(toSize(array.size())); // -1 where the row stays
        for (std::size_t i = 0; i < ranks.size(); i++) {
            const int owner = spread.owner(places[i]);
            ranks[i] = owner == comm.rank() ? -1 : owner;
            if (const auto row = static_cast<index>(i); owner == comm.rank())
                add(places[i], rows.begin(row), rows.bytes(row), ids[i]);
        }
        const index numbers = 1 + (target.listed ? 1 : 0) + (target.ragged ? 1 : 0);
        outgoing = packByRank(
            comm.size(), ranks.size(), [&](std::size_t i) { return ranks[i]; },
            [&](std::size_t i) { return numbers + wordsOf(rows.bytes(static_cast<index>(i))); },
            [&](std::size_t i, index *word) {
                const index bytes = rows.bytes(static_cast<index>(i));
                *word++ = places[i];
                if (target.listed)
                    *word++ = ids[i];
                if (target.ragged)
                    *word++ = bytes;
                copyBytes(reinterpret_cast<std::byte *>(word), rows.begin(static_cast<index>(i)), bytes);
            });
    });
    const RankLists incoming = sparseExchange(context, outgoing, PeerDiscovery::Auto, failure);
    // Before memory for the slab is taken.
    outgoing = {};

    comm.guarded([&] {
        for (RecordReader reader(incoming.values); !reader.atEnd();) {
            // `packByRank` has sent rows to the owners of their places only.
            const index place = reader.next();
            const index id = target.listed ? reader.next() : place;
            const index bytes = target.ragged ? reader.next() : slab.rowBytes;
            const auto *const from = reinterpret_cast<const std::byte *>(reader.rest().data());
            reader.next(wordsOf(bytes));
            add(place, from, bytes, id);
        }
        // Finds a missing row: by least, largest and number, ids are 0, 1, ..., but one of them is repeated.
        const auto missing =
            std::ranges::find(found, nullptr, [](std::span<const std::byte> bytes) { return bytes.data(); });
        DNDS_CHECK(missing == found.end(), ArgumentError,
                   "{}: no row has the id {}, and two have another: ids must be unique over all ranks", target.name,
                   slab.first + (missing - found.begin()));
        if (target.ragged) {
            slab.offsets.assign(found.size() + 1, 0);
            for (std::size_t row = 0; row < found.size(); row++)
                slab.offsets[row + 1] = slab.offsets[row] + static_cast<index>(found[row].size());
        }
        slab.values.reserve(toSize(slab.start(slab.rows)));
        for (const std::span<const std::byte> bytes : found)
            slab.values.insert(slab.values.end(), bytes.begin(), bytes.end());
    });
    return slab;
}

namespace {

/// The row of a slab that has this id. Throws DataError if no row has it.
index rowOf(index id, const CheckpointArray &source, const RowSlab &slab) {
    if (!source.listed)
        return id - slab.first;
    const auto at = std::lower_bound(slab.ids.begin(), slab.ids.end(), id);
    DNDS_CHECK(at != slab.ids.end() && *at == id, DataError, "{} has no row with the id {}", source.name, id);
    return at - slab.ids.begin();
}

/// For each list of ids asked for, the bytes of each of these rows, and then the rows.
/// O(log rows) for a listed id, O(1) else, plus the bytes of the rows. Answers keep the order of questions: ids are not
/// sent back.
RankLists answer(const RankLists &asked, const CheckpointArray &source, const RowSlab &slab) {
    RankLists answers;
    for (std::size_t k = 0; k < asked.size(); k++) {
        // Sizes first, so that receivers can cut the bytes.
        std::vector<index> rows;
        index bytes = 0;
        for (const index id : asked.list(k)) {
            const index row = rows.emplace_back(rowOf(id, source, slab));
            bytes += slab.start(row + 1) - slab.start(row);
        }
        for (const index row : rows)
            answers.values.push_back(slab.start(row + 1) - slab.start(row));
        appendBytes(answers.values, bytes, [&](std::byte *to) {
            for (const index row : rows) {
                const auto from = slab.bytes(row, row + 1);
                copyBytes(to, from.data(), static_cast<index>(from.size()));
                to += from.size();
            }
        });
        answers.ranks.push_back(asked.ranks[k]);
        answers.starts.push_back(static_cast<index>(answers.values.size()));
    }
    return answers;
}

} // namespace

// Rows of the own slab stay where they are: a restart on as many ranks finds nearly all of them there. For the others
// two sparse exchanges: ids to the ranks that have them, and rows back. They carry failures, so that no rank waits for
// messages of a rank that has thrown.
// Listed ids ascend across the slabs of all ranks, so the first id of each rank, one gather of O(ranks), tells the
// owner of any id by a binary search. Cost: 8 bytes there and 8 bytes and the row back for each id of another rank.
ArrivedRows fetchRows(CommunicatorContext &context, const FileRanks &files, const CheckpointArray &source, RowSlab slab,
                      std::span<const index> ids, const std::exception_ptr &failure) {
    const CommunicatorView comm = context.comm();
    const BlockSpread spread(source, files);
    comm.agree(failure);

    // The first id of each rank's blocks; ranks without blocks get the next one's.
    std::vector<index> firstIds;
    if (source.listed) {
        firstIds = comm.allGather(slab.ids.empty() ? std::numeric_limits<index>::max() : slab.ids.front());
        for (std::size_t rank = firstIds.size() - 1; rank-- > 0;)
            firstIds[rank] = std::min(firstIds[rank], firstIds[rank + 1]);
    }
    const auto ownerOf = [&](index id) {
        if (!source.listed)
            return spread.owner(id);
        const auto next = std::upper_bound(firstIds.begin(), firstIds.end(), id);
        return static_cast<int>(std::max<std::ptrdiff_t>(0, next - firstIds.begin() - 1));
    };
    ArrivedRows arrived;
    RankLists outgoing;
    std::vector<index> order; // places in `ids` of the rows asked for, in the order of the questions
    const std::exception_ptr unknown = attempt([&] { // here, so that errors name this function
        DNDS_CHECK(ids.empty() || source.rows > 0, DataError, "{} has no rows, but {} are requested", source.name,
                   ids.size());
        arrived.rows.resize(ids.size());
        for (std::size_t i = 0; i < ids.size(); i++) {
            DNDS_CHECK(source.listed || (ids[i] >= 0 && ids[i] < source.rows), DataError,
                       "{} has no row with the id {}: its ids are 0 to {}", source.name, ids[i], source.rows - 1);
            if (ownerOf(ids[i]) != comm.rank()) {
                order.push_back(static_cast<index>(i));
                continue;
            }
            const index row = rowOf(ids[i], source, slab);
            arrived.rows[i] = slab.bytes(row, row + 1);
        }
        outgoing =
            groupByRank(comm.size(), order.size(), [&](std::size_t k) { return ownerOf(ids[toSize(order[k])]); });
        const std::vector<index> away = std::move(order);
        order.clear();
        for (index &number : outgoing.values) {
            order.push_back(away[toSize(number)]);
            number = ids[toSize(order.back())];
        }
    });
    const RankLists asked = sparseExchange(context, outgoing, PeerDiscovery::Auto, unknown);

    RankLists answers;
    const std::exception_ptr missing = attempt([&] { answers = answer(asked, source, slab); });
    arrived.messages = sparseExchange(context, answers, PeerDiscovery::Auto, missing);
    auto next = order.begin(); // lists arrive in the order of ranks, as the questions went
    for (std::size_t k = 0; k < arrived.messages.size(); k++) {
        RecordReader reader(arrived.messages.list(k));
        const auto sizes = reader.next(outgoing.starts[k + 1] - outgoing.starts[k]);
        const auto *from = reinterpret_cast<const std::byte *>(reader.rest().data());
        for (const index bytes : sizes) {
            arrived.rows[toSize(*next++)] = {from, toSize(bytes)};
            from += bytes;
        }
    }
    if (order.size() < ids.size())
        arrived.slab = std::move(slab); // its memory stays where rows were found
    return arrived;
}

// Rows are in the order of ids, so that slabs and shares are both ascending, and lists arrive in order.
// Cost: one sparse exchange of 8 bytes an id.
std::vector<index> shareIds(CommunicatorContext &context, const CheckpointArray &source, const RowSlab &slab) {
    const EvenSplit shares(source.rows, context.comm().size());
    RankLists outgoing;
    const std::exception_ptr failure = attempt([&] {
        outgoing = packByRank(
            context.comm().size(), slab.ids.size(),
            [&](std::size_t i) { return shares.owner(slab.first + static_cast<index>(i)); },
            [](std::size_t) { return 1; }, [&](std::size_t i, index *word) { *word = slab.ids[i]; });
    });
    return sparseExchange(context, outgoing, PeerDiscovery::Auto, failure).values;
}

} // namespace DNDS::Detail
