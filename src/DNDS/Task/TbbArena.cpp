// Compiled without the thread sanitizer: it cannot see how the uninstrumented oneTBB hands a task to a worker, and
// would call each a race. What workers then run is instrumented.
#include "DNDS/Task/WorkerArena.hpp"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>

namespace DNDS::Task {

struct WorkerArena::Arena {
    // One more slot, kept for threads that are not workers: the calling thread does not enter it.
    explicit Arena(int workers) : arena(workers + 1, 1) { arena.initialize(); }

    tbb::task_arena arena;
};

WorkerArena::WorkerArena(int workers) {
    const auto allowed = tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
    workers_ = static_cast<int>(std::clamp<std::size_t>(allowed - 1, 1, static_cast<std::size_t>(workers)));
    arena_ = std::make_unique<Arena>(workers_);
}

WorkerArena::~WorkerArena() = default;

bool WorkerArena::built() noexcept { return true; }

bool WorkerArena::call(void (*serve)(void *context), void *context) noexcept {
    try {
        arena_->arena.enqueue([serve, context] { serve(context); });
        return true;
    } catch (...) { // memory is all that it can lack
        return false;
    }
}

} // namespace DNDS::Task
