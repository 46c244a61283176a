/// @file ProgressEngine.hpp
/// @brief Progress of all operations that a thread has in flight, while it waits for one.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <utility>

namespace DNDS {

/// An operation in flight on this thread that peers may need, such as an exchange whose rows it has to write. Ranks may
/// wait for things in different orders, so a waiting thread calls `progressAll` for everything that it has started.
/// An operation started on one thread may end on another. Local.
class ProgressEngine {
  public:
    ProgressEngine() = default;
    ProgressEngine(const ProgressEngine &) = delete;
    ProgressEngine &operator=(const ProgressEngine &) = delete;
    ~ProgressEngine() { end(); }

    /// From now on `progressAll` of this thread calls `step`, which neither waits nor calls `progressAll`.
    void begin(std::function<void()> step);
    /// From now on `progressAll` of this thread does so, instead of the thread that called `begin`.
    void moveHere();
    void end() noexcept;
    /// The exception of `step` during another wait, once: the operation's own wait has to throw it.
    std::exception_ptr takeFailure() noexcept { return std::exchange(failure_, nullptr); }

    /// Calls the steps of all operations in flight on this thread. Does not wait.
    static void progressAll() noexcept;
    /// Whether this thread has operations in flight.
    static bool busy() noexcept;

  private:
    struct List;
    /// The list of this thread; null until its first operation.
    static std::shared_ptr<List> &list() noexcept;

    /// Adds this to the list of the calling thread.
    void enlist();

    /// Called under the list's lock, so that `end` on another thread returns only when it is not running.
    std::function<void()> step_;
    std::shared_ptr<List> list_; ///< list of the starting thread, which may end before
    /// First exception of `step_`, until `takeFailure`.
    std::exception_ptr failure_;
};

} // namespace DNDS
