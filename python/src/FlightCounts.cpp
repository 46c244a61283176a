#include "FlightCounts.hpp"

#include "DNDS/Base/Error.hpp"

namespace DNDS::Python {

void FlightCounts::needLanded(std::string_view label, std::string_view what) const {
    DNDS_CHECK(pulls == 0, StateError, "'{}' cannot {} while it is pulled: wait for the pull first", label, what);
    needSettled(label, what);
}

void FlightCounts::needSettled(std::string_view label, std::string_view what) const {
    DNDS_CHECK(pushes == 0, StateError, "'{}' cannot {} while it is pushed: wait for the push first", label, what);
}

} // namespace DNDS::Python
