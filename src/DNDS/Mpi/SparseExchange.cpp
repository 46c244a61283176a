#include "DNDS/Mpi/CommunicatorContext.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/RollCall.hpp"

#include <algorithm>
#include <array>

namespace DNDS {

namespace {

/// Up to here one MPI_Alltoall of counts, which takes few steps and fits the stack; above, consensus.
constexpr int maxRanksForAllToAll = 32;
/// Replaces a count of a rank that has failed.
constexpr index failed = -1;

/// A list to be received, and its length.
struct Announced {
    int rank;
    index count;
};

/// Calls `visit(k, list)` for each list that goes to another rank.
template <class Visit>
void forEachSent(const CommunicatorView &comm, const RankLists &outgoing, Visit &&visit) {
    for (std::size_t k = 0; k < outgoing.size(); ++k)
        if (const auto list = outgoing.list(k); outgoing.ranks[k] != comm.rank() && !list.empty())
            visit(k, list);
}

/// Each rank announces to all others. An allocation failure of this rank is left in `failure`.
/// One MPI_Alltoall, O(ranks) words on each rank.
std::vector<Announced> announceToAll(const CommunicatorView &comm, const RankLists &outgoing,
                                     std::exception_ptr &failure) {
    std::array<index, 2 * maxRanksForAllToAll> few; // on the stack, so that a rank without memory takes part, too
    std::vector<index> many;
    const auto ranks = static_cast<std::size_t>(comm.size());
    if (comm.size() > maxRanksForAllToAll)
        comm.guarded([&] { many.resize(2 * ranks); });
    const std::span<index> counts = many.empty() ? std::span<index>(few) : std::span<index>(many);
    const auto countTo = counts.first(ranks);
    const auto countFrom = counts.subspan(ranks, ranks);
    std::fill(countTo.begin(), countTo.end(), failure ? failed : 0);
    if (!failure)
        forEachSent(comm, outgoing, [&](std::size_t k, std::span<const index> list) {
            countTo[static_cast<std::size_t>(outgoing.ranks[k])] = static_cast<index>(list.size());
        });
    {
        const ActivityScope activity = ActivityScope::collective("MPI_Alltoall");
        checkMpi(MPI_Alltoall(countTo.data(), 1, MPI_INT64_T, countFrom.data(), 1, MPI_INT64_T, comm.handle()),
                 "MPI_Alltoall");
    }
    // A failed rank tells all others, so all find it and agree; a rank without failure costs nothing more than its
    // count.
    if (std::find(countFrom.begin(), countFrom.end(), failed) != countFrom.end())
        comm.agree(failure);
    std::vector<Announced> announced;
    attempt(failure, [&] {
        for (int rank = 0; rank < comm.size(); ++rank)
            if (const index count = countFrom[static_cast<std::size_t>(rank)]; count > 0)
                announced.push_back({rank, count});
    });
    return announced;
}

/// Synchronous sends of the counts alone; on a rank without memory they are received and dropped.
/// O(peers) messages of 8 bytes and a barrier of O(log ranks) steps; memory O(peers).
std::vector<Announced> announceToPeers(const CommunicatorView &comm, const Channel &channel, const RankLists &outgoing,
                                       std::exception_ptr &failure) {
    std::vector<MPI_Request> sends;
    std::vector<index> counts;
    comm.guarded([&] {
        if (failure)
            std::rethrow_exception(failure);
        sends.reserve(outgoing.size());
        counts.reserve(outgoing.size());
    });
    forEachSent(comm, outgoing, [&](std::size_t k, std::span<const index> list) {
        counts.push_back(static_cast<index>(list.size()));
        checkMpi(MPI_Issend(&counts.back(), 1, MPI_INT64_T, outgoing.ranks[k], channel.tag, channel.comm,
                            &sends.emplace_back()),
                 "MPI_Issend");
    });

    // NBX: a synchronous send is complete once its receive has started. A rank enters the barrier when all its sends
    // are complete, so a complete barrier means that every message was received. Ranks probe all the time, also
    // within the barrier: two ranks that send to each other do not block.
    const ActivityScope activity = ActivityScope::collective("MPI_Ibarrier");
    std::vector<Announced> announced;
    MPI_Request barrier = MPI_REQUEST_NULL;
    bool inBarrier = false;
    int done = 0;
    while (done == 0) {
        int waiting = 0;
        MPI_Message message = MPI_MESSAGE_NULL;
        MPI_Status status;
        checkMpi(MPI_Improbe(MPI_ANY_SOURCE, channel.tag, channel.comm, &waiting, &message, &status), "MPI_Improbe");
        if (waiting != 0) {
            Announced one{status.MPI_SOURCE, 0};
            checkMpi(MPI_Mrecv(&one.count, 1, MPI_INT64_T, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
            attempt(failure,
                    [&] { announced.push_back(one); }); // recorded once all are received: their senders wait for that
        }
        if (inBarrier) {
            checkMpi(MPI_Test(&barrier, &done, MPI_STATUS_IGNORE), "MPI_Test");
        } else {
            int sent = 0;
            checkMpi(MPI_Testall(static_cast<int>(sends.size()), sends.data(), &sent, MPI_STATUSES_IGNORE),
                     "MPI_Testall");
            if (sent != 0) {
                checkMpi(MPI_Ibarrier(channel.comm, &barrier), "MPI_Ibarrier");
                inBarrier = true;
            }
        }
    }
    return announced;
}

/// Sends and receives the lists. All ranks have their memory before any sends: no rank leaves others with messages
/// that are never received.
/// O(peers + values). All receives are posted before the first send, and nothing blocks before the final wait. Lists
/// ascend by source rank, whatever the order of arrival.
RankLists deliver(const CommunicatorView &comm, const Channel &channel, const RankLists &outgoing,
                  std::vector<Announced> announced, const std::exception_ptr &failure) {
    // In three steps: memory for all lists; receives, and the copy of the own list; sends. The agreement of the
    // first step also separates the lists from the counts on the same tag: no rank sends a list before all have
    // left the consensus, whose probe would take it for a count.
    const auto self = std::lower_bound(outgoing.ranks.begin(), outgoing.ranks.end(), comm.rank());
    std::span<const index> own;
    if (self != outgoing.ranks.end() && *self == comm.rank())
        own = outgoing.list(static_cast<std::size_t>(self - outgoing.ranks.begin()));
    RankLists lists;
    std::vector<ByteCount> sizes; // kept until the requests are complete, because they may own a datatype
    std::vector<MPI_Request> requests;
    comm.guarded([&] {
        if (failure)
            std::rethrow_exception(failure);
        if (!own.empty())
            announced.push_back({comm.rank(), static_cast<index>(own.size())});
        std::sort(announced.begin(), announced.end(),
                  [](const Announced &a, const Announced &b) { return a.rank < b.rank; });
        // All memory of this call, so that no allocation can fail once messages are in flight.
        lists.ranks.reserve(announced.size());
        lists.starts.reserve(announced.size() + 1);
        for (const Announced &one : announced) {
            lists.ranks.push_back(one.rank);
            lists.starts.push_back(lists.starts.back() + one.count);
        }
        lists.values.resize(static_cast<std::size_t>(lists.starts.back()));
        sizes.reserve(announced.size() + outgoing.size());
        requests.reserve(sizes.capacity());
        for (const Announced &one : announced)
            sizes.emplace_back(static_cast<std::size_t>(one.count) * sizeof(index));
        forEachSent(comm, outgoing,
                    [&](std::size_t, std::span<const index> list) { sizes.emplace_back(list.size_bytes()); });
    });
    for (std::size_t k = 0; k < announced.size(); ++k) {
        index *const values = lists.values.data() + lists.starts[k];
        if (announced[k].rank == comm.rank()) {
            std::copy(own.begin(), own.end(), values);
            continue;
        }
        checkMpi(MPI_Irecv(values, sizes[k].count(), sizes[k].type(), announced[k].rank, channel.tag, channel.comm,
                           &requests.emplace_back()),
                 "MPI_Irecv");
    }
    auto size = sizes.begin() + static_cast<std::ptrdiff_t>(announced.size());
    forEachSent(comm, outgoing, [&](std::size_t k, std::span<const index> list) {
        checkMpi(MPI_Isend(list.data(), size->count(), size->type(), outgoing.ranks[k], channel.tag, channel.comm,
                           &requests.emplace_back()),
                 "MPI_Isend");
        ++size;
    });
    const ActivityScope activity = ActivityScope::collective("MPI_Waitall");
    checkMpi(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    return lists;
}

} // namespace

// Ranks must ascend: receivers and `deliver` rely on that.
void RankLists::append(int rank, std::span<const index> list) {
    ranks.push_back(rank);
    values.insert(values.end(), list.begin(), list.end());
    starts.push_back(static_cast<index>(values.size()));
}

// Cost: see the header. Auto takes the all-to-all up to 32 ranks, where its few steps beat the consensus.
RankLists sparseExchange(CommunicatorContext &context, const RankLists &outgoing, PeerDiscovery discovery,
                         const std::exception_ptr &failure) {
    const CommunicatorView &comm = context.comm();
    const Channel channel = context.nextChannel();
    if (discovery == PeerDiscovery::Auto)
        discovery = comm.size() <= maxRanksForAllToAll ? PeerDiscovery::AllToAll : PeerDiscovery::Consensus;
    std::exception_ptr mine = failure;
    std::vector<Announced> announced = discovery == PeerDiscovery::AllToAll
                                           ? announceToAll(comm, outgoing, mine)
                                           : announceToPeers(comm, channel, outgoing, mine);
    return deliver(comm, channel, outgoing, std::move(announced), mine);
}

} // namespace DNDS
