#include "DNDS/Mpi/CollectiveWatch.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/AtFinalize.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/NodeArena.hpp"
#include "DNDS/Mpi/RollCall.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace DNDS::Detail {

namespace {

/// The watching thread and its data.
/// Collective calls publish their start (`ActivityScope`), and this thread polls it: no call waits for the watch.
/// Lock order: `mutex_`, then the lock of the activities; no code takes the two in the other order.
class CollectiveWatch {
  public:
    void setLimit(double seconds) {
        if (inForkedChild()) // has no such thread
            return;
        bool start = false;
        {
            const std::lock_guard lock(mutex_);
            limit_ = seconds;
            start = seconds > 0 && !std::exchange(started_, started_ || seconds > 0);
        }
        changed_.notify_all();
        if (!start)
            return;
        atFinalize([](void *watch) noexcept { static_cast<CollectiveWatch *>(watch)->stop(); }, this);
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before); // signals are for the program's own threads
        const std::exception_ptr failure = attempt([&] { thread_ = std::thread([this] { run(); }); });
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        if (failure)
            warn("DNDS_WAIT_TIMEOUT: there is no thread that could watch collective calls: {}",
                 describeFailure(failure).message);
    }

    void addWatchedArena(const std::shared_ptr<NodeArena> &arena) {
        const std::lock_guard lock(mutex_);
        std::erase_if(arenas_, [](const WatchedArena &other) { return other.arena.expired(); });
        arenas_.push_back({arena, arena->nodeSize()});
    }

  private:
    /// The arenas of communicators in use, watched but not kept alive.
    struct WatchedArena {
        std::weak_ptr<NodeArena> arena;
        int nodeSize;
    };

    /// At the start of MPI_Finalize, on the thread that calls it.
    void stop() noexcept {
        if (inForkedChild())
            return;
        std::unique_lock lock(mutex_);
        end_ = true;
        changed_.notify_all();
        if (!thread_.joinable())
            return;
        // Not for ever: a warning sink may end MPI, or wait for a lock of this thread's, Python's for example.
        const bool here = thread_.get_id() == std::this_thread::get_id();
        const bool ended = !here && changed_.wait_for(lock, std::chrono::seconds(5), [&] { return ended_; });
        lock.unlock();
        if (ended)
            thread_.join();
        else
            thread_.detach();
    }

    /// Sleeps an eighth of the limit between looks, 10 ms to 1 s. The lock is free while it warns: the program's
    /// sink may run any code, even change the limit.
    void run() {
        std::unique_lock lock(mutex_);
        while (!end_) {
            if (limit_ > 0)
                changed_.wait_for(lock, std::chrono::duration<double>(std::clamp(limit_ / 8, 0.01, 1.0)));
            else
                changed_.wait(lock);
            const double limit = limit_;
            const double since = oldestUnreported();
            if (end_ || limit <= 0 || since <= 0 || monotonicSeconds() - since < limit)
                continue;
            const std::weak_ptr<NodeArena> arena = widest();
            lock.unlock();
            tell(arena.lock().get(), since, limit);
            lock.lock();
        }
        ended_ = true;
        changed_.notify_all();
    }

    /// The arena shared by most ranks; null if this rank is alone.
    std::weak_ptr<NodeArena> widest() const noexcept {
        const WatchedArena *found = nullptr;
        for (const WatchedArena &seen : arenas_)
            if (!seen.arena.expired() && (found == nullptr || seen.nodeSize > found->nodeSize))
                found = &seen;
        return found != nullptr ? found->arena : std::weak_ptr<NodeArena>();
    }

    /// Of the ranks of a node in the same call, only the lowest warns: a rank is silent if a lower one has been in
    /// the same activity for at least half of the limit. If that one has not reached the limit yet, this rank looks
    /// again.
    /// O(ranks of the node) reads of shared memory. Ranks compare published texts, so they choose the writer without
    /// a message.
    static void tell(NodeArena *arena, double since, double limit) noexcept {
        try {
            const std::string mine = ownActivity();
            for (int lower = 0; arena != nullptr && lower < arena->nodeRank(); ++lower) {
                const ActivityRecord::Activity latest = arena->activity(lower);
                const double lasted = latest.since > 0 ? monotonicSeconds() - latest.since : 0;
                if (latest.text != mine || lasted < limit / 2) // just passing by
                    continue;
                if (lasted >= limit)
                    markReported(since); // by that rank; else it reports soon, or this one at its next look
                return;
            }
            const std::string all = rollCall(arena);
            if (markReported(since))
                warn(fmt::format("rank {} has been for {} (DNDS_WAIT_TIMEOUT) in {}{}", errorRank(),
                                 secondsText(monotonicSeconds() - since), mine, all));
        } catch (const std::exception &) { // no memory: no warning
        }
    }

    /// Guards all members.
    std::mutex mutex_;
    /// Tells the thread of a new limit or of the end, and `stop` that the thread has ended.
    std::condition_variable changed_;
    /// Seconds, from DNDS_WAIT_TIMEOUT; 0: no watching.
    double limit_ = 0;
    /// The thread was started; there is one a process, even if the limit changes.
    bool started_ = false;
    /// The thread is to end.
    bool end_ = false;
    /// The thread's loop has ended: joining it takes no time.
    bool ended_ = false;
    /// For roll calls; expired ones are removed when the next is added.
    std::vector<WatchedArena> arenas_;
    std::thread thread_;
};

/// Never destroyed: the process may exit without finalizing MPI, while the thread runs.
CollectiveWatch &collectiveWatch() {
    static auto *watch = new CollectiveWatch;
    return *watch;
}

} // namespace

void watchCollectives(double seconds) { collectiveWatch().setLimit(seconds); }

void addWatchedArena(const std::shared_ptr<NodeArena> &arena) { collectiveWatch().addWatchedArena(arena); }

} // namespace DNDS::Detail
