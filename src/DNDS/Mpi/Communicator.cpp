#include "DNDS/Mpi/Communicator.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/LastError.hpp"
#include "DNDS/Mpi/EndJob.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/RollCall.hpp"
#include "DNDS/Mpi/RunMain.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

namespace DNDS {

namespace {

void returnErrors(MPI_Comm comm) {
    checkMpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

/// Errors are labelled by the rank in MPI_COMM_WORLD, whichever communicator they concern.
void learnRank() {
    int rank = -1;
    checkMpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
    setErrorRank(rank);
}

} // namespace

// In this order: errors carry the rank, MPI returns codes instead of ending the job, and from then on ranks that
// fail find each other (`watchForFailures`, collective). The check of the thread level comes last, so that its
// exception is reported like any other.
MpiSession::MpiSession(int &argc, char **&argv, int threadLevel) : exceptionsAtStart_(std::uncaught_exceptions()) {
    int initialized = 0;
    MPI_Initialized(&initialized);
    if (initialized == 0) {
        checkMpi(MPI_Init_thread(&argc, &argv, threadLevel, &threadLevel_), "MPI_Init_thread");
        owner_ = true;
    } else {
        checkMpi(MPI_Query_thread(&threadLevel_), "MPI_Query_thread");
    }
    learnRank();
    returnErrors(MPI_COMM_WORLD);
    Detail::prepareRollCall();
    if (owner_) {
        Detail::watchForFailures();
        warnOfForeignLauncher();
    }
    DNDS_CHECK(threadLevel_ >= threadLevel, StateError, "MPI grants thread level {} but {} was asked for", threadLevel_,
               threadLevel);
}

MpiSession::~MpiSession() {
    if (!owner_ || !mpiActive()) // finalized already, or a forked child
        return;
    // MPI_Finalize would wait for ranks that are still in calls with this one: the job ends here.
    if (std::uncaught_exceptions() > exceptionsAtStart_) {
        // During stack unwinding the exception itself is out of reach.
        const auto [what, message] = Detail::lastError();
        std::string text = "an exception leaves the scope of MpiSession (DNDS::runMain would say which)";
        if (!what.empty())
            text.append("; the latest error was: ").append(what);
        Detail::endJob(text, message);
    }
    Detail::stopWatchingForFailures();
    MPI_Finalize();
}

CommunicatorView::CommunicatorView(MPI_Comm comm, SourceLocation where) : comm_(comm) {
    requireMpiActive("a communicator is used", where);
    if (comm == MPI_COMM_NULL) [[unlikely]]
        throw ArgumentError("MPI_COMM_NULL is not a communicator", where);
    int inter = 0;
    checkMpi(MPI_Comm_test_inter(comm, &inter), "MPI_Comm_test_inter", where);
    if (inter != 0) [[unlikely]]
        throw ArgumentError("this is an intercommunicator, between two groups of ranks: make one of all ranks by "
                            "MPI_Intercomm_merge, or give that of this rank's group",
                            where);
    checkMpi(MPI_Comm_rank(comm, &rank_), "MPI_Comm_rank", where);
    checkMpi(MPI_Comm_size(comm, &size_), "MPI_Comm_size", where);
    if (errorRank() < 0)
        learnRank();
}

namespace {

/// The lowest failing rank's message to the others.
struct FailureNotice {
    ErrorKind kind = ErrorKind::State;
    std::string text;
};

/// The receivers construct the exception themselves, from the kind and this text: rank and function of the throw go
/// into the text.
FailureNotice describe(const std::exception_ptr &failure, int rank) {
    const Failure said = describeFailure(failure);
    if (!said.function.empty())
        return {said.kind, fmt::format("{} (rank {}, in {})", said.message, rank, said.function)};
    if (said.kind == ErrorKind::Memory)
        return {said.kind, fmt::format("rank {} has not enough memory", rank)};
    return {said.kind, fmt::format("{} (rank {})", said.message, rank)};
}

/// From rank `source` to all, in pieces through a buffer on the stack: allocation may be what failed. Collective.
/// 1 + ceil(bytes / 1 KiB) broadcasts; O(1) memory apart from the text.
void broadcastNotice(MPI_Comm comm, bool isSource, int source, FailureNotice &notice) {
    // The size goes first, so that all ranks make the same number of broadcasts, whether they can keep the text or
    // not.
    std::array<int, 2> header{static_cast<int>(notice.kind), static_cast<int>(notice.text.size())};
    checkMpi(MPI_Bcast(header.data(), 2, MPI_INT, source, comm), "MPI_Bcast");
    notice.kind = static_cast<ErrorKind>(header[0]);
    std::array<char, 1024> piece;
    for (int done = 0; done < header[1]; done += static_cast<int>(piece.size())) {
        const auto count = static_cast<std::size_t>(std::min(static_cast<int>(piece.size()), header[1] - done));
        if (isSource)
            notice.text.copy(piece.data(), count, static_cast<std::size_t>(done));
        checkMpi(MPI_Bcast(piece.data(), static_cast<int>(count), MPI_CHAR, source, comm), "MPI_Bcast");
        if (!isSource) // without memory the text ends here
            static_cast<void>(attempt([&] { notice.text.append(piece.data(), count); }));
    }
}

/// `CommunicatorView::agree` of ranks that are in `scope`, if there is one.
/// One reduction of one number while no rank fails; the notice is broadcast after a failure only. All ranks derive
/// the source from the reduced number, so they make the same collectives.
void agreeIn(Detail::FailureScope *scope, const CommunicatorView &comm, const std::exception_ptr &mine,
             SourceLocation where) {
    if (mine && scope != nullptr && scope->isAgreed(mine)) // all ranks throw it already
        std::rethrow_exception(mine);
    const CommunicatorView &meeting = scope != nullptr ? scope->comm() : comm;
    const ActivityScope activity(where.function);
    const ActivityScope meets = ActivityScope::collective("MPI_Allreduce");
    // One number finds the lowest rank with a failure of its own; failures that only follow from another rank's
    // (PeerError) count if there are no others. Rank r gives 2 size - r or size - r, the maximum wins, and 0 means
    // that no rank failed.
    int worst = mine ? meeting.size() - meeting.rank() + (holds<PeerError>(mine) ? 0 : meeting.size()) : 0;
    checkMpi(MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_INT, MPI_MAX, meeting.handle()), "MPI_Allreduce", where);
    if (worst == 0) [[likely]]
        return;

    const int source = meeting.size() - (worst > meeting.size() ? worst - meeting.size() : worst);
    const bool isSource = source == meeting.rank();
    FailureNotice notice{ErrorKind::Memory, {}}; // sent as it is where the text cannot be allocated
    if (isSource)
        static_cast<void>(attempt([&] { notice = describe(mine, comm.rank()); }));
    broadcastNotice(meeting.handle(), isSource, source, notice);
    // All ranks throw the same type, made from the notice. The scope remembers it: an agreement further out, which
    // the exception passes on its way, rethrows it without communication.
    const std::exception_ptr agreed = attempt([&] { throwError(notice.kind, notice.text, where); });
    if (scope != nullptr)
        scope->noteAgreed(agreed);
    std::rethrow_exception(agreed);
}

} // namespace

// Makes the exception of one rank the exception of all. Inside `failTogether` ranks meet on the outermost scope's
// communicator, whichever duplicate they work on.
void CommunicatorView::agree(const std::exception_ptr &mine, SourceLocation where) const {
    requireMpiActive("ranks communicate");
    agreeIn(Detail::FailureScope::of(*this), *this, mine, where);
}

void CommunicatorView::beforeCollective(SourceLocation where) const {
    requireMpiActive("ranks communicate", where);
    if (Detail::FailureScope *const scope = Detail::FailureScope::of(*this))
        agreeIn(scope, *this, nullptr, where);
}

// ceil(count / 2^30) broadcasts. All ranks pass the same count, and so agree on their number.
void CommunicatorView::broadcastBytes(void *bytes, std::size_t count, int root) const {
    constexpr std::size_t most = std::size_t{1} << 30U; // counts of MPI are int
    beforeCollective();
    const ActivityScope activity = ActivityScope::collective("MPI_Bcast");
    for (std::size_t done = 0; done < count; done += most)
        checkMpi(MPI_Bcast(static_cast<std::byte *>(bytes) + done, static_cast<int>(std::min(most, count - done)),
                           MPI_BYTE, root, comm_),
                 "MPI_Bcast");
}

// One MPI_Allgatherv; above `most` bytes in all, one broadcast a rank. Each rank holds all bytes: O(sum of sizes).
void Detail::allGatherBytes(const CommunicatorView &comm, const void *mine, std::span<const std::size_t> bytes,
                            void *all, std::size_t most) {
    auto *const begin = static_cast<std::byte *>(all);
    // All ranks know all sizes, so all take the same branch. Counts and displacements of MPI_Allgatherv are `int`;
    // broadcasts are divided.
    if (std::accumulate(bytes.begin(), bytes.end(), std::size_t{0}) > most) {
        std::size_t start = 0;
        for (int rank = 0; rank < comm.size(); start += bytes[static_cast<std::size_t>(rank)], ++rank) {
            const std::size_t count = bytes[static_cast<std::size_t>(rank)];
            if (rank == comm.rank() && count > 0)
                std::memcpy(begin + start, mine, count);
            comm.broadcast(begin + start, count, rank);
        }
        return;
    }
    std::vector<int> counts;
    std::vector<int> starts;
    comm.guarded([&] {
        counts.assign(bytes.begin(), bytes.end());
        starts.resize(counts.size());
        std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), 0);
    });
    const ActivityScope activity = ActivityScope::collective("MPI_Allgatherv");
    checkMpi(MPI_Allgatherv(mine, counts[static_cast<std::size_t>(comm.rank())], MPI_BYTE, begin, counts.data(),
                            starts.data(), MPI_BYTE, comm.handle()),
             "MPI_Allgatherv");
}

Communicator::~Communicator() {
    if (comm_ != MPI_COMM_NULL && mpiActive())
        MPI_Comm_free(&comm_);
}

// Errors are returned as codes on all communicators of DNDS; a duplicate would inherit the handler of the user's.
Communicator Communicator::duplicate(CommunicatorView parent) {
    MPI_Comm comm = MPI_COMM_NULL;
    parent.beforeCollective();
    const ActivityScope activity = ActivityScope::collective("MPI_Comm_dup");
    checkMpi(MPI_Comm_dup(parent.handle(), &comm), "MPI_Comm_dup");
    Communicator owner(comm);
    returnErrors(comm);
    return owner;
}

Communicator Communicator::split(CommunicatorView parent, int color, int key) {
    MPI_Comm comm = MPI_COMM_NULL;
    parent.beforeCollective();
    const ActivityScope activity = ActivityScope::collective("MPI_Comm_split");
    checkMpi(MPI_Comm_split(parent.handle(), color, key, &comm), "MPI_Comm_split");
    Communicator owner(comm);
    if (comm != MPI_COMM_NULL)
        returnErrors(comm);
    return owner;
}

// One MPI_Comm_split_type; virtual nodes take one MPI_Comm_split more. Keys are ranks of the parent, so the members
// of a node ascend with their ranks there (`NodeTopology::members` relies on it).
Communicator Communicator::splitNode(CommunicatorView parent, int ranksPerNode) {
    // MPI decides which ranks can share memory. Virtual nodes are consecutive ranks of a machine, in the order of
    // the parent communicator.
    DNDS_CHECK(ranksPerNode >= 0, ArgumentError, "virtual nodes of {} ranks", ranksPerNode);
    MPI_Comm comm = MPI_COMM_NULL;
    parent.beforeCollective();
    const ActivityScope activity = ActivityScope::collective("MPI_Comm_split_type");
    checkMpi(MPI_Comm_split_type(parent.handle(), MPI_COMM_TYPE_SHARED, parent.rank(), MPI_INFO_NULL, &comm),
             "MPI_Comm_split_type");
    Communicator node(comm);
    returnErrors(comm);
    if (ranksPerNode == 0)
        return node;
    const CommunicatorView machine = node.view();
    return split(machine, machine.rank() / ranksPerNode, machine.rank());
}

CommunicatorView Communicator::view(SourceLocation where) const {
    if (!valid()) [[unlikely]]
        throw StateError("this communicator is empty (default constructed or moved from)", where);
    return CommunicatorView(comm_, where);
}

} // namespace DNDS
