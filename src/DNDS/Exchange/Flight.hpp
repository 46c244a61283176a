/// @file Flight.hpp
/// @brief An exchange in flight as an object: leaving its scope waits.
#pragma once

#include "DNDS/Exchange/Exchange.hpp"

#include <exception>
#include <memory>

namespace DNDS {

/// A started pull or push that has to be waited for.
///
///     {
///         const Flight ghosts = u.trans.startPull();
///         computeOnInnerRows();
///     }                                             // the ghosts are there
///
/// The end of the scope waits, also where an exception leaves it, so that no peer is left waiting. It throws the
/// error of `wait`, or the solver would continue with old ghosts; during another exception it throws nothing, and that
/// one propagates. Move-only. It keeps the exchange, and does nothing if the exchange was waited for elsewhere.
class [[nodiscard]] Flight {
  public:
    Flight() = default;
    /// Starts the exchange. Local. Throws as Exchange::start.
    [[nodiscard]] explicit Flight(std::shared_ptr<Exchange> exchange, Device::StreamHandle producer = nullptr);
    Flight(Flight &&) noexcept = default;
    /// Waits for the flight held here. Throws as Exchange::wait.
    Flight &operator=(Flight &&other) noexcept(false); // NOLINT: ending the old flight may fail
    Flight(const Flight &) = delete;
    Flight &operator=(const Flight &) = delete;
    ~Flight() noexcept(false); // NOLINT: see above

    /// Completes the exchange; does nothing the second time, even if the first call threw. Local. See Exchange::wait.
    void wait();
    void wait(Device::StreamHandle consumer);
    /// Whether nothing is left to wait for.
    bool done() const noexcept {
        // Waited for through the exchange itself, perhaps started again since: then that start belongs to another
        // flight.
        return exchange_ == nullptr || !exchange_->inFlight() || exchange_->starts() != start_;
    }

  private:
    std::shared_ptr<Exchange> exchange_;                ///< null once it was waited for
    std::uint64_t start_ = 0;                           ///< number of this start
    int exceptionsBefore_ = std::uncaught_exceptions(); ///< more at the end: the scope is left by an exception
};

} // namespace DNDS
