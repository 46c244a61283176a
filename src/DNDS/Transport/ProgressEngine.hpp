/// @file ProgressEngine.hpp
/// @brief While a thread waits for one exchange, its other exchanges make progress.
#pragma once

#include "DNDS/Transport/Transport.hpp"

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace DNDS {

/// The transports of one exchange in flight whose peers may need this rank (`TransportDescriptor::needsProgress`).
/// Exchanges may be waited for in different orders on different ranks, so whoever waits for peers calls `progressAll`
/// for all that its thread has started. An exchange may end on another thread than the one that started it. Local.
class ProgressEngine {
  public:
    ProgressEngine() = default;
    ProgressEngine(const ProgressEngine &) = delete;
    ProgressEngine &operator=(const ProgressEngine &) = delete;
    ~ProgressEngine() { end(); }

    /// From now on `progressAll` takes care of `transports`, which outlive this object. Throws std::bad_alloc.
    void begin(std::span<const std::unique_ptr<Transport>> transports);
    /// From now on `progressAll` of this thread calls `step`, too, which serves ranks that may need this one at any
    /// time. It must neither wait nor call `progressAll`. Throws std::bad_alloc.
    void begin(std::function<void()> step);
    /// From now on `progressAll` of this thread does so, in place of the one that `begin` was called on. Throws
    /// std::bad_alloc.
    void moveHere();
    void end() noexcept;
    /// What a transport threw while another exchange was waited for, once: the wait for its own has to tell it.
    std::exception_ptr takeFailure() noexcept { return std::exchange(failure_, nullptr); }

    /// Calls `progress` of all transports that this thread has in flight. Does not wait.
    static void progressAll() noexcept;
    /// Whether there are any.
    static bool busy() noexcept;

  private:
    struct List {
        std::mutex mutex; ///< held while transports go on, so that none is destroyed meanwhile
        std::vector<ProgressEngine *> items;
        std::atomic<std::size_t> count{0}; ///< of items, for those who only want to know whether there are any
    };
    /// Of this thread; null until there is something.
    static std::shared_ptr<List> &list() noexcept;

    void enlist();

    std::vector<Transport *> transports_;
    std::function<void()> step_;
    std::shared_ptr<List> list_; ///< of the thread that started, which may end before
    std::exception_ptr failure_;
};

} // namespace DNDS
