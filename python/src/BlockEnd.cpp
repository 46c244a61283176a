#include "BlockEnd.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <thread>

namespace DNDS::Python {

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// How long a failed rank waits for others. Ranks that failed, too, or are done arrive in this time.
constexpr Seconds timeout{5};
constexpr Seconds forEver{std::numeric_limits<double>::infinity()};

} // namespace

/// Two questions, each answered by the largest answer of all ranks.
struct BlockEnd::Votes {
    enum Question : std::size_t {
        AnyFailed,
        AnyLeft ///< without waiting for the first question's answer
    };

    Communicator comm;
    std::array<int, 2> answers{};
    std::array<MPI_Request, 2> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL};

    void ask(Question question, bool mine) {
        answers[question] = mine ? 1 : 0;
        checkMpi(MPI_Iallreduce(MPI_IN_PLACE, &answers[question], 1, MPI_INT, MPI_MAX, comm.view().handle(),
                                &requests[question]),
                 "MPI_Iallreduce");
    }

    /// Whether all ranks have answered in time.
    bool answered(Question question, Seconds limit) {
        const Clock::time_point begin = Clock::now();
        std::chrono::microseconds pause{1};
        for (;;) {
            int complete = 0;
            checkMpi(MPI_Test(&requests[question], &complete, MPI_STATUS_IGNORE), "MPI_Test");
            if (complete != 0)
                return true;
            if (Clock::now() - begin > limit)
                return false;
            std::this_thread::sleep_for(pause);
            pause = std::min(2 * pause, std::chrono::microseconds{1000});
        }
    }
};

BlockEnd::BlockEnd(CommunicatorView comm) : votes_(std::make_unique<Votes>()) {
    votes_->comm = Communicator::duplicate(comm);
}

BlockEnd::~BlockEnd() = default;

BlockEnd::Outcome BlockEnd::meet(bool failed) {
    Votes &votes = *votes_;
    votes.ask(Votes::AnyFailed, failed);
    if (!votes.answered(Votes::AnyFailed, failed ? timeout : forEver)) {
        votes.ask(Votes::AnyLeft, true);
        (void)votes_.release(); // MPI writes the answers when the others arrive
        return Outcome::Apart;
    }
    if (votes.answers[Votes::AnyFailed] == 0)
        return Outcome::Whole;
    votes.ask(Votes::AnyLeft, false);
    votes.answered(Votes::AnyLeft,
                   forEver); // all have answered the first question, and answer this one in any case
    if (votes.answers[Votes::AnyLeft] == 0)
        return Outcome::Failed;
    (void)votes_.release(); // a rank that has left does not free the communicator with us
    return Outcome::Apart;
}

} // namespace DNDS::Python
