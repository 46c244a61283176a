#include "DNDS/Mpi/MessageReduction.hpp"

#include "DNDS/Mpi/Check.hpp"
#include "DNDS/Mpi/Wait.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <thread>
#include <utility>
#include <vector>

namespace DNDS {

namespace {

/// What a rank does in a round.
enum class Role : unsigned char { Give, Take, Combine, Exchange };

struct Step {
    int peer = 0;
    Role role = Role::Exchange;

    bool sends() const noexcept { return role == Role::Give || role == Role::Exchange; }
    bool receives() const noexcept { return role != Role::Give; }
};

/// The rounds of a rank. Of the first 2 (ranks - 2^k) ranks, 2^k <= ranks, each even one gives its values to the next
/// one at the beginning, and takes the result from it at the end. Between two ranks there is one message each way at
/// most, so that reductions that follow each other do not mix.
std::vector<Step> stepsOf(int rank, int ranks) {
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

/// What MPI reads and writes.
struct MessageReduction::State {
    Channel channel;
    std::vector<Step> steps;
    std::size_t next = 0; ///< the step that is under way; [steps] where none is
    std::vector<std::byte> mine, incoming;
    Combine combine = nullptr;
    std::array<MPI_Request, 2> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL}; ///< receive and send of the step
    std::thread::id maker = std::this_thread::get_id();

    void post() {
        const Step &step = steps[next];
        const auto count = static_cast<int>(mine.size());
        if (step.receives())
            checkMpi(MPI_Irecv(incoming.data(), count, MPI_BYTE, step.peer, channel.tag, channel.comm, &requests[0]),
                     "MPI_Irecv");
        if (step.sends())
            checkMpi(MPI_Isend(mine.data(), count, MPI_BYTE, step.peer, channel.tag, channel.comm, &requests[1]),
                     "MPI_Isend");
    }
    void complete(int received, const std::string &name) {
        const Step &step = steps[next];
        if (step.receives()) {
            DNDS_CHECK(
                received == static_cast<int>(mine.size()), StateError,
                "rank {} reduces {} bytes in the reduction of {}, and this rank {}: all ranks make the same calls",
                step.peer, received, name, mine.size());
            if (step.role == Role::Take)
                mine.swap(incoming);
            else
                combine(mine.data(), incoming.data(), mine.size());
        }
        if (++next < steps.size())
            post();
    }
    /// Whether all steps are through.
    bool progress(const std::string &name) {
        while (next < steps.size()) {
            int done = 0, received = 0;
            std::array<MPI_Status, 2> statuses;
            checkMpi(MPI_Testall(2, requests.data(), &done, statuses.data()), "MPI_Testall");
            if (done == 0)
                return false;
            if (steps[next].receives())
                checkMpi(MPI_Get_count(&statuses[0], MPI_BYTE, &received), "MPI_Get_count");
            complete(received, name);
        }
        return true;
    }
    /// Whether MPI may read or write the memory.
    bool active() const noexcept { return requests[0] != MPI_REQUEST_NULL || requests[1] != MPI_REQUEST_NULL; }
    /// Gives up what is under way; whether MPI needs none of the memory any more.
    bool settle() noexcept {
        if (next < steps.size() && requests[0] != MPI_REQUEST_NULL)
            MPI_Cancel(&requests[0]);
        next = steps.size();
        int done = 0;
        return MPI_Testall(2, requests.data(), &done, MPI_STATUSES_IGNORE) == MPI_SUCCESS && done != 0;
    }
};

MessageReduction::MessageReduction(CommunicatorContext &context, std::string name)
    : context_(context), name_(std::move(name)) {
    const CommunicatorContext::SetUp setUp(context);
    const Channel channel = context.nextChannel(); // before anything can fail: ranks stay in step
    context.comm().guarded([&] {
        setUp.requireAlone();
        state_ = std::make_shared<State>();
        state_->channel = channel;
        state_->steps = stepsOf(context.comm().rank(), context.comm().size());
        state_->next = state_->steps.size();
        context.enlist(*this);
    });
}

MessageReduction::~MessageReduction() {
    engine_.end();
    context_.delist(*this);
    if (!mpiActive() || !state_->active())
        return;
    const auto settled = [state = state_] { return state->settle(); };
    if (!mayCallMpi(state_->maker))
        context_.leave(state_, settled);
    else if (!state_->settle())
        context_.park(state_, settled);
}

bool MessageReduction::pending() const noexcept { return state_->next < state_->steps.size(); }

void MessageReduction::begin(std::span<const std::byte> mine, Combine combine) {
    DNDS_CHECK(!pending(), StateError, "the reduction of {} is pending: wait for it first", name_);
    State &state = *state_;
    state.mine.assign(mine.begin(), mine.end());
    state.incoming.resize(mine.size());
    state.combine = combine;
    state.next = 0;
    ++starts_;
    if (pending())
        state.post();
}

void MessageReduction::start(std::span<const std::byte> mine, Combine combine) {
    static_cast<void>(context_.comm()); // throws where it is gone
    context_.running("reduction of", name_, [&] {
        begin(mine, combine);
        if (pending())
            engine_.begin([this] { static_cast<void>(state_->progress(name_)); });
    });
}

bool MessageReduction::progress() {
    engine_.moveHere();
    if (const std::exception_ptr failure = engine_.takeFailure())
        std::rethrow_exception(failure);
    if (!state_->progress(name_))
        return false;
    engine_.end();
    return true;
}

bool MessageReduction::ready() {
    static_cast<void>(context_.comm());
    return context_.running("reduction of", name_, [&] { return progress(); });
}

std::string MessageReduction::awaited() const {
    return fmt::format("rank {} to take part in the reduction of {}", state_->steps[state_->next].peer, name_);
}

std::span<const std::byte> MessageReduction::wait() {
    static_cast<void>(context_.comm());
    context_.running("reduction of", name_, [&] {
        waitUntil(
            context_, [&] { return progress(); }, [&] { return awaited(); }, Looks::AtMpi);
    });
    return state_->mine;
}

void MessageReduction::reduceBytes(std::span<std::byte> values, Combine combine) {
    static_cast<void>(context_.comm());
    context_.running("reduction of", name_, [&] {
        begin(values, combine);
        waitUntil(
            context_, [&] { return state_->progress(name_); }, [&] { return awaited(); }, Looks::AtMpi);
        std::ranges::copy(state_->mine, values.begin());
    });
}

bool MessageReduction::settle() noexcept {
    engine_.end();
    return state_->settle();
}

void MessageReduction::renew() { state_->channel = context_.renewed(state_->channel); }

} // namespace DNDS
