#include "DNDS/OneSided/PeerWaits.hpp"

#include "DNDS/Mpi/Check.hpp"
#include "DNDS/Mpi/Whereabouts.hpp"
#include "DNDS/OneSided/Meetings.hpp"

namespace DNDS {

namespace {

/// What messages are made of; requests may read them at any time.
constexpr unsigned char reasons[] = {static_cast<unsigned char>(PeerWaits::Leaving::ByException),
                                     static_cast<unsigned char>(PeerWaits::Leaving::AfterError)};

bool alive(const CommunicatorContext &context, int rank) {
    const NodeTopology &node = context.node();
    return !node.arena || !node.sameNode(rank) || node.arena->alive(node.nodeRank(rank));
}

} // namespace

PeerWaits::PeerWaits(std::shared_ptr<CommunicatorContext> context, std::string name)
    : context_(std::move(context)), name_(std::move(name)), leaving_(context_->nextChannel()),
      patience_(readEnvironment().waitTimeout) {}

void PeerWaits::checkAlive(const CommunicatorContext &context, int peer, std::string_view name, std::string_view what,
                           double seconds, double patience) {
    for (int rank = 0; rank < context.comm().size(); ++rank)
        DNDS_CHECK((peer != anyone && rank != peer) || alive(context, rank), PeerError,
                   "{}: the process of rank {} has ended while this rank waited for {} to {}{}", name, rank,
                   peer == anyone ? "others" : "it", what, rollCall(context.node().arena.get()));
    DNDS_CHECK(patience <= 0.0 || seconds < patience, PeerError,
               "{}: waited {:.3g} s for {} to {} (DNDS_WAIT_TIMEOUT): has {} ended, or is it elsewhere?{}", name,
               seconds, peer == anyone ? std::string("other ranks") : fmt::format("rank {}", peer), what,
               peer == anyone ? "one of them" : "it", rollCall(context.node().arena.get()));
}

void PeerWaits::check(int peer, std::string_view what, double seconds) {
    requireSound(); // another thread may have found out
    requireAll();
    try {
        checkAlive(*context_, peer, name_, what, seconds, patience_);
    } catch (const PeerError &) {
        breakDown(std::current_exception());
        throw;
    }
}

void PeerWaits::requireAll() {
    if (!mpiActive() || !context_->alive() || !mayCallMpi(maker_))
        return;
    const std::unique_lock lock(mutex_);
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    int found = 0;
    checkMpi(MPI_Improbe(MPI_ANY_SOURCE, leaving_.tag, leaving_.comm, &found, &message, &status), "MPI_Improbe");
    if (found == 0)
        return;
    unsigned char why = 0;
    checkMpi(MPI_Mrecv(&why, 1, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
    told_ = true; // all have the same message
    noteLeft();
    try {
        throw PeerError(fmt::format("rank {} has left {}, since {}", status.MPI_SOURCE, name_,
                                    static_cast<Leaving>(why) == Leaving::ByException
                                        ? "an exception destroyed it there: see that rank's own error"
                                        : "a wait or request failed there: see that rank's own error"));
    } catch (const PeerError &) {
        if (!broken_) {
            cause_ = std::current_exception();
            broken_ = true;
        }
        throw;
    }
}

bool PeerWaits::hasBroken() {
    try {
        requireAll();
    } catch (const PeerError &) { // kept
    }
    return broken();
}

void PeerWaits::breakDown(std::exception_ptr cause) noexcept {
    {
        const std::lock_guard lock(mutex_);
        if (broken_)
            return;
        cause_ = std::move(cause);
        broken_ = true;
    }
    leave(Leaving::AfterError);
}

void PeerWaits::leave(Leaving why) noexcept {
    if (!mpiActive() || !context_->alive() || !mayCallMpi(maker_))
        return;
    const std::lock_guard lock(mutex_);
    if (std::exchange(told_, true))
        return;
    noteLeft();
    try {
        const CommunicatorView &comm = context_->comm();
        for (int step = 1; step < comm.size(); ++step) {
            const int rank = (comm.rank() + step) % comm.size();
            if (!alive(*context_, rank))
                continue;
            MPI_Request request = MPI_REQUEST_NULL;
            if (MPI_Isend(&reasons[static_cast<std::size_t>(why)], 1, MPI_BYTE, rank, leaving_.tag, leaving_.comm,
                          &request) == MPI_SUCCESS)
                MPI_Request_free(&request);
        }
    } catch (...) { // they give up when their time is up
    }
}

void PeerWaits::noteLeft() noexcept {
    if (const std::shared_ptr<Meetings> meetings = context_->attachment<Meetings>())
        meetings->noteLeft(object());
}

void PeerWaits::throwCause() const {
    const std::lock_guard lock(mutex_);
    std::rethrow_exception(cause_);
}

} // namespace DNDS
