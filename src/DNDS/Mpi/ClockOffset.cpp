#include "DNDS/Mpi/Reductions.hpp"

#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <cmath>
#include <limits>
#include <vector>

namespace DNDS {

namespace {

/// Round trips a rank; only the fastest one counts, since it has waited least in queues.
constexpr int rounds = 16;

/// On rank 0: asks `rank` for its clock, received in `answer`; the offset.
/// Cristian's algorithm (Probabilistic clock synchronization, Distributed Computing 3, 1989): the fastest of several
/// round trips bounds the error by half its duration. An offset below that bound is reported as 0, which it is
/// between ranks of one machine.
double ask(int rank, const Channel &channel, double (*clock)() noexcept) {
    double fastest = std::numeric_limits<double>::infinity();
    double offset = 0.0;
    for (int round = 0; round < rounds; ++round) {
        double theirs = 0.0;
        const double sent = clock();
        checkMpi(MPI_Send(nullptr, 0, MPI_BYTE, rank, channel.tag, channel.comm), "MPI_Send");
        checkMpi(MPI_Recv(&theirs, 1, MPI_DOUBLE, rank, channel.tag, channel.comm, MPI_STATUS_IGNORE), "MPI_Recv");
        const double received = clock();
        // The other clock was read somewhere between `sent` and `received`: the middle is wrong by half of the
        // round trip at most.
        if (received - sent < fastest) {
            fastest = received - sent;
            offset = 0.5 * (sent + received) - theirs;
        }
    }
    return std::abs(offset) <= 0.5 * fastest ? 0.0 : offset;
}

/// The other ranks' side. Rank 0 serves ranks one after another; a later one waits in its first receive.
void answer(const Channel &channel, double (*clock)() noexcept) {
    for (int round = 0; round < rounds; ++round) {
        checkMpi(MPI_Recv(nullptr, 0, MPI_BYTE, 0, channel.tag, channel.comm, MPI_STATUS_IGNORE), "MPI_Recv");
        const double mine = clock();
        checkMpi(MPI_Send(&mine, 1, MPI_DOUBLE, 0, channel.tag, channel.comm), "MPI_Send");
    }
}

} // namespace

// 16 (ranks - 1) round trips on rank 0, one rank after another, and one broadcast. No deadlock: rank 0 sends before
// it receives, every other rank receives before it sends.
double clockOffset(CommunicatorView comm, double (*clock)() noexcept) {
    // Rank 0 measures all offsets and broadcasts them: O(ranks) round trips in sequence, for reports and traces
    // only.
    const Channel channel = CommunicatorContext::of(comm)->nextChannel();
    std::vector<double> offsets;
    comm.guarded([&] { offsets.resize(static_cast<std::size_t>(comm.size())); });
    if (comm.rank() == 0)
        for (int rank = 1; rank < comm.size(); ++rank)
            offsets[static_cast<std::size_t>(rank)] = ask(rank, channel, clock);
    else
        answer(channel, clock);
    comm.broadcast(offsets.data(), offsets.size());
    return offsets[static_cast<std::size_t>(comm.rank())];
}

} // namespace DNDS
