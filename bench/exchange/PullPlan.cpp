#include "PullPlan.hpp"

#include <algorithm>
#include <array>

namespace DNDS::Bench {

namespace {

constexpr std::size_t at(index i) { return static_cast<std::size_t>(i); }

/// The ranges of non-zero `counts`, one after the other.
std::vector<PeerRange> ranges(const std::vector<int> &counts) {
    std::vector<PeerRange> peers;
    index begin = 0;
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
        if (counts[rank] > 0)
            peers.push_back({static_cast<int>(rank), begin, counts[rank]});
        begin += counts[rank];
    }
    return peers;
}

} // namespace

std::vector<index> radixSorted(std::span<const index> values) {
    constexpr int bits = 11;
    constexpr std::size_t buckets = std::size_t{1} << bits;
    std::vector<index> sorted(values.begin(), values.end());
    if (values.empty())
        return sorted;
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    const index smallest = *low;
    const auto span = static_cast<std::uint64_t>(*high - smallest);
    std::vector<index> other(sorted.size());
    for (int shift = 0; shift < 64 && (span >> shift) > 0; shift += bits) {
        const auto digit = [&](index value) {
            return (static_cast<std::uint64_t>(value - smallest) >> shift) & (buckets - 1);
        };
        std::array<std::uint32_t, buckets> places{};
        for (const index value : sorted)
            ++places[digit(value)];
        std::uint32_t place = 0;
        for (std::uint32_t &entry : places) {
            const std::uint32_t count = entry;
            entry = place;
            place += count;
        }
        for (const index value : sorted)
            other[places[digit(value)]++] = value;
        sorted.swap(other);
    }
    return sorted;
}

PullPlan PullPlan::make(CommunicatorView comm, std::span<const index> offsets, std::span<const index> pullList) {
    PullPlan plan;
    plan.ghosts = radixSorted(pullList);
    std::vector<int> wanted(at(comm.size()), 0);
    auto ghost = plan.ghosts.begin();
    for (std::size_t rank = 0; rank < wanted.size(); ++rank) {
        const auto end = std::lower_bound(ghost, plan.ghosts.end(), offsets[rank + 1]);
        wanted[rank] = static_cast<int>(end - ghost);
        ghost = end;
    }
    std::vector<int> given(wanted.size());
    checkMpi(MPI_Alltoall(wanted.data(), 1, MPI_INT, given.data(), 1, MPI_INT, comm.handle()), "MPI_Alltoall");
    plan.owners = ranges(wanted);
    plan.readers = ranges(given);

    const index sent = plan.readers.empty() ? 0 : plan.readers.back().begin + plan.readers.back().count;
    std::vector<index> rows(at(sent));
    std::vector<MPI_Request> requests;
    requests.reserve(plan.readers.size() + plan.owners.size());
    for (const PeerRange &reader : plan.readers)
        checkMpi(MPI_Irecv(rows.data() + reader.begin, static_cast<int>(reader.count), MPI_INT64_T, reader.rank, 1,
                           comm.handle(), &requests.emplace_back()),
                 "MPI_Irecv");
    for (const PeerRange &owner : plan.owners)
        checkMpi(MPI_Isend(plan.ghosts.data() + owner.begin, static_cast<int>(owner.count), MPI_INT64_T, owner.rank, 1,
                           comm.handle(), &requests.emplace_back()),
                 "MPI_Isend");
    checkMpi(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    plan.sentRows.reserve(rows.size());
    for (const index row : rows)
        plan.sentRows.push_back(static_cast<LocalIndex>(row - offsets[at(comm.rank())]));
    return plan;
}

} // namespace DNDS::Bench
