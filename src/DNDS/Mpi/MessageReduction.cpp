#include "DNDS/Mpi/Reductions.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/ProgressEngine.hpp"
#include "DNDS/Mpi/Wait.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace DNDS {

namespace {

/// Role of a rank in a round.
enum class Role : unsigned char { Give, Take, Combine, Exchange };

/// One round of a rank: at most one message to the peer and one from it.
struct Step {
    int peer = 0;
    Role role = Role::Exchange;

    bool sends() const noexcept { return role == Role::Give || role == Role::Exchange; }
    bool receives() const noexcept { return role != Role::Give; }
};

/// The rounds of a rank. Of the first 2 (ranks - 2^k) ranks, 2^k <= ranks, each even one gives its values to the next
/// one at the beginning, and takes the result from it at the end. Between two ranks there is at most one message each
/// way, so that consecutive reductions do not mix.
/// Each step has its counterpart in the peer's list, and all lists follow one order of rounds: no ranks wait in a
/// circle. With a commutative operation both ends of an exchange compute the same bits, hence all ranks do. Example:
/// of 6 ranks, 0 and 2 fold into 1 and 3, and ranks 1, 3, 4 and 5 double in two rounds.
std::vector<Step> stepsOf(int rank, int ranks) {
    // Ranks that take part in the doubling are numbered without the even ones that fold; `peer` below is such a
    // number, translated back where it is stored. O(log ranks) steps.
    const int doubling = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
    const int folded = ranks - doubling;
    std::vector<Step> steps;
    const bool folds = rank < 2 * folded;
    if (folds && rank % 2 == 0)
        return {{rank + 1, Role::Give}, {rank + 1, Role::Take}};
    if (folds)
        steps.push_back({rank - 1, Role::Combine});
    const int number = folds ? rank / 2 : rank - folded;
    for (int distance = 1; distance < doubling; distance *= 2) {
        const int peer = number ^ distance;
        steps.push_back({peer < folded ? 2 * peer + 1 : peer + folded, Role::Exchange});
    }
    if (folds)
        steps.push_back({rank - 1, Role::Give});
    return steps;
}

} // namespace

/// Memory that MPI reads and writes. All receives of a reduction are posted when it starts, so that no message of
/// another rank is left without one, even where this rank frees the communicator before the end. A message of the
/// next reduction that arrives early matches a later receive, since MPI keeps the order of a pair of ranks.
struct MessageReduction::State {
    std::string name;
    Channel channel;
    std::vector<Step> steps;
    /// Steps before it are complete. `mine` holds what they combined; it changes only in `complete`, when the send
    /// of that step has been read.
    std::size_t next = 0;                  ///< the step in flight; [steps] if none is
    std::vector<std::byte> mine, incoming; ///< the latter: [steps] of equal length
    Combine combine = nullptr;
    std::vector<MPI_Request> requests; ///< [steps] a receive and a send each
    std::thread::id maker = std::this_thread::get_id();

    /// Posts all receives, and sends for the first step.
    /// O(log ranks) receives of one buffer each; sends follow one by one, as each needs the values combined so far.
    void begin() {
        const auto count = static_cast<int>(mine.size());
        incoming.resize(steps.size() * mine.size());
        for (std::size_t k = 0; k < steps.size(); ++k)
            if (steps[k].receives())
                checkMpi(MPI_Irecv(incoming.data() + k * mine.size(), count, MPI_BYTE, steps[k].peer, channel.tag,
                                   channel.comm, &requests[2 * k]),
                         "MPI_Irecv");
        next = 0;
        send();
    }
    void send() {
        if (next < steps.size() && steps[next].sends())
            checkMpi(MPI_Isend(mine.data(), static_cast<int>(mine.size()), MPI_BYTE, steps[next].peer, channel.tag,
                               channel.comm, &requests[2 * next + 1]),
                     "MPI_Isend");
    }
    /// Takes the peer's values of the step in flight, and starts the next one. Throws where the peer sent another
    /// number of bytes: then ranks reduce different things.
    void complete(const MPI_Status &status) {
        const Step &step = steps[next];
        if (step.receives()) {
            int received = 0;
            checkMpi(MPI_Get_count(&status, MPI_BYTE, &received), "MPI_Get_count");
            DNDS_CHECK(
                received == static_cast<int>(mine.size()), StateError,
                "rank {} reduces {} bytes in the reduction of {}, and this rank {}: all ranks make the same calls",
                step.peer, received, name, mine.size());
            const std::byte *theirs = incoming.data() + next * mine.size();
            if (step.role == Role::Take)
                std::copy_n(theirs, mine.size(), mine.begin());
            else
                combine(mine.data(), theirs, mine.size());
        }
        ++next;
        send();
    }
    /// Makes progress; true when all steps are complete.
    bool progress() {
        while (next < steps.size()) {
            int done = 0;
            std::array<MPI_Status, 2> statuses;
            checkMpi(MPI_Testall(2, &requests[2 * next], &done, statuses.data()), "MPI_Testall");
            if (done == 0)
                return false;
            complete(statuses[0]);
        }
        return true;
    }
    /// Whether MPI may read or write the memory.
    bool active() const noexcept {
        return std::ranges::any_of(requests, [](MPI_Request request) { return request != MPI_REQUEST_NULL; });
    }
    /// After the object was destroyed: keeps progressing for the other ranks, and so that no message is left over. True
    /// when all steps are complete.
    bool end() noexcept {
        try {
            return progress();
        } catch (const Error &) { // other ranks report it
            return settle();
        }
    }
    /// Cancels the reduction in flight; true when MPI needs none of the memory any more.
    bool settle() noexcept {
        if (next < steps.size())
            for (std::size_t k = 0; k < steps.size(); ++k)
                if (requests[2 * k] != MPI_REQUEST_NULL)
                    MPI_Cancel(&requests[2 * k]);
        next = steps.size();
        int done = 0;
        return MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE) ==
                   MPI_SUCCESS &&
               done != 0;
    }
};

MessageReduction::MessageReduction(CommunicatorContext &context, std::string name) : context_(context) {
    const CommunicatorContext::SetUp setUp(context);
    const Channel channel = context.nextChannel(); // before any failure: ranks stay in step
    const OnFailure undo([&] { context.delist(*this); });
    context.comm().guarded([&] {
        setUp.requireAlone();
        engine_ = std::make_unique<ProgressEngine>();
        state_ = std::make_shared<State>();
        state_->name = std::move(name);
        state_->channel = channel;
        state_->steps = stepsOf(context.comm().rank(), context.comm().size());
        state_->next = state_->steps.size();
        state_->requests.assign(2 * state_->steps.size(), MPI_REQUEST_NULL);
        context.enlist(*this);
    });
}

MessageReduction::~MessageReduction() {
    engine_->end();
    context_.delist(*this);
    if (!mpiActive() || !state_->active())
        return;
    // The memory outlives this object until MPI has read and written it. The other ranks still get this rank's
    // part: abandoning the reduction would leave them waiting. After a failure they do not wait, and it is
    // cancelled.
    std::function<bool()> ended = [state = state_.get()] { return state->settle(); };
    if (context_.alive())
        ended = [state = state_.get(), &context = context_] {
            return context.revoked() ? state->settle() : state->end();
        };
    context_.park(state_, ended, state_->maker);
}

bool MessageReduction::pending() const noexcept { return state_->next < state_->steps.size(); }

void MessageReduction::begin(std::span<const std::byte> mine, Combine combine) {
    DNDS_CHECK(!pending(), StateError, "the reduction of {} is pending: wait for it first", state_->name);
    State &state = *state_;
    state.mine.assign(mine.begin(), mine.end());
    state.combine = combine;
    ++starts_;
    state.begin();
}

void MessageReduction::start(std::span<const std::byte> mine, Combine combine) {
    static_cast<void>(context_.comm()); // throws if it was freed
    context_.running("reduction of", state_->name, [&] {
        begin(mine, combine);
        // With one rank there are no steps, and the reduction is complete at once.
        if (pending())
            engine_->begin([this] { static_cast<void>(state_->progress()); });
    });
}

bool MessageReduction::progress() {
    engine_->moveHere();
    if (const std::exception_ptr failure = engine_->takeFailure())
        std::rethrow_exception(failure);
    if (!state_->progress())
        return false;
    engine_->end();
    return true;
}

bool MessageReduction::ready() {
    static_cast<void>(context_.comm());
    return context_.running("reduction of", state_->name, [&] { return progress(); });
}

std::string MessageReduction::awaited() const {
    if (!pending()) // it has become complete since the last look
        return fmt::format("the reduction of {}", state_->name);
    return fmt::format("rank {} to take part in the reduction of {}", state_->steps[state_->next].peer, state_->name);
}

std::span<const std::byte> MessageReduction::wait() {
    static_cast<void>(context_.comm());
    context_.running("reduction of", state_->name, [&] {
        waitUntil(
            context_, [&] { return progress(); }, [&] { return awaited(); }, PollTarget::Mpi);
    });
    return state_->mine;
}

// For callers that have nothing to overlap: scalar products of solvers.
void MessageReduction::reduceBytes(std::span<std::byte> values, Combine combine) {
    static_cast<void>(context_.comm());
    context_.running("reduction of", state_->name, [&] {
        begin(values, combine);
        // Without the progress engine: this thread does not leave the call before the reduction is complete.
        waitUntil(
            context_, [&] { return state_->progress(); }, [&] { return awaited(); }, PollTarget::Mpi);
        std::ranges::copy(state_->mine, values.begin());
    });
}

bool MessageReduction::settle() noexcept {
    engine_->end();
    return state_->settle();
}

void MessageReduction::renew() { state_->channel = context_.renewed(state_->channel); }

} // namespace DNDS
