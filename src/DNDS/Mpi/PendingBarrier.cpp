#include "DNDS/Mpi/PendingBarrier.hpp"

#include <new>
#include <utility>
#include <vector>

namespace DNDS {

struct PendingBarrier::Sent {
    std::vector<Message> messages; ///< with room for all: they stay where they are
    std::vector<MPI_Request> requests;

    bool complete() noexcept {
        int done = 0;
        return !mpiActive() ||
               MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE) !=
                   MPI_SUCCESS ||
               done != 0;
    }
};

PendingBarrier::PendingBarrier(std::shared_ptr<CommunicatorContext> context, const Channel &channel,
                               std::uint64_t number, const Words &mine)
    : context_(std::move(context)), channel_(channel), rank_(context_->comm().rank()), ranks_(context_->comm().size()),
      sent_(std::make_shared<Sent>()) {
    seen_.number = number;
    for (std::size_t k = 0; k < words; ++k)
        seen_.extremes[k] = {mine[k], mine[k], rank_, rank_};
    std::size_t rounds = 0;
    for (int distance = 1; distance < ranks_; distance *= 2)
        ++rounds;
    sent_->messages.reserve(rounds);
    sent_->requests.reserve(rounds);
    tell();
}

PendingBarrier::~PendingBarrier() {
    if (sent_->complete())
        return;
    try {
        context_->leave(sent_, [sent = sent_] { return sent->complete(); });
    } catch (...) { // no memory: rather than to free what MPI reads
        static_cast<void>(new (std::nothrow) std::shared_ptr<Sent>(sent_));
    }
}

void PendingBarrier::tell() {
    if (distance_ >= ranks_)
        return;
    const Message &message = sent_->messages.emplace_back(seen_);
    checkMpi(MPI_Isend(&message, sizeof(Message), MPI_BYTE, (rank_ + distance_) % ranks_, channel_.tag, channel_.comm,
                       &sent_->requests.emplace_back(MPI_REQUEST_NULL)),
             "MPI_Isend");
}

std::optional<PendingBarrier::Message> PendingBarrier::receive(const Channel &channel, int from) {
    int found = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    checkMpi(MPI_Improbe(from, channel.tag, channel.comm, &found, &message, MPI_STATUS_IGNORE), "MPI_Improbe");
    if (found == 0)
        return std::nullopt;
    Message theirs;
    checkMpi(MPI_Mrecv(&theirs, sizeof(Message), MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
    return theirs;
}

/// Whether the message of `from` is here; passes over those of barriers that were given up.
bool PendingBarrier::hear(int from) {
    while (const auto theirs = receive(channel_, from)) {
        DNDS_CHECK(theirs->number <= seen_.number, StateError,
                   "rank {} is in a later barrier: it has given up the one that this rank waits in", from);
        if (theirs->number < seen_.number)
            continue;
        add(*theirs);
        return true;
    }
    return false;
}

void PendingBarrier::add(const Message &theirs) noexcept {
    for (std::size_t k = 0; k < words; ++k) {
        Extremes &mine = seen_.extremes[k];
        const Extremes &other = theirs.extremes[k];
        if (std::pair(other.least, other.leastRank) < std::pair(mine.least, mine.leastRank)) {
            mine.least = other.least;
            mine.leastRank = other.leastRank;
        }
        if (other.most > mine.most || (other.most == mine.most && other.mostRank < mine.mostRank)) {
            mine.most = other.most;
            mine.mostRank = other.mostRank;
        }
    }
}

bool PendingBarrier::waiting(const CommunicatorView &comm, const Channel &channel) {
    int found = 0;
    checkMpi(MPI_Iprobe(before(comm), channel.tag, channel.comm, &found, MPI_STATUS_IGNORE), "MPI_Iprobe");
    return found != 0;
}

std::optional<PendingBarrier::Started> PendingBarrier::take(const CommunicatorView &comm, const Channel &channel) {
    const auto theirs = receive(channel, before(comm)); // of its first round: nobody else's numbers
    if (!theirs)
        return std::nullopt;
    Started started{theirs->number, {}};
    for (std::size_t k = 0; k < words; ++k)
        started.words[k] = theirs->extremes[k].least;
    return started;
}

bool PendingBarrier::reached() {
    for (; distance_ < ranks_; distance_ *= 2, tell())
        if (!hear((rank_ + ranks_ - distance_) % ranks_))
            return false;
    return true;
}

} // namespace DNDS
