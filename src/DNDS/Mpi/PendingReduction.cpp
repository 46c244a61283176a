#include "DNDS/Mpi/PendingReduction.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/Check.hpp"

#include <cstring>
#include <limits>
#include <new>
#include <thread>
#include <utility>

namespace DNDS {

namespace {

static_assert(std::is_trivially_copyable_v<ReductionValue>);

void combine(void *theirs, void *mine, int *count, MPI_Datatype * /*type*/) {
    for (int k = 0; k < *count; ++k) { // MPI's buffers may be aligned less
        ReductionValue a, b;
        const std::size_t at = static_cast<std::size_t>(k) * sizeof(ReductionValue);
        std::memcpy(&a, static_cast<std::byte *>(mine) + at, sizeof a);
        std::memcpy(&b, static_cast<std::byte *>(theirs) + at, sizeof b);
        a.add(b);
        std::memcpy(static_cast<std::byte *>(mine) + at, &a, sizeof a);
    }
}

} // namespace

ReductionValue ReductionValue::none(ReduceOp op) {
    ReductionValue value;
    value.op = op;
    if (op != ReduceOp::Sum)
        value.extreme =
            op == ReduceOp::Min ? std::numeric_limits<real>::infinity() : -std::numeric_limits<real>::infinity();
    return value;
}

void ReductionValue::add(const ReductionValue &other) noexcept {
    failed = failed || other.failed;
    if (op == ReduceOp::Sum)
        sum += other.sum;
    else
        add(other.extreme);
}

struct PendingReduction::State {
    std::vector<ReductionValue> mine, result;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Op op = MPI_OP_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    bool started = false;
    bool parked = false; ///< the context looks after it when the communicator goes

    State() {
        checkMpi(MPI_Type_contiguous(static_cast<int>(sizeof(ReductionValue)), MPI_BYTE, &type), "MPI_Type_contiguous");
        checkMpi(MPI_Type_commit(&type), "MPI_Type_commit");
        checkMpi(MPI_Op_create(combine, 1, &op), "MPI_Op_create");
    }
    State(const State &) = delete;
    State &operator=(const State &) = delete;
    ~State() {
        if (!mpiActive())
            return;
        MPI_Op_free(&op);
        MPI_Type_free(&type);
    }
    bool complete() noexcept {
        int flag = 1;
        if (request != MPI_REQUEST_NULL && MPI_Test(&request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return true;
        return flag != 0;
    }
};

PendingReduction::PendingReduction(std::shared_ptr<CommunicatorContext> context)
    : context_(std::move(context)), state_(std::make_shared<State>()) {}

/// MPI reads and writes the values, and uses the communicator, until the reduction is complete.
void PendingReduction::park() {
    if (!std::exchange(state_->parked, true))
        context_->park(state_, [state = state_] {
            state->parked = !state->complete();
            return !state->parked;
        });
}

PendingReduction::~PendingReduction() {
    if (!mpiActive() || state_->complete())
        return;
    try {
        park();
    } catch (...) { // no memory: rather than to free what MPI uses
        static auto *const kept = new (std::nothrow) std::shared_ptr<State>();
        if (kept != nullptr)
            *kept = state_;
    }
}

bool PendingReduction::pending() const noexcept { return state_->request != MPI_REQUEST_NULL; }

void PendingReduction::start(std::span<const ReductionValue> mine) {
    DNDS_CHECK(!pending(), StateError, "a reduction is pending: wait for it first");
    state_->mine.assign(mine.begin(), mine.end());
    state_->result.resize(mine.size());
    checkMpi(MPI_Iallreduce(state_->mine.data(), state_->result.data(), static_cast<int>(mine.size()), state_->type,
                            state_->op, context_->comm().handle(), &state_->request),
             "MPI_Iallreduce");
    state_->started = true;
    try {
        park();
    } catch (const std::bad_alloc &) { // it is parked in the destructor, or next time
        state_->parked = false;
    }
}

bool PendingReduction::ready() {
    static_cast<void>(context_->comm()); // throws where it is gone
    return state_->complete();
}

std::span<const ReductionValue> PendingReduction::wait() {
    DNDS_CHECK(state_->started, StateError, "the result of a reduction is asked for that was never started");
    while (!ready()) {
        context_->progressParked();
        std::this_thread::yield();
    }
    return state_->result;
}

} // namespace DNDS
