#include "FlightCounts.hpp"

#include "DNDS/Base/Error.hpp"

#include <algorithm>

namespace DNDS::Python {

void FlightCounts::begin(const std::shared_ptr<const Exchange> &exchange) {
    const std::lock_guard lock(mutex_);
    started_.emplace_back(exchange);
}

void FlightCounts::end(const std::shared_ptr<const Exchange> &exchange) {
    const std::lock_guard lock(mutex_);
    std::erase_if(started_, [&](const auto &started) {
        const auto alive = started.lock();
        return alive == nullptr || alive == exchange || !alive->inFlight();
    });
}

bool FlightCounts::anyIs(Direction direction) const {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(started_, [&](const auto &started) {
        const auto alive = started.lock();
        return alive != nullptr && alive->direction() == direction && alive->inFlight();
    });
}

void FlightCounts::requireLanded(std::string_view label, std::string_view what) const {
    DNDS_CHECK(!anyIs(Direction::Pull), StateError, "'{}' cannot {} while it is pulled: wait for the pull first", label,
               what);
    requireSettled(label, what);
}

void FlightCounts::requireSettled(std::string_view label, std::string_view what) const {
    DNDS_CHECK(!anyIs(Direction::Push), StateError, "'{}' cannot {} while it is pushed: wait for the push first", label,
               what);
}

} // namespace DNDS::Python
