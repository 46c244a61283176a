// Replaces TbbArena.cpp in builds without oneTBB.
#include "DNDS/Base/Error.hpp"
#include "DNDS/Task/WorkerArena.hpp"

namespace DNDS::Task {

struct WorkerArena::Arena {};

WorkerArena::WorkerArena(int workers) : workers_(workers) {
    throw NotBuiltError(
        fmt::format("{} threads need oneTBB, but DNDS was built without it: install it (libtbb-dev) and "
                    "configure DNDS again, or use 1 thread",
                    workers + 1));
}
WorkerArena::~WorkerArena() = default;
bool WorkerArena::built() noexcept { return false; }
bool WorkerArena::call(void (*)(void *), void *) noexcept { return false; }

} // namespace DNDS::Task
