#include "DNDS/Task/ThreadTeam.hpp"

#include <chrono>
#include <thread>
#include <utility>

#include <unistd.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace DNDS::Task {

namespace {

constexpr int spins = 100;      // some microseconds
constexpr int stays = 200;      // turns without work after which a worker sleeps: some 50 microseconds
constexpr int spinTurns = 2000; // the calling thread sleeps between later turns

/// Spins while work is likely to appear at once, then lets other ranks have the core: ranks may outnumber cores.
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

/// pthread_create rather than std::thread: it reports exhaustion without an exception, and the team works with fewer
/// threads.
ThreadTeam::ThreadTeam(int threads) : threads_(threads), process_(::getpid()) {
    const auto start = [](void *team) -> void * {
        static_cast<ThreadTeam *>(team)->serve();
        return nullptr;
    };
    workers_.reserve(toSize(threads - 1));
    while (workers_.size() + 1 < toSize(threads)) {
        pthread_t worker{};
        if (pthread_create(&worker, nullptr, start, this) != 0)
            break; // the calling thread does the rest
        workers_.push_back(worker);
    }
}

ThreadTeam::~ThreadTeam() {
    abandon();
    if (forked()) // the parent's workers do not run here: joining would hang
        return;
    closed_.store(true, std::memory_order_release);
    wake();
    for (const pthread_t worker : workers_)
        pthread_join(worker, nullptr);
}

bool ThreadTeam::forked() const noexcept { return ::getpid() != process_; }

/// The increment is a store between publishing and the workers' look at `published_`: a worker reads `calls_`, then
/// `published_`, then sleeps only if `calls_` is unchanged, so it either sees the work or is woken.
/// This is the protocol of an event count: read the counter, look again for work, wait for the counter to change.
void ThreadTeam::wake() noexcept {
    if (threads_ == 1)
        return;
    calls_.fetch_add(1, std::memory_order_seq_cst);
    calls_.notify_all();
}

// Workers copy the floating-point environment, so that chunks round as the calling thread does.
void ThreadTeam::begin(index loops) {
    if (slots_.size() < toSize(loops))
        slots_.resize(toSize(loops));
    used_ = 0;
    cursor_.run = ++run_;
    cursor_.slot = 0;
    failedAt_.store(never, std::memory_order_relaxed);
    failure_ = {};
    running_ = true;
    std::fegetenv(&environment_);
    wake();
}

/// Release order: a thread that reads the new `published_` (acquire in `claim`) sees slot, `left` and everything that
/// the calling thread wrote before.
void ThreadTeam::publish(Loop &loop) noexcept {
    if (loop.chunks == 0)
        return;
    loop.left.store(loop.chunks, std::memory_order_relaxed);
    const index end = published_.load(std::memory_order_relaxed) + loop.chunks;
    slots_[used_++] = {&loop, end};
    published_.store(end, std::memory_order_release);
    wake();
}

/// A thread without work reads only `published_`. The cache line of `claimed_` moves between cores once a claim; a load
/// before the swap would move it twice.
/// A compare and swap rather than fetch_add, which would also claim positions that are not published yet. Relaxed order
/// suffices: the acquire load of `published_` makes slot and loop visible. Lock-free.
bool ThreadTeam::claim(Cursor &at) noexcept {
    // A failed exchange loads the present `claimed_` into `at.next`, which is then the next candidate.
    while (at.next < published_.load(std::memory_order_acquire))
        if (claimed_.compare_exchange_weak(at.next, at.next + 1, std::memory_order_relaxed)) {
            ++at.next;
            return true;
        }
    return false;
}

/// The slots are sorted by position, and a thread's positions ascend within a run, so the search for the slot
/// continues where the last one ended: O(1) amortised.
/// Environment and slots are read after a claim only, which orders them after the calling thread's writes.
bool ThreadTeam::runNext(Cursor &at) noexcept {
    if (!claim(at))
        return false;
    const index position = at.next - 1;
    if (at.run != run_) { // a worker's first chunk in this run
        at.run = run_;
        at.slot = 0;
        std::fesetenv(&environment_);
    }
    while (slots_[at.slot].second <= position)
        ++at.slot;
    const auto [loop, end] = slots_[at.slot];
    if (at.loop != loop)
        settle(at);
    at.loop = loop;
    // Chunks before a failure are never skipped: the earliest failure is found whatever runs first.
    if (position <= failedAt_.load(std::memory_order_relaxed)) {
        const index chunk = loop->chunks - (end - position);
        try {
            loop->run(loop->context, chunk);
        } catch (...) {
            fail(position, {loop, chunk, std::current_exception()});
        }
    }
    ++at.finished;
    if (position + 1 == end)
        settle(at);
    return true;
}

/// Release: the thread in `done` (acquire) sees all writes of the chunks.
void ThreadTeam::settle(Cursor &at) noexcept {
    if (at.finished > 0)
        at.loop->left.fetch_sub(std::exchange(at.finished, 0), std::memory_order_release); // the last access to it
}

/// The mutex orders exceptions; `abandon` stores -1 without it, hence the exchange, which must not overwrite that.
/// The least position wins whatever the timing: a chunk before `failedAt_` still runs and may replace the failure.
void ThreadTeam::fail(index position, Failure newest) noexcept {
    const std::scoped_lock lock(failing_);
    index first = failedAt_.load(std::memory_order_relaxed);
    while (position < first)
        if (failedAt_.compare_exchange_weak(first, position, std::memory_order_relaxed)) {
            std::swap(failure_, newest);
            return;
        }
}

/// Chunks are settled before the thread becomes idle, so a loop is never left waiting for a sleeping worker.
/// Three stages of waiting: spin, yield the core, sleep on `calls_`. Spinning starts work soonest but takes cores from
/// other ranks of the node; a wake-up from sleep takes microseconds.
void ThreadTeam::serve() noexcept {
    Cursor at;
    for (int turns = 0; !closed_.load(std::memory_order_acquire);) {
        if (runNext(at)) {
            turns = 0;
            continue;
        }
        settle(at);
        if (turns < stays) {
            spinOrYield(turns++);
            continue;
        }
        const int calls = calls_.load(std::memory_order_seq_cst); // later calls end the wait
        if (at.next >= published_.load(std::memory_order_acquire) && !closed_.load(std::memory_order_acquire))
            calls_.wait(calls);
        turns = 0;
    }
}

// One chunk at a time, so that the caller can progress exchanges in between.
bool ThreadTeam::help() noexcept {
    const bool ran = runNext(cursor_);
    settle(cursor_);
    return ran;
}

/// Every position of the run is claimed before `end` waits, so no worker can start on the run later; it waits for
/// those in progress only.
/// Why no deadlock: the calling thread first claims everything itself, so it never waits for a worker to wake up.
void ThreadTeam::end() noexcept {
    if (!std::exchange(running_, false))
        return;
    while (runNext(cursor_)) {
    }
    settle(cursor_);
    for (std::size_t slot = 0; slot < used_; ++slot) // workers run the rest; in a forked child they never finish
        for (int turns = 0; !done(*slots_[slot].first); idle(turns))
            if (turns == spins && forked())
                return;
}

// Later chunks are claimed but not run.
void ThreadTeam::abandon() noexcept {
    if (!running_)
        return;
    failedAt_.store(-1, std::memory_order_relaxed);
    end();
}

// Long waits must not keep a core busy that other ranks may need.
void ThreadTeam::idle(int &turns) noexcept {
    if (turns < spinTurns)
        spinOrYield(turns++);
    else
        std::this_thread::sleep_for(std::chrono::microseconds(50));
}

} // namespace DNDS::Task
