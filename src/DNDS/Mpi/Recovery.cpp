#include "DNDS/Mpi/FailTogether.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/ProgressEngine.hpp"
#include "DNDS/Mpi/Revocation.hpp"
#include "DNDS/Mpi/Wait.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace DNDS {

namespace {

std::shared_ptr<CommunicatorContext> contextOf(const CommunicatorView &comm) {
    std::shared_ptr<CommunicatorContext> context = CommunicatorContext::find(comm);
    DNDS_CHECK(context != nullptr, StateError, "nothing of DNDS uses this communicator yet");
    return context;
}

} // namespace

void revoke(CommunicatorView comm, std::string_view why) { contextOf(comm)->revocation().revoke("the program", why); }

void revoke(CommunicatorView comm, const std::exception_ptr &why) {
    DNDS_CHECK(why != nullptr, ArgumentError, "there is no exception to tell the other ranks of");
    revoke(comm, Detail::textOf(why));
}

bool isRevoked(CommunicatorView comm) {
    Revocation &revocation = contextOf(comm)->revocation();
    revocation.listen();
    return revocation.revoked();
}

void recover(CommunicatorView comm) { contextOf(comm)->recover(); }

void CommunicatorContext::revoke(std::string_view call, std::string_view name,
                                 const std::exception_ptr &failure) noexcept {
    if (!alive())
        return;
    try {
        revocation_->revoke(name.empty() ? std::string(call) : fmt::format("{} '{}'", call, name),
                            Detail::textOf(failure));
    } catch (const std::exception &) { // no memory for more text
        revocation_->revoke(call, "it had no memory to say how");
    }
}

// A PeerError ("the process of rank 3 has ended") gives way to that rank's own notice, if it has arrived.
void CommunicatorContext::failRunning(std::string_view call, std::string_view name, SourceLocation where) {
    const std::exception_ptr failure = std::current_exception();
    if (alive() && holds<PeerError>(failure)) // seen from here; that rank's own message is more precise
        revocation_->requireValid(where);
    revoke(call, name, failure);
    std::rethrow_exception(failure);
}

void CommunicatorContext::enlist(Recoverable &object) {
    const std::lock_guard lock(enlisting_);
    recoverables_.push_back(&object);
}

void CommunicatorContext::delist(Recoverable &object) noexcept {
    const std::lock_guard lock(enlisting_);
    std::erase(recoverables_, &object);
}

/// Receives and drops messages that no object expects any more: their senders may wait for a match.
/// Takes only messages that have arrived, O(their bytes); callers repeat it until their own condition holds.
void CommunicatorContext::discardArrived() {
    std::vector<std::byte> bytes;
    const auto discard = [&](MPI_Comm comm) {
        // Matched probes: on several threads no other receive can take the message between probe and receive.
        for (int found = 1; found != 0;) {
            MPI_Message message = MPI_MESSAGE_NULL;
            MPI_Status status;
            checkMpi(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &found, &message, &status), "MPI_Improbe");
            if (found == 0)
                return;
            MPI_Count count = 0;
            checkMpi(MPI_Get_elements_x(&status, MPI_BYTE, &count), "MPI_Get_elements_x");
            bytes.resize(static_cast<std::size_t>(std::max<MPI_Count>(count, 0)));
            const ByteCount size(bytes.size());
            checkMpi(MPI_Mrecv(bytes.data(), size.count(), size.type(), &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
        }
    };
    discard(view_.handle()); // notices
    for (const Communicator &owner : channelOwners())
        discard(owner.view().handle());
}

// All objects are asked, even after one that is not settled: each call also makes progress.
bool CommunicatorContext::settleAll() noexcept {
    bool settled = true;
    const std::lock_guard lock(enlisting_);
    for (Recoverable *object : recoverables_)
        settled = object->settle() && settled;
    return settled;
}

/// Waits until `done`, although the communicator is revoked.
template <class Done>
void CommunicatorContext::waitRevoked(std::string_view what, const Done &done) {
    Backoff backoff(view_.handle(), node_->crowded);
    while (!done()) {
        ProgressEngine::progressAll(); // of other communicators: a rank may wait for those first
        backoff.pauseIfCrowded();
        if (backoff.longWait())
            requireAlive(*this, what, backoff.seconds(), waitTimeout_);
    }
}

/// A barrier by MPI_Ibarrier that notices ended processes. With `discards` it receives and drops messages on the
/// channels while it waits.
void CommunicatorContext::meet(std::string_view what, bool discards) {
    MPI_Request request = MPI_REQUEST_NULL;
    checkMpi(MPI_Ibarrier(view_.handle(), &request), "MPI_Ibarrier");
    waitRevoked(what, [&] {
        int met = 0;
        if (discards)
            discardArrived();
        checkMpi(MPI_Test(&request, &met, MPI_STATUS_IGNORE), "MPI_Test");
        return met != 0;
    });
}

/// Frees parts kept by all ranks, and records objects that only some ranks have destroyed.
/// Ranks destroy an object at different times, and peers may use its memory until all have destroyed theirs.
void CommunicatorContext::freeKept() {
    struct Part {
        std::uint64_t object;
        std::uint64_t rank;
    };
    // Each rank tells the objects of which it keeps a part: O(objects kept on all ranks) memory. An object that all
    // ranks keep has ended; the others are recorded, so that `renew` can say which rank has destroyed its part.
    std::vector<Part> mine;
    comm().guarded([&] {
        const std::lock_guard lock(parking_);
        for (const auto &[object, kept] : kept_)
            mine.push_back({object, static_cast<std::uint64_t>(comm().rank())});
    });
    const std::vector<Part> all = comm().allGatherV(std::span<const Part>(mine));
    std::map<std::uint64_t, Kept> ended;
    comm().guarded([&] {
        std::map<std::uint64_t, int> ranks;
        destroyed_.clear();
        for (const Part &part : all) {
            destroyed_[part.object] = static_cast<int>(part.rank);
            ++ranks[part.object];
        }
        const std::lock_guard lock(parking_);
        for (const auto &[object, count] : ranks)
            // `ended` frees them when this function returns, after the agreement at its end.
            if (count == comm().size())
                ended.insert(kept_.extract(object));
    });
    for (const auto &[object, kept] : ended)
        if (const auto &end = kept.second)
            end();
    comm().guarded([] {}); // no rank frees memory that another rank has open
}

// Cost: three barriers, one allgather of the kept objects, a few agreements, and one MPI_Comm_dup for each
// communicator of channels.
void CommunicatorContext::recover() {
    // In five steps, each separated by a meeting of all ranks from what would disturb it: (1) all ranks stop; (2)
    // messages in transit are received and dropped until MPI needs no memory of this rank; (3) memory kept for
    // others is freed; (4) channels move to new communicators, and objects start over on them; (5) counters are
    // made equal and the failure is forgotten.
    const SetUp setUp(*this);
    const ActivityScope activity("recover");
    revocation_->revoke("recover", "this rank wants all ranks to begin anew"); // running ranks are told
    // Receives first, so that messages in transit are received here, and not by cancelled operations.
    static_cast<void>(settleAll());
    meet("all ranks to call recover", true);
    waitRevoked("messages to leave this rank", [&] {
        discardArrived();
        const bool settled = settleAll();
        return freeFinished() && settled;
    });
    meet("all ranks to give up what is under way", true);

    std::vector<std::shared_ptr<void>> ended;
    {
        const std::lock_guard lock(parking_);
        ended.swap(keptUntilRecovery_);
    }
    ended.clear();
    // All ranks are here, and nothing moves. Messages never received stay with the previous communicators.
    freeKept();
    std::vector<Communicator> channels;
    comm().guarded([&] { channels.reserve(channelOwners().size()); });
    // One for each previous one, so that a channel keeps its tag and its place in the list (`renewed`).
    for (std::size_t k = 0; k < channelOwners().size(); ++k)
        channels.push_back(Communicator::duplicate(view_));
    channels_.swap(channels);
    comm().guarded([&] {
        const std::lock_guard lock(enlisting_);
        for (Recoverable *object : recoverables_)
            object->renew();
    });
    std::array<std::uint64_t, 2> counts{static_cast<std::uint64_t>(nextTag_), serial_};
    comm().allReduce(counts.data(), 2, MPI_MAX); // they differ after a set-up call that some ranks did not make
    nextTag_ = static_cast<int>(counts[0]);
    serial_ = counts[1];
    // Between meetings: no rank can find the old failure afterwards, or lose a new one.
    revocation_->forget();
    meet("all ranks to end their recovery", false);
}

} // namespace DNDS
