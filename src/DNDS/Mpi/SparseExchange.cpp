#include "DNDS/Mpi/SparseExchange.hpp"

#include <algorithm>

namespace DNDS {

namespace {

constexpr int mostRanksForAllToAll = 32;
/// Takes the place of a count where a rank has failed.
constexpr index failed = -1;

/// A list as it arrives, in any order of ranks.
struct Arrival {
    int rank;
    std::vector<index> values;
};

RankLists inOrder(std::vector<Arrival> arrivals) {
    std::sort(arrivals.begin(), arrivals.end(), [](const Arrival &a, const Arrival &b) { return a.rank < b.rank; });
    RankLists lists;
    if (arrivals.size() == 1) {
        lists.ranks.push_back(arrivals.front().rank);
        lists.values = std::move(arrivals.front().values);
        lists.starts.push_back(static_cast<index>(lists.values.size()));
        return lists;
    }
    for (const Arrival &arrival : arrivals)
        lists.append(arrival.rank, arrival.values);
    return lists;
}

std::vector<Arrival> byAllToAll(const CommunicatorView &comm, const Channel &channel, const RankLists &outgoing,
                                const std::exception_ptr &failure) {
    std::vector<index> countTo(static_cast<std::size_t>(comm.size()), failure ? failed : 0);
    std::vector<index> countFrom(countTo.size());
    for (std::size_t k = 0; k < outgoing.size() && !failure; ++k)
        if (outgoing.ranks[k] != comm.rank())
            countTo[static_cast<std::size_t>(outgoing.ranks[k])] = outgoing.starts[k + 1] - outgoing.starts[k];
    checkMpi(MPI_Alltoall(countTo.data(), 1, MPI_INT64_T, countFrom.data(), 1, MPI_INT64_T, comm.handle()),
             "MPI_Alltoall");
    if (std::find(countFrom.begin(), countFrom.end(), failed) != countFrom.end())
        comm.agree(failure);

    std::vector<Arrival> arrivals;
    for (int rank = 0; rank < comm.size(); ++rank)
        if (const index count = countFrom[static_cast<std::size_t>(rank)]; count > 0)
            arrivals.push_back({rank, std::vector<index>(static_cast<std::size_t>(count))});

    // The sizes are kept until the requests are complete, because they may own a datatype.
    std::vector<ByteCount> sizes;
    std::vector<MPI_Request> requests;
    sizes.reserve(arrivals.size() + outgoing.size());
    requests.reserve(sizes.capacity());
    for (Arrival &arrival : arrivals) {
        const ByteCount &size = sizes.emplace_back(arrival.values.size() * sizeof(index));
        checkMpi(MPI_Irecv(arrival.values.data(), size.count(), size.type(), arrival.rank, channel.tag, channel.comm,
                           &requests.emplace_back()),
                 "MPI_Irecv");
    }
    for (std::size_t k = 0; k < outgoing.size(); ++k) {
        const auto list = outgoing.list(k);
        if (outgoing.ranks[k] == comm.rank() || list.empty())
            continue;
        const ByteCount &size = sizes.emplace_back(list.size_bytes());
        checkMpi(MPI_Isend(list.data(), size.count(), size.type(), outgoing.ranks[k], channel.tag, channel.comm,
                           &requests.emplace_back()),
                 "MPI_Isend");
    }
    checkMpi(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    return arrivals;
}

std::vector<Arrival> byConsensus(const CommunicatorView &comm, const Channel &channel, const RankLists &outgoing) {
    std::vector<MPI_Request> sends;
    std::vector<ByteCount> sizes;
    sizes.reserve(outgoing.size());
    for (std::size_t k = 0; k < outgoing.size(); ++k) {
        const auto list = outgoing.list(k);
        if (outgoing.ranks[k] == comm.rank() || list.empty())
            continue;
        const ByteCount &size = sizes.emplace_back(list.size_bytes());
        checkMpi(MPI_Issend(list.data(), size.count(), size.type(), outgoing.ranks[k], channel.tag, channel.comm,
                            &sends.emplace_back()),
                 "MPI_Issend");
    }

    // A synchronous send is complete once its receive has started; when all of mine are, I enter the barrier, and when
    // the barrier is complete, nobody has a message for anyone any more.
    std::vector<Arrival> arrivals;
    MPI_Request barrier = MPI_REQUEST_NULL;
    bool inBarrier = false;
    int done = 0;
    while (done == 0) {
        int waiting = 0;
        MPI_Message message = MPI_MESSAGE_NULL;
        MPI_Status status;
        checkMpi(MPI_Improbe(MPI_ANY_SOURCE, channel.tag, channel.comm, &waiting, &message, &status), "MPI_Improbe");
        if (waiting != 0) {
            MPI_Count bytes = 0;
            checkMpi(MPI_Get_elements_x(&status, MPI_BYTE, &bytes), "MPI_Get_elements_x");
            Arrival &arrival = arrivals.emplace_back(
                Arrival{status.MPI_SOURCE, std::vector<index>(static_cast<std::size_t>(bytes) / sizeof(index))});
            const ByteCount size(static_cast<std::size_t>(bytes));
            checkMpi(MPI_Mrecv(arrival.values.data(), size.count(), size.type(), &message, MPI_STATUS_IGNORE),
                     "MPI_Mrecv");
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
    return arrivals;
}

} // namespace

void RankLists::append(int rank, std::span<const index> list) {
    ranks.push_back(rank);
    values.insert(values.end(), list.begin(), list.end());
    starts.push_back(static_cast<index>(values.size()));
}

RankLists sparseExchange(CommunicatorContext &context, const RankLists &outgoing, PeerDiscovery discovery,
                         const std::exception_ptr &failure) {
    const CommunicatorView &comm = context.comm();
    const Channel channel = context.nextChannel();
    if (discovery == PeerDiscovery::Auto)
        discovery = comm.size() <= mostRanksForAllToAll ? PeerDiscovery::AllToAll : PeerDiscovery::Consensus;
    if (discovery == PeerDiscovery::Consensus)
        comm.agree(failure);
    auto arrivals = discovery == PeerDiscovery::AllToAll ? byAllToAll(comm, channel, outgoing, failure)
                                                         : byConsensus(comm, channel, outgoing);
    const auto self = std::lower_bound(outgoing.ranks.begin(), outgoing.ranks.end(), comm.rank());
    if (self != outgoing.ranks.end() && *self == comm.rank()) {
        const auto list = outgoing.list(static_cast<std::size_t>(self - outgoing.ranks.begin()));
        if (!list.empty())
            arrivals.push_back({comm.rank(), {list.begin(), list.end()}});
    }
    return inOrder(std::move(arrivals));
}

} // namespace DNDS
