#include "DNDS/Task/Crew.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Task/WorkerArena.hpp"

#include <pthread.h>

#include <algorithm>
#include <cfenv>
#include <chrono>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace DNDS::Task {

namespace {

constexpr int spins = 100; // some microseconds
constexpr int stays = 200; // a worker leaves after so many turns without work: some 50 microseconds if nobody else runs
constexpr int patience = 2000; // the calling thread sleeps between later turns

// How many forks lie between the first process and this one.
std::atomic<int> forks = 0;
int countForks() noexcept {
    static const int watching = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
    static_cast<void>(watching);
    return forks.load(std::memory_order_relaxed);
}

constexpr index never = std::numeric_limits<index>::max();

void spinOrYield(int turn) noexcept {
    if (turn >= spins)
        std::this_thread::yield();
    else {
#if defined(__SSE2__)
        _mm_pause();
#endif
    }
}

} // namespace

// All chunks that are ever published have one numbering, their positions. A thread claims the next position by a
// compare and swap; since positions never return, a worker that slept since an earlier run claims a chunk of this one
// or none. A chunk that is claimed keeps its run from ending, and so the slots of the run in place.
struct Crew::State {
    struct Slot {
        Work *work;
        index end; // the position after its last chunk
    };
    // How far a thread has come.
    struct Place {
        std::uint64_t run = 0;
        std::size_t slot = 0;
        index next = 0;       // at most `claimed`
        Work *work = nullptr; // the last one that it ran chunks of
        index finished = 0;   // chunks of it that are not subtracted from `left`
    };

    alignas(64) std::atomic<index> claimed = 0;      // positions
    alignas(64) std::atomic<index> published = 0;    // positions
    alignas(64) std::atomic<index> failedAt = never; // the least position that threw; -1 after `abandon`

    // Written by the calling thread before it publishes, and read by who has claimed a chunk of the run.
    std::uint64_t run = 0;
    std::vector<Slot> slots;
    int workers = 0; // that may be present
    bool alone;      // nobody else claims
    std::fenv_t environment{};

    // Of the calling thread.
    std::size_t room = 0; // slots of this run
    std::size_t used = 0;
    Place place;
    bool running = false;
    const int process = countForks();
    std::optional<WorkerArena> arena;

    alignas(64) std::atomic<int> present = 0; // workers that were called and have not left
    std::atomic<int> references = 1;          // the crew's, and one of each call
    std::atomic<bool> closed = false;

    std::mutex failing;
    Failure failure;

    static std::atomic<int> living;

    explicit State(int threads) : alone(threads == 1) {
        if (!alone) {
            arena.emplace(threads - 1);
            workers = arena->workers();
        }
        living.fetch_add(1, std::memory_order_relaxed);
    }
    ~State() { living.fetch_sub(1, std::memory_order_relaxed); }
    State(const State &) = delete;
    State &operator=(const State &) = delete;

    bool forked() const noexcept { return process != countForks(); }
    bool workIsLeft(std::memory_order order) const noexcept {
        return claimed.load(std::memory_order_relaxed) < published.load(order);
    }
    bool claim(Place &at, index &position) noexcept;
    bool step(Place &at) noexcept;
    void execute(Place &at, index position, const Slot &slot) noexcept;
    void settle(Place &at) noexcept;
    void fail(index position, Failure newest) noexcept;
    void call(index wanted) noexcept;
    void serve() noexcept;
    bool leave() noexcept;
    void release() noexcept;
    void finish() noexcept;
};

std::atomic<int> Crew::State::living = 0;

bool Crew::State::claim(Place &at, index &position) noexcept {
    if (alone) {
        position = claimed.load(std::memory_order_relaxed);
        if (position == published.load(std::memory_order_relaxed))
            return false;
        claimed.store(position + 1, std::memory_order_relaxed);
        return true;
    }
    // Who has nothing to do reads `published` only; `claimed` moves from thread to thread once a claim, not twice as if
    // it were loaded before.
    position = at.next;
    while (position < published.load(std::memory_order_acquire))
        if (claimed.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
            at.next = position + 1;
            return true;
        }
    at.next = position;
    return false;
}

/// Claims a chunk and runs it. It counts as done after `settle`, or once the thread has turned to other work.
bool Crew::State::step(Place &at) noexcept {
    index position = 0;
    if (!claim(at, position))
        return false;
    if (at.run != run) { // a worker's first chunk in this run
        at.run = run;
        at.slot = 0;
        std::fesetenv(&environment);
    }
    while (slots[at.slot].end <= position)
        at.slot++;
    execute(at, position, slots[at.slot]);
    return true;
}

void Crew::State::execute(Place &at, index position, const Slot &slot) noexcept {
    Work &work = *slot.work;
    if (at.work != &work)
        settle(at);
    at.work = &work;
    // What comes before a failure is never skipped: an earlier failure is found whatever runs first.
    if (position <= failedAt.load(std::memory_order_relaxed)) {
        const index chunk = work.chunks - (slot.end - position);
        try {
            work.run(work.context, chunk);
        } catch (...) {
            fail(position, {&work, chunk, std::current_exception()});
        }
    }
    at.finished++;
    if (position + 1 == slot.end)
        settle(at);
}

/// Counts finished chunks as done: once for several chunks of a work, so that threads do not wait for each other's
/// writes.
void Crew::State::settle(Place &at) noexcept {
    if (at.finished == 0)
        return;
    std::atomic<index> &left = at.work->left;
    if (alone)
        left.store(left.load(std::memory_order_relaxed) - at.finished, std::memory_order_relaxed);
    else
        left.fetch_sub(at.finished, std::memory_order_release); // the last access to the work
    at.finished = 0;
}

void Crew::State::fail(index position, Failure newest) noexcept {
    const std::scoped_lock lock(failing);
    index first = failedAt.load(std::memory_order_relaxed);
    while (position < first)
        if (failedAt.compare_exchange_weak(first, position, std::memory_order_relaxed)) {
            std::swap(failure, newest);
            return;
        }
}

/// Of the calling thread: calls `wanted` workers, or as many as are not present.
void Crew::State::call(index wanted) noexcept {
    // After `published` in one order of all threads, as in `leave`: either the worker that leaves sees what was
    // published, or it is seen to have left.
    int there = present.load(std::memory_order_seq_cst);
    while (wanted > 0 && there < workers) {
        if (!present.compare_exchange_weak(there, there + 1, std::memory_order_seq_cst))
            continue;
        references.fetch_add(1, std::memory_order_acq_rel);
        if (!arena->call([](void *state) { static_cast<State *>(state)->serve(); }, this)) {
            present.fetch_sub(1, std::memory_order_relaxed);
            references.fetch_sub(1, std::memory_order_relaxed);
            return;
        }
        wanted--;
        there++;
    }
}

/// What a worker does from when it comes until it leaves.
void Crew::State::serve() noexcept {
    // oneTBB orders this after the call, which the thread sanitizer does not see.
    static_cast<void>(references.load(std::memory_order_acquire));
    std::fenv_t own;
    std::fegetenv(&own);
    Place at;
    do {
        for (int turns = 0; turns < stays && !closed.load(std::memory_order_acquire); turns++)
            if (step(at))
                turns = 0;
            else {
                settle(at);
                spinOrYield(turns);
            }
    } while (!leave());
    std::fesetenv(&own);
    release();
}

/// False if this worker must stay since something was published, and nobody was called in its place.
bool Crew::State::leave() noexcept {
    present.fetch_sub(1, std::memory_order_seq_cst);
    if (closed.load(std::memory_order_acquire) || !workIsLeft(std::memory_order_seq_cst))
        return true;
    int there = present.load(std::memory_order_relaxed);
    do {
        if (there >= workers)
            return true;
    } while (!present.compare_exchange_weak(there, there + 1, std::memory_order_seq_cst));
    return false;
}

void Crew::State::release() noexcept {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1)
        delete this;
}

void Crew::State::finish() noexcept {
    while (step(place)) {
    }
    settle(place);
    // Others have claimed the rest, in a forked child for ever.
    if (!alone && !forked())
        for (std::size_t slot = 0; slot < used; slot++)
            for (int turns = 0; !done(*slots[slot].work);)
                idle(turns);
    running = false;
}

Crew::Crew(int threads) : threads_(threads), state_(nullptr) {
    DNDS_CHECK(threads >= 1, ArgumentError, "{} threads are given: give at least 1", threads);
    state_ = new State(threads);
}

Crew::~Crew() {
    if (!state_)
        return;
    abandon();
    if (state_->arena && state_->forked())
        return; // oneTBB's locks may be held by threads that are missing here: left to the end of the process
    state_->closed.store(true, std::memory_order_seq_cst);
    state_->arena.reset(); // those that have been called come nevertheless, and leave at once
    state_->release();
}

Crew::Crew(Crew &&other) noexcept : threads_(other.threads_), state_(std::exchange(other.state_, nullptr)) {}

Crew &Crew::operator=(Crew &&other) noexcept {
    std::swap(threads_, other.threads_);
    std::swap(state_, other.state_);
    return *this;
}

bool Crew::hasThreads() noexcept { return WorkerArena::built(); }

int Crew::living() noexcept { return State::living.load(std::memory_order_relaxed); }

void Crew::begin(index works) {
    State &state = *state_;
    DNDS_CHECK(!state.running, StateError,
               "a crew's run begins before its last one has ended: call end() or abandon()");
    DNDS_CHECK(works >= 0, ArgumentError, "a run of {} works: give at least 0", works);
    if (!state.alone && state.forked()) {
        state.alone = true;
        state.workers = 0;
    }
    if (state.slots.size() < toSize(works))
        state.slots.resize(toSize(works));
    state.room = toSize(works);
    state.used = 0;
    state.run++;
    state.place.run = state.run;
    state.place.slot = 0;
    state.failedAt.store(never, std::memory_order_relaxed);
    state.failure = {};
    state.running = true;
    if (state.alone)
        return;
    std::fegetenv(&state.environment);
    state.call(state.workers);
}

void Crew::publish(Work &work) {
    State &state = *state_;
    DNDS_CHECK(state.running, StateError, "work is published outside a run: call begin() before");
    DNDS_CHECK(state.used < state.room, StateError, "more than {} works are published: tell begin() how many a run has",
               state.room);
    DNDS_CHECK(work.chunks >= 0, ArgumentError, "work of {} chunks: give at least 0", work.chunks);
    if (work.chunks == 0)
        return;
    work.left.store(work.chunks, std::memory_order_relaxed);
    const index end = state.published.load(std::memory_order_relaxed) + work.chunks;
    state.slots[state.used++] = {&work, end};
    if (state.alone) {
        state.published.store(end, std::memory_order_relaxed);
        return;
    }
    state.published.store(end, std::memory_order_seq_cst);
    state.call(end - state.claimed.load(std::memory_order_relaxed));
}

bool Crew::help() noexcept {
    const bool ran = state_->step(state_->place);
    state_->settle(state_->place);
    return ran;
}

void Crew::end() noexcept {
    if (state_->running)
        state_->finish();
}

void Crew::abandon() noexcept {
    if (!state_->running)
        return;
    state_->failedAt.store(-1, std::memory_order_relaxed);
    state_->finish();
}

bool Crew::failed() const noexcept { return state_->failedAt.load(std::memory_order_relaxed) != never; }

const Crew::Failure &Crew::failure() const noexcept { return state_->failure; }

void Crew::idle(int &turns) noexcept {
    if (turns < patience)
        spinOrYield(turns++);
    else
        std::this_thread::sleep_for(std::chrono::microseconds(50));
}

} // namespace DNDS::Task
