/// @file WorkerArena.hpp
/// @brief What a crew needs of oneTBB: threads that come when they are called, later or never.
#pragma once

#include <memory>

namespace DNDS::Task {

/// An arena of oneTBB with slots for workers only. Defined by TbbArena.cpp or, without oneTBB, by AbsentArena.cpp.
class WorkerArena {
  public:
    /// Throws NotBuiltError in builds without oneTBB.
    explicit WorkerArena(int workers);
    ~WorkerArena();
    WorkerArena(const WorkerArena &) = delete;
    WorkerArena &operator=(const WorkerArena &) = delete;

    static bool built() noexcept;
    /// How many can come: no more than processors, or than oneTBB's `global_control` allows; at least one.
    int workers() const noexcept { return workers_; }
    /// A worker will call `serve(context)`, perhaps after this arena is gone. False if memory does not suffice.
    bool call(void (*serve)(void *context), void *context) noexcept;

  private:
    struct Arena;

    int workers_;
    std::unique_ptr<Arena> arena_;
};

} // namespace DNDS::Task
