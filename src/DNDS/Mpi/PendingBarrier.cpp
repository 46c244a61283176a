#include "DNDS/Mpi/PendingBarrier.hpp"

#include <utility>
#include <vector>

namespace DNDS {

/// One message a round.
struct PendingBarrier::Sent {
    std::vector<Message> messages;
    std::vector<MPI_Request> requests;

    bool complete() noexcept {
        int done = 0;
        return !mpiActive() ||
               MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE) !=
                   MPI_SUCCESS ||
               done != 0;
    }
};

PendingBarrier::PendingBarrier(std::shared_ptr<CommunicatorContext> context, const Channel &channel)
    : context_(std::move(context)), channel_(channel), rank_(context_->comm().rank()), ranks_(context_->comm().size()),
      sent_(std::make_shared<Sent>()) {
    std::size_t rounds = 0;
    while ((std::size_t{1} << rounds) < static_cast<std::size_t>(ranks_))
        ++rounds;
    sent_->messages.resize(rounds);
    sent_->requests.resize(rounds, MPI_REQUEST_NULL);
}

PendingBarrier::~PendingBarrier() {
    if (!sent_->complete())
        context_->leave(sent_, [sent = sent_] { return sent->complete(); });
}

void PendingBarrier::start(const Words &mine) {
    round_ = 0;
    for (std::size_t k = 0; k < words; ++k)
        seen_[k] = {mine[k], mine[k], rank_, rank_};
    tell();
}

void PendingBarrier::tell() {
    if (round_ == sent_->messages.size())
        return;
    Message &message = sent_->messages[round_] = seen_;
    checkMpi(MPI_Isend(&message, sizeof(Message), MPI_BYTE, (rank_ + (1 << round_)) % ranks_, channel_.tag,
                       channel_.comm, &sent_->requests[round_]),
             "MPI_Isend");
}

void PendingBarrier::add(const Message &theirs) noexcept {
    for (std::size_t k = 0; k < words; ++k) {
        Extremes &mine = seen_[k];
        const Extremes &other = theirs[k];
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

bool PendingBarrier::reached() {
    for (; round_ < sent_->messages.size(); ++round_, tell()) {
        const int from = (rank_ + ranks_ - (1 << round_)) % ranks_;
        int found = 0;
        MPI_Message message = MPI_MESSAGE_NULL;
        checkMpi(MPI_Improbe(from, channel_.tag, channel_.comm, &found, &message, MPI_STATUS_IGNORE), "MPI_Improbe");
        if (found == 0)
            return false;
        Message theirs;
        checkMpi(MPI_Mrecv(&theirs, sizeof(Message), MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
        add(theirs);
    }
    return sent_->complete();
}

bool PendingBarrier::settle() noexcept { return sent_->complete(); }

void PendingBarrier::renew() { channel_ = context_->renewed(channel_); }

} // namespace DNDS
