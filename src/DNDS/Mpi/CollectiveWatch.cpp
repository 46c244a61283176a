#include "DNDS/Mpi/CollectiveWatch.hpp"

#include "DNDS/Base/Warning.hpp"
#include "DNDS/Mpi/AtFinalize.hpp"
#include "DNDS/Mpi/Check.hpp"
#include "DNDS/Mpi/NodeArena.hpp"
#include "DNDS/Mpi/Whereabouts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace DNDS::Detail {

namespace {

/// The thread, and what it looks at.
class CollectiveWatch {
  public:
    void setLimit(double seconds) {
        if (inForkedChild()) // which has no such thread
            return;
        const std::lock_guard lock(mutex_);
        limit_ = seconds;
        if (seconds <= 0 || thread_.joinable())
            return;
        end_ = false;
        atFinalize([](void *watch) noexcept { static_cast<CollectiveWatch *>(watch)->stop(); }, this);
        // Signals are for the program's own threads.
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        try {
            thread_ = std::thread([this] { run(); });
        } catch (const std::system_error &) {
            warn("DNDS_WAIT_TIMEOUT: there is no thread to be had that watches collective calls");
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

    void seeThrough(const std::shared_ptr<NodeArena> &arena) {
        const std::lock_guard lock(mutex_);
        std::erase_if(arenas_, [](const auto &other) { return other.expired(); });
        arenas_.push_back(arena);
    }

  private:
    void stop() noexcept {
        if (inForkedChild())
            return;
        {
            const std::lock_guard lock(mutex_);
            end_ = true;
        }
        changed_.notify_all();
        if (thread_.joinable())
            thread_.join();
    }

    void run() {
        std::unique_lock lock(mutex_);
        double told = 0; // the call that was told of began then
        while (!end_) {
            const double limit = limit_;
            const double pause = std::clamp(limit / 8, 0.01, 1.0);
            changed_.wait_for(lock, std::chrono::duration<double>(pause));
            const double since = oldestCollective();
            if (end_ || limit <= 0 || since <= told || machineSeconds() - since < limit)
                continue;
            const std::shared_ptr<NodeArena> arena = widest();
            lock.unlock();
            if (tell(arena.get(), since))
                told = since;
            lock.lock();
        }
    }

    /// The arena that most ranks share; null where this rank is alone.
    std::shared_ptr<NodeArena> widest() const {
        std::shared_ptr<NodeArena> found;
        for (const auto &candidate : arenas_)
            if (auto arena = candidate.lock(); arena && (!found || arena->nodeSize() > found->nodeSize()))
                found = std::move(arena);
        return found;
    }

    /// Whether that was told, or another rank does it.
    static bool tell(NodeArena *arena, double since) noexcept {
        try {
            const std::string mine = ownWhereabouts();
            for (int lower = 0; arena != nullptr && lower < arena->nodeRank(); ++lower)
                if (arena->whereabouts(lower).text == mine)
                    return true;
            const std::string all = rollCall(arena);
            if (oldestCollective() != since) // it has just ended
                return false;
            warn(fmt::format("rank {} has waited {:.2g} s for ranks that have not come (DNDS_WAIT_TIMEOUT), in {}{}",
                             errorRank(), machineSeconds() - since, mine, all));
        } catch (const std::exception &) { // no memory: nobody hears of it
        }
        return true;
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    double limit_ = 0;
    bool end_ = false;
    std::vector<std::weak_ptr<NodeArena>> arenas_;
    std::thread thread_;
};

/// Never destroyed: the process may end without the end of MPI, while the thread runs.
CollectiveWatch &collectiveWatch() {
    static auto *watch = new CollectiveWatch;
    return *watch;
}

} // namespace

void watchCollectives(double seconds) { collectiveWatch().setLimit(seconds); }

void seeThrough(const std::shared_ptr<NodeArena> &arena) { collectiveWatch().seeThrough(arena); }

} // namespace DNDS::Detail
