#include "DNDS/Exchange/ExchangeGroup.hpp"

#include "DNDS/Mpi/RollCall.hpp"

#include <utility>

namespace DNDS {

void PersistentExchange::init(CommunicatorContext &context, std::string_view what,
                              const std::function<ExchangeRequest()> &describe, const ExchangeOptions &options,
                              PushOp op) {
    // Checked within the collective call: a rank whose exchange is in flight makes all ranks throw, instead of
    // leaving the others in set-up.
    const auto request = [&] {
        requireNotInFlight(what);
        return describe();
    };
    exchange_ = Exchange::make(context, direction_, std::ref(request), options, op);
}

// Unlike `forget`, refuses to destroy an exchange in flight, whose peers still wait for this rank's rows.
void PersistentExchange::clear(std::string_view what) {
    requireNotInFlight(what);
    exchange_.reset();
}

void PersistentExchange::throwMissing(std::string_view what) const {
    throw StateError(
        fmt::format("there is no persistent {0} of '{1}': call initPersistent{0} first{2}", name(), what,
                    direction_ == Direction::Pull ? ", or ghostsFor, which makes ghosts and calls it" : ""));
}

void PersistentExchange::requireNotInFlight(std::string_view what) const {
    DNDS_CHECK(!inFlight(), StateError,
               "the persistent {0} of '{1}' is in flight: call waitPersistent{0} before clearing or initialising it",
               name(), what);
}

void PersistentExchanges::initPersistentPull(const ExchangeOptions &options) {
    const ActivityScope activity("initPersistentPull of", exchanged());
    pull_.init(
        *context(), exchanged(), [&] { return request("initPersistentPull"); }, options);
}

void PersistentExchanges::initPersistentPush(PushOp op, const ExchangeOptions &options) {
    const ActivityScope activity("initPersistentPush of", exchanged());
    push_.init(
        *context(), exchanged(), [&] { return request("initPersistentPush"); }, options, op);
}

void PersistentExchanges::pullOnce(const ExchangeOptions &options, Device::StreamHandle producer) {
    once(
        *context(), Direction::Pull, [&] { return request("pullOnce"); }, options, PushOp::Replace, producer);
}

void PersistentExchanges::pushOnce(PushOp op, const ExchangeOptions &options, Device::StreamHandle producer) {
    once(
        *context(), Direction::Push, [&] { return request("pushOnce"); }, options, op, producer);
}

void PersistentExchanges::forget() {
    // Destroying an exchange in flight revokes the communicator: see Exchange.
    pull_ = PersistentExchange(Direction::Pull);
    push_ = PersistentExchange(Direction::Push);
}

// Set-up, one epoch and destruction: for rows that move once. Loops want a persistent exchange.
void PersistentExchanges::once(CommunicatorContext &context, Direction direction,
                               const std::function<ExchangeRequest()> &describe, const ExchangeOptions &options,
                               PushOp op, Device::StreamHandle producer) {
    Exchange exchange(context, direction, describe, options, op);
    exchange.start(producer);
    exchange.wait();
}

} // namespace DNDS
