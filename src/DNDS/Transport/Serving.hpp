/// @file Serving.hpp
/// @brief Whoever waits lets the other exchanges of its thread go on.
#pragma once

#include "DNDS/Transport/Transport.hpp"

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace DNDS {

/// The transports of one exchange in flight whose peers may need this rank: to write rows, or to send rows once they
/// are packed. Exchanges may be waited for in different orders on different ranks, so whoever waits for peers serves
/// all that its thread has started. An exchange may end on another thread than the one that started it. Local.
class Serving {
  public:
    Serving() = default;
    Serving(const Serving &) = delete;
    Serving &operator=(const Serving &) = delete;
    ~Serving() { end(); }

    /// From now on `all` takes care of `transports`, which outlive this object. Throws std::bad_alloc.
    void begin(std::span<const std::unique_ptr<Transport>> transports);
    void end() noexcept;
    /// What a transport threw while another exchange was waited for, once: the wait for its own has to tell it.
    std::exception_ptr takeFailure() noexcept { return std::exchange(failure_, nullptr); }

    /// Lets everything go on that this thread serves. Does not wait.
    static void all() noexcept;
    /// Whether there is something to serve.
    static bool any() noexcept;

  private:
    struct List {
        std::mutex mutex; ///< held while transports go on, so that none is destroyed meanwhile
        std::vector<Serving *> items;
        std::atomic<std::size_t> count{0}; ///< of items, for those who only want to know whether there are any
    };
    /// Of this thread; null until there is something.
    static std::shared_ptr<List> &list() noexcept;

    std::vector<Transport *> transports_;
    std::shared_ptr<List> servedBy_; ///< of the thread that started, which may end before
    std::exception_ptr failure_;
};

} // namespace DNDS
