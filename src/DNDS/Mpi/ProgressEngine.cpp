#include "DNDS/Mpi/ProgressEngine.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

namespace DNDS {

/// Operations in flight of one thread; an operation that ends on another thread takes the lock.
struct ProgressEngine::List {
    std::mutex mutex; ///< held while steps run, so that nothing is destroyed meanwhile
    std::vector<ProgressEngine *> items;
    std::atomic<std::size_t> count{0}; ///< number of items, to be read without the lock
};

std::shared_ptr<ProgressEngine::List> &ProgressEngine::list() noexcept {
    // Shared with the operations in it: an operation may outlive the thread that started it, and delists itself.
    static thread_local std::shared_ptr<List> made;
    return made;
}

void ProgressEngine::begin(std::function<void()> step) {
    end();
    failure_ = nullptr;
    step_ = std::move(step);
    enlist();
}

// Progress by the thread that waits: the one that started the operation may be busy or have ended.
void ProgressEngine::moveHere() {
    // Not in flight, or here already.
    if (!list_ || list_ == list())
        return;
    end();
    enlist();
}

void ProgressEngine::enlist() {
    if (!list())
        list() = std::make_shared<List>();
    const std::lock_guard lock(list()->mutex);
    list()->items.push_back(this);
    list()->count.store(list()->items.size(), std::memory_order_relaxed);
    list_ = list();
}

void ProgressEngine::end() noexcept {
    if (list_ && !inForkedChild()) { // in a child, a thread of the parent may hold the lock
        const std::lock_guard lock(list_->mutex);
        std::erase(list_->items, this);
        list_->count.store(list_->items.size(), std::memory_order_relaxed);
    }
    list_.reset();
}

// O(operations in flight on this thread). A wait for one operation drives all that its thread has started, so ranks
// may wait in different orders without a deadlock. Steps must not call it again: the mutex is not recursive.
void ProgressEngine::progressAll() noexcept {
    // One load in the usual case. The lock is held while steps run, so that an operation cannot be destroyed on
    // another thread meanwhile.
    if (!busy())
        return;
    const std::lock_guard lock(list()->mutex);
    for (ProgressEngine *engine : list()->items)
        // The wait in progress is another operation's; the first exception is kept for this one's own wait.
        attempt(engine->failure_, engine->step_);
}

bool ProgressEngine::busy() noexcept { return list() != nullptr && list()->count.load(std::memory_order_relaxed) > 0; }

} // namespace DNDS
