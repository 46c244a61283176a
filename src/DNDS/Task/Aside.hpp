/// @file Aside.hpp
/// @brief Work that runs in a thread of its own, beside the steps that follow it.
#pragma once

#include <functional>
#include <future>

namespace DNDS::Task {

/// One piece of work at a time, in a thread of its own. Not thread-safe.
class Aside {
  public:
    Aside() = default;
    Aside(const Aside &) = delete;
    Aside &operator=(const Aside &) = delete;
    /// Waits for the work; what it throws is lost.
    ~Aside();

    /// Starts work. Waits for the work before, if it has not ended, and throws what that has thrown.
    void begin(std::function<void()> work);
    /// Waits; throws what the work has thrown, once.
    void wait();

  private:
    std::future<void> pending_;
};

} // namespace DNDS::Task
