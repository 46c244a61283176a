/// @file ProgressEngine.hpp
/// @brief While a thread waits for one thing, all that it has under way goes on.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace DNDS {

/// What this thread has under way and its peers may need, such as an exchange whose rows it has to write. Ranks may
/// wait for things in different orders, so whoever waits calls `progressAll` for everything that its thread has begun.
/// What one thread began may end on another. Local.
class ProgressEngine {
  public:
    ProgressEngine() = default;
    ProgressEngine(const ProgressEngine &) = delete;
    ProgressEngine &operator=(const ProgressEngine &) = delete;
    ~ProgressEngine() { end(); }

    /// From now on `progressAll` of this thread calls `step`, which neither waits nor calls `progressAll`.
    void begin(std::function<void()> step);
    /// From now on `progressAll` of this thread does so, in place of the one that `begin` was called on.
    void moveHere();
    void end() noexcept;
    /// What `step` threw while something else was waited for, once: the wait for its own has to throw it.
    std::exception_ptr takeFailure() noexcept { return std::exchange(failure_, nullptr); }

    /// Calls the steps of all that this thread has under way. Does not wait.
    static void progressAll() noexcept;
    /// Whether there is anything.
    static bool busy() noexcept;

  private:
    struct List {
        std::mutex mutex; ///< held while steps run, so that nothing is destroyed meanwhile
        std::vector<ProgressEngine *> items;
        std::atomic<std::size_t> count{0}; ///< of items, for those who only want to know whether there are any
    };
    /// Of this thread; null until there is something.
    static std::shared_ptr<List> &list() noexcept;

    void enlist();

    std::function<void()> step_;
    std::shared_ptr<List> list_; ///< of the thread that began, which may end before
    std::exception_ptr failure_;
};

} // namespace DNDS
