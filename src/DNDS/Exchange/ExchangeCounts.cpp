#include "DNDS/Exchange/ExchangeCounts.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Exchange/Report.hpp"
#include "DNDS/Mpi/AtFinalize.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/NodeArena.hpp"

#include <algorithm>
#include <utility>

namespace DNDS {

namespace {

/// The class in `pathClasses` of a transport. Numbers are positions in the names that Report.cpp prints ("own memory",
/// "node-shared", ...).
std::size_t classOf(TransportKind kind, bool onDevice) {
    switch (kind) {
    case TransportKind::Local:
        return onDevice ? 3 : 0;
    case TransportKind::NodeShared:
        return 1;
    case TransportKind::Datatype:
    case TransportKind::Packed:
        return 2;
    default: // staged, direct, peer
        return 3;
    }
}

/// Bytes of a path's buffers between the arrays, as far as they are known.
std::size_t buffersOf(const PeerPath &path) {
    switch (path.transport) {
    case TransportKind::Packed:
    case TransportKind::Direct:
    case TransportKind::Peer:
        return path.bytesSent;
    case TransportKind::Staged:
        return path.bytesSent + path.bytesReceived;
    default:
        return path.bytesThroughSlot;
    }
}

/// Whether the communicator has the ranks of MPI_COMM_WORLD, in any order.
bool holdsAllRanks(const CommunicatorContext &context) {
    int same = MPI_UNEQUAL;
    checkMpi(MPI_Comm_compare(context.comm().handle(), MPI_COMM_WORLD, &same), "MPI_Comm_compare");
    return same != MPI_UNEQUAL;
}

/// Has `note` called on rank 0 when MPI ends; left out silently if memory is short. Local.
void noteAtEnd(void (*note)(void *) noexcept) {
    int rank = -1;
    checkMpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
    if (rank == 0) // other ranks of the communicator know of no failure
        static_cast<void>(attempt([&] { atFinalize(note, nullptr); }));
}

} // namespace

void ExchangeCounts::describe(std::span<const PeerPath> peers, bool onDevice) {
    // The shape is replaced by that of the latest exchange of this name; sums over runs stay.
    numbers[Count::Made] += 1.0;
    std::fill(numbers.begin() + Count::Peers, numbers.end(), 0.0);
    numbers[Count::Peers] = static_cast<double>(peers.size());
    for (const PeerPath &path : peers) {
        const auto bytes = static_cast<double>(path.bytesSent);
        const std::size_t way = classOf(path.transport, onDevice);
        numbers[Count::RowsSent] += static_cast<double>(path.rowsSent);
        numbers[Count::BytesSent] += bytes;
        numbers[Count::BufferBytes] += static_cast<double>(buffersOf(path));
        numbers[Count::PathPeers + way] += 1.0;
        numbers[Count::PathBytes + way] += bytes;
    }
}

CountsOfProcess &CountsOfProcess::instance() {
    static auto *counts = new CountsOfProcess; // never deleted: MPI may end after static objects are destroyed
    return *counts;
}

void announceReport(CommunicatorContext &context) {
    static std::atomic<bool> announced = false;
    struct Announced {}; // on each communicator: threads may set up on several at a time, in any order
    if (!reportsAtEnd() || context.attachment<Announced>())
        return;
    // A report at the end is collective over MPI_COMM_WORLD, and so needs a moment at which all ranks know that one
    // will come: the first exchange of all of them.
    if (!holdsAllRanks(context)) {
        static std::atomic<bool> noted = false;
        if (!noted.exchange(true))
            noteAtEnd([](void *) noexcept {
                if (!announced && !inForkedChild())
                    warn("there is no report (DNDS_REPORT): no exchange was made by all ranks together; call "
                         "DNDS::report with the communicators of the parts");
            });
        return;
    }
    context.attach<Announced>([&] {
        std::shared_ptr<Announced> made;
        context.comm().guarded([&] {
            made = std::make_shared<Announced>();
            const std::lock_guard lock(CountsOfProcess::instance().mutex);
            if (!announced)
                atFinalize([](void *) noexcept { printReportAtEnd(); }, nullptr);
            announced = true;
        });
        return made;
    });
}

std::shared_ptr<ExchangeCounts> countsOf(const CommunicatorContext &context, const std::string &name) {
    // By name and not by exchange: a program that makes the exchange of 'u' again and again has one line for it in
    // the report.
    if (!countsExchanges())
        return nullptr;
    CountsOfProcess &counts = CountsOfProcess::instance();
    const std::lock_guard lock(counts.mutex);
    std::shared_ptr<ExchangeCounts> &found = counts.exchanges[name];
    if (!found)
        found = std::make_shared<ExchangeCounts>();
    std::atomic<double> &ranks = found->numbers[Count::Ranks];
    const double size = context.comm().size();
    ranks = ranks == 0.0 || ranks == size ? size : -1.0;
    if (const auto &arena = context.node().arena)
        counts.arenaBytes = std::max(counts.arenaBytes, arena->bytesHeld());
    return found;
}

} // namespace DNDS
