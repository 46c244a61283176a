#include "DNDS/Mpi/Revocation.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/NodeArena.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace DNDS {

namespace {

constexpr int noticeTag = 0; ///< channels begin at 1

/// The time a reader waits for the text of a rank that failed just now.
constexpr std::chrono::seconds patienceForText(1);

} // namespace

std::string Detail::textOf(const std::exception_ptr &failure) {
    const Failure said = describeFailure(failure);
    if (said.kind == ErrorKind::Memory || !said.function.empty())
        return fmt::format("{} ({})", said.message, errorKindName(said.kind));
    return said.message;
}

/// The message to neighbours on other nodes. Sent as bytes, so ranks represent numbers alike.
struct Revocation::Notice {
    std::uint64_t generation = 0; ///< generation of the communicator: its identity, and how often it has recovered
    std::uint32_t failed = 0;     ///< as in the record
    std::array<char, RevocationRecord::maxBytes> text{};
};

/// A notice on its way, at an address that does not change while MPI reads it.
struct Revocation::Sent {
    Notice notice;
    std::vector<MPI_Request> requests;
    Sent *next = nullptr; ///< among `unreceived`

    /// Notices of destroyed communicators that no peer had received. Never freed, and found by leak checkers.
    static inline std::atomic<Sent *> unreceived = nullptr;

    bool complete() noexcept;
};

Revocation::Revocation() = default;

Revocation::~Revocation() {
    if (!mpiActive())
        return;
    // Kept rather than waited for: a destructor does not wait, and a peer may never receive the notice.
    for (std::unique_ptr<Sent> &sent : sent_)
        if (!mayCallMpi(maker_) || !sent->complete()) { // its bytes must stay valid while MPI reads them
            // Pushed to a stack that threads share; nothing is popped.
            Sent *const kept = sent.release();
            kept->next = Sent::unreceived.load(std::memory_order_relaxed);
            while (!Sent::unreceived.compare_exchange_weak(kept->next, kept, std::memory_order_release,
                                                           std::memory_order_relaxed)) {
            }
        }
}

bool Revocation::Sent::complete() noexcept {
    int done = 0;
    return MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE) == MPI_SUCCESS &&
           done != 0;
}

void Revocation::connect(const CommunicatorView &comm, const NodeTopology &node, std::uint64_t identity) {
    // Neighbours lie at distances of powers of two in both directions around the ring of ranks: any rank is reached
    // in O(log ranks) hops, and by several ways, should ranks on one of them be busy. Ranks of this node read the
    // record instead.
    generation_ = identity;
    comm_ = comm.handle();
    rank_ = comm.rank();
    alone_ = comm.size() == 1;
    if (node.arena) {
        record_ = &node.arena->revocationRecord();
        memory_ = node.arena;
        first_ = node.arena->nodeRank() == 0;
    }
    const auto onNode = [&](int rank) { return rank == rank_ || (node.arena && node.sameNode(rank)); };
    for (int rank = 0; rank < comm.size() && !otherNodes_; ++rank)
        otherNodes_ = !onNode(rank);
    for (int distance = 1; otherNodes_ && distance < comm.size(); distance *= 2)
        for (const int rank : {(rank_ + distance) % comm.size(), (rank_ + comm.size() - distance) % comm.size()})
            if (!onNode(rank) && std::ranges::find(neighbours_, rank) == neighbours_.end())
                neighbours_.push_back(rank);
}

/// Writes the record, unless it has been written.
void Revocation::note(std::uint32_t failed, std::string_view text) noexcept {
    // The compare-and-swap decides which rank was first, on this node; others' texts are dropped. `told` follows
    // with release when the text is complete: readers may find `failed` before it.
    std::uint32_t none = 0;
    if (!record_->failed.compare_exchange_strong(none, failed, std::memory_order_acq_rel))
        return;
    const std::size_t size = std::min(text.size(), RevocationRecord::maxBytes - 1);
    std::memcpy(record_->text.data(), text.data(), size);
    record_->text[size] = '\0';
    record_->told.store(1, std::memory_order_release);
}

void Revocation::revoke(std::string_view call, std::string_view why, Caller caller) noexcept {
    if (alone_ || inForkedChild())
        return;
    // The record needs no allocation: to have no memory may be the failure itself.
    std::array<char, RevocationRecord::maxBytes> text{};
    const auto [end, size] = fmt::format_to_n(text.data(), text.size() - 1, "{}: {}", call, why);
    note(static_cast<std::uint32_t>(rank_) + 1, {text.data(), std::min(size, text.size() - 1)});
    if (caller == Caller::Call || mayCallMpi(maker_))
        forward(); // even if another rank of the node was first: it may have no neighbour on some node
}

// Without news one probe. Does not wait for the lock: another thread that holds it does the same.
void Revocation::listen() noexcept {
    // Receives all notices that have arrived, then passes the news on. Polled by waits and calls, since no thread
    // of DNDS listens: a rank that makes no call learns of a failure at its next one.
    if (!otherNodes_ || !mpiActive())
        return;
    {
        // Another thread that holds the lock is looking, or forwarding: one is enough.
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (!lock)
            return;
        for (int found = 1; found != 0;) {
            MPI_Message message = MPI_MESSAGE_NULL;
            found = 0;
            Notice notice;
            if (MPI_Improbe(MPI_ANY_SOURCE, noticeTag, comm_, &found, &message, MPI_STATUS_IGNORE) != MPI_SUCCESS ||
                found == 0 || MPI_Mrecv(&notice, sizeof notice, MPI_BYTE, &message, MPI_STATUS_IGNORE) != MPI_SUCCESS)
                break;
            // Late notices of an earlier failure, or of a freed communicator with the same number, are dropped.
            if (notice.generation == generation_)
                note(notice.failed, notice.text.data());
        }
    }
    if (revoked())
        forward();
}

// O(log ranks) sends of one fixed-size notice. MPI_Isend is not waited for: peers may never receive it.
void Revocation::forward() noexcept {
    const std::lock_guard lock(mutex_);
    // Once a generation, however often and from whichever neighbour the notice arrives: that ends the flood.
    if (neighbours_.empty() || forwarded_ || !mpiActive())
        return;
    try {
        auto sent = std::make_unique<Sent>();
        sent->notice.generation = generation_;
        sent->notice.failed = record_->failed.load(std::memory_order_acquire);
        const std::string reason = text();
        std::memcpy(sent->notice.text.data(), reason.data(), std::min(reason.size(), sent->notice.text.size() - 1));
        sent->requests.assign(neighbours_.size(), MPI_REQUEST_NULL);
        std::erase_if(sent_, [](const auto &earlier) { return earlier->complete(); }); // of earlier generations
        sent_.reserve(sent_.size() + 1);
        forwarded_ = true;
        for (std::size_t k = 0; k < neighbours_.size(); ++k)
            if (MPI_Isend(&sent->notice, sizeof(Notice), MPI_BYTE, neighbours_[k], noticeTag, comm_,
                          &sent->requests[k]) != MPI_SUCCESS)
                sent->requests[k] = MPI_REQUEST_NULL;
        sent_.push_back(std::move(sent));
    } catch (const std::exception &) { // without memory: the next call tries again
        return;
    }
}

/// The failed rank's message; it may be writing it at this moment.
/// Waits at most a second: the writer may have been killed between `failed` and `told`.
std::string Revocation::text() const {
    const auto end = std::chrono::steady_clock::now() + patienceForText;
    while (record_->told.load(std::memory_order_acquire) == 0)
        if (std::chrono::steady_clock::now() > end)
            return "its error is not known";
        else
            std::this_thread::yield();
    return {record_->text.data(), strnlen(record_->text.data(), RevocationRecord::maxBytes)};
}

void Revocation::throwRevoked(SourceLocation where) {
    forward();
    const auto failed = static_cast<int>(record_->failed.load(std::memory_order_acquire)) - 1;
    throw RevokedError(fmt::format("{} failed in {}. All ranks of the communicator stop: to go on, call "
                                   "DNDS::recover for it on all of them",
                                   failed == rank_ ? "this rank" : fmt::format("rank {}", failed), text()),
                       failed, where);
}

// `told` is cleared first: a new failure that sets `failed` right afterwards finds no old text.
// Between two meetings of all ranks, which all raise `generation_`: notices of the old failure that arrive later are
// dropped.
void Revocation::forget() noexcept {
    const std::lock_guard lock(mutex_);
    ++generation_;
    forwarded_ = false;
    if (!first_)
        return;
    record_->told.store(0, std::memory_order_relaxed);
    record_->failed.store(0, std::memory_order_release);
}

} // namespace DNDS
