#include "DNDS/Exchange/Exchange.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <utility>

namespace DNDS {

Flight::Flight(std::shared_ptr<Exchange> exchange, Device::StreamHandle producer) : exchange_(std::move(exchange)) {
    DNDS_CHECK(exchange_ != nullptr, ArgumentError, "a flight needs an exchange");
    exchange_->start(producer);
    start_ = exchange_->starts();
}

Flight &Flight::operator=(Flight &&other) noexcept(false) {
    // The old flight ends first; if that throws, `other` still has the new one.
    if (this != &other) {
        wait();
        exchange_ = std::move(other.exchange_);
        start_ = other.start_;
    }
    return *this;
}

// May throw, like the wait that it replaces: a failed pull must not look like fresh ghosts.
Flight::~Flight() noexcept(false) {
    if (done() || !mpiActive()) // after MPI the exchange keeps its memory and is silent
        return;
    // Waits even while an exception passes: peers need this rank's progress, and arrays must not be freed in
    // flight.
    const std::exception_ptr failure = attempt([&] { wait(); });
    if (failure && std::uncaught_exceptions() <= exceptionsBefore_) // else the caller gets another exception
        std::rethrow_exception(failure);
}

void Flight::wait() {
    if (done())
        return;
    // Let go first: a flight is waited for once, even if that throws.
    const auto exchange = std::exchange(exchange_, nullptr);
    exchange->wait();
}

void Flight::wait(Device::StreamHandle consumer) {
    if (done())
        return;
    const auto exchange = std::exchange(exchange_, nullptr);
    exchange->wait(consumer);
}

} // namespace DNDS
