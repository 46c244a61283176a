#include "DNDS/Serialize/RowBlocks.hpp"
#include "DNDS/Base/Attempt.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Index/RowPacking.hpp"
#include "DNDS/Mpi/FindCuts.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

namespace DNDS::Detail {

namespace {

/// A list sent by `gatherSlab`: rows, ids and sizes, and the bytes of all rows.
struct PackedRows {
    std::span<const index> places, ids, sizes;
    const std::byte *bytes;

    PackedRows(std::span<const index> words, bool listed, bool ragged) {
        const std::size_t count = toSize(words[0]);
        places = words.subspan(1, count);
        words = words.subspan(1 + count);
        if (listed) {
            ids = words.first(count);
            words = words.subspan(count);
        }
        if (ragged) {
            sizes = words.first(count);
            words = words.subspan(count);
        }
        bytes = reinterpret_cast<const std::byte *>(words.data());
    }
};

} // namespace

// Finds the least id of each share by counting ids below trial values on all ranks, without moving ids: O(n log n) to
// sort own ids, then the reductions of `findCuts`. Method: the splitters of histogram sort (Kale and Krishnan, A
// comparison based parallel sorting algorithm, ICPP 1993).
std::vector<index> evenShares(CommunicatorView comm, std::span<const index> ids, int shares) {
    std::vector<index> sorted(ids.begin(), ids.end());
    std::sort(sorted.begin(), sorted.end());
    const index least = comm.allReduce(sorted.empty() ? std::numeric_limits<index>::max() : sorted.front(), MPI_MIN);
    const index largest = comm.allReduce(sorted.empty() ? index{0} : sorted.back(), MPI_MAX);
    const index all = comm.allReduce(static_cast<index>(sorted.size()), MPI_SUM);
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
std::vector<index> rowsOfIds(CommunicatorContext &context, const FileRanks &files, std::span<const index> ids,
                             bool listed) {
    if (!listed)
        return {ids.begin(), ids.end()};
    const CommunicatorView comm = context.comm();
    const std::vector<index> shares = evenShares(comm, ids, files.count());
    const RankLists groups = groupByRank(comm.size(), ids.size(), [&](std::size_t i) {
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

RowSlab gatherSlab(CommunicatorContext &context, const FileRanks &files, const CheckpointArray &target,
                   const ArrayBase &array, std::span<const index> places, std::span<const index> ids) {
    const CommunicatorView comm = context.comm();
    const BlockSpread spread(target, files);
    RankLists outgoing;
    const std::exception_ptr failure = attempt([&] {
        const HostRows rows(array);
        const RankLists groups =
            groupByRank(comm.size(), toSize(array.size()), [&](std::size_t i) { return spread.owner(places[i]); });
        for (std::size_t k = 0; k < groups.size(); k++) {
            const auto members = groups.list(k);
            Packer packer(outgoing.values);
            packer.put(static_cast<index>(members.size()));
            for (const index i : members)
                packer.put(places[toSize(i)]);
            if (target.listed)
                for (const index i : members)
                    packer.put(ids[toSize(i)]);
            if (target.ragged)
                for (const index i : members)
                    packer.put(rows.bytes(i));
            packer.putRows(rows, members);
            outgoing.ranks.push_back(groups.ranks[k]);
            outgoing.starts.push_back(static_cast<index>(outgoing.values.size()));
        }
    });
    const RankLists incoming = sparseExchange(context, outgoing, PeerDiscovery::Auto, failure);
    outgoing = {};

    RowSlab slab;
    comm.guarded([&] {
        slab.first = spread.firstRow(comm.rank());
        slab.rows = spread.firstRow(comm.rank() + 1) - slab.first;
        const index count = slab.rows;
        constexpr index absent = -1;
        std::vector<index> sizes(toSize(count), absent);
        slab.ids.resize(target.listed ? toSize(count) : 0);
        for (std::size_t k = 0; k < incoming.size(); k++) {
            const PackedRows packed(incoming.list(k), target.listed, target.ragged);
            for (std::size_t i = 0; i < packed.places.size(); i++) {
                const std::size_t row = toSize(packed.places[i] - slab.first);
                DNDS_CHECK(sizes[row] == absent, ArgumentError,
                           "{}: two rows have the id {}: ids must be unique over all ranks", target.name,
                           packed.places[i]);
                sizes[row] = target.ragged ? packed.sizes[i] : target.width * target.elementBytes;
                if (target.listed)
                    slab.ids[row] = packed.ids[i];
            }
        }
        // Finds a missing row: by least, largest and number, ids are 0, 1, ..., but one of them is repeated.
        const auto missing = std::find(sizes.begin(), sizes.end(), absent);
        DNDS_CHECK(missing == sizes.end(), ArgumentError,
                   "{}: no row has the id {}, and two have another: ids must be unique over all ranks", target.name,
                   slab.first + (missing - sizes.begin()));
        slab.offsets.assign(toSize(count) + 1, 0);
        std::partial_sum(sizes.begin(), sizes.end(), slab.offsets.begin() + 1);
        slab.values.resize(toSize(slab.offsets.back()));
        for (std::size_t k = 0; k < incoming.size(); k++) {
            const PackedRows packed(incoming.list(k), target.listed, target.ragged);
            const std::byte *from = packed.bytes;
            for (const index place : packed.places) {
                const std::size_t row = toSize(place - slab.first);
                copyBytes(slab.values.data() + slab.offsets[row], from, sizes[row]);
                from += sizes[row];
            }
        }
    });
    return slab;
}

namespace {

/// The row of a slab that has this id. Throws DataError if there is none.
index rowOf(index id, const CheckpointArray &source, const RowSlab &slab) {
    if (!source.listed)
        return id - slab.first;
    const auto at = std::lower_bound(slab.ids.begin(), slab.ids.end(), id);
    DNDS_CHECK(at != slab.ids.end() && *at == id, DataError, "{} has no row with the id {}", source.name, id);
    return at - slab.ids.begin();
}

/// For each list of ids asked for, the bytes of each of these rows, and then the rows.
RankLists answer(const RankLists &asked, const CheckpointArray &source, const RowSlab &slab) {
    RankLists answers;
    for (std::size_t k = 0; k < asked.size(); k++) {
        std::vector<index> rows;
        index bytes = 0;
        for (const index id : asked.list(k)) {
            const index row = rows.emplace_back(rowOf(id, source, slab));
            bytes += slab.start(row + 1) - slab.start(row);
        }
        Packer packer(answers.values);
        for (const index row : rows)
            packer.put(slab.start(row + 1) - slab.start(row));
        packer.putBytes(bytes, [&](std::byte *to) {
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

/// The rows of answers. Lists arrive in the order of ranks, and so in that of `order`, which gives the destination of
/// each requested row.
ArrivedRows inOrder(const RankLists &answers, const RankLists &asked, const std::vector<index> &order) {
    ArrivedRows rows;
    std::vector<index> sizes(order.size());
    for (std::size_t k = 0, i = 0; k < answers.size(); k++) {
        const index asking = asked.starts[k + 1] - asked.starts[k];
        for (index j = 0; j < asking; j++)
            sizes[toSize(order[i++])] = answers.list(k)[toSize(j)];
    }
    rows.offsets.resize(order.size() + 1, 0);
    std::partial_sum(sizes.begin(), sizes.end(), rows.offsets.begin() + 1);
    rows.values.resize(toSize(rows.offsets.back()));
    for (std::size_t k = 0, i = 0; k < answers.size(); k++) {
        const index asking = asked.starts[k + 1] - asked.starts[k];
        const auto *from = reinterpret_cast<const std::byte *>(answers.list(k).data() + asking);
        for (index j = 0; j < asking; j++) {
            const std::size_t row = toSize(order[i++]);
            copyBytes(rows.values.data() + rows.offsets[row], from, sizes[row]);
            from += sizes[row];
        }
    }
    return rows;
}

} // namespace

ArrivedRows fetchRows(CommunicatorContext &context, const FileRanks &files, const CheckpointArray &source,
                      const RowSlab &slab, std::span<const index> ids, const std::exception_ptr &failure) {
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
    RankLists outgoing;
    std::vector<index> order;
    std::exception_ptr unknown;
    try { // here, so that errors name this function
        if (!source.listed)
            for (const index id : ids)
                DNDS_CHECK(id >= 0 && id < source.rows, DataError,
                           "{} has no row with the id {}: its ids are 0 to {} (excluded)", source.name, id,
                           source.rows);
        DNDS_CHECK(ids.empty() || source.rows > 0, DataError, "{} has no rows, but {} are requested", source.name,
                   ids.size());
        outgoing = groupByRank(comm.size(), ids.size(), [&](std::size_t i) { return ownerOf(ids[i]); });
        order = outgoing.values;
        for (index &id : outgoing.values)
            id = ids[toSize(id)];
    } catch (...) {
        unknown = std::current_exception();
    }
    const RankLists asked = sparseExchange(context, outgoing, PeerDiscovery::Auto, unknown);

    RankLists answers;
    const std::exception_ptr missing = attempt([&] { answers = answer(asked, source, slab); });
    const RankLists incoming = sparseExchange(context, answers, PeerDiscovery::Auto, missing);
    answers = {};

    ArrivedRows rows;
    comm.guarded([&] { rows = inOrder(incoming, outgoing, order); });
    return rows;
}

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
