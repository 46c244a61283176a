/// @file FlightCounts.hpp
/// @brief Which operations on a field's rows are allowed while its exchanges are in flight.
#pragma once

#include <string_view>

namespace DNDS::Python {

/// Exchanges of a field in flight, in groups or alone. A pull reads owned rows and writes ghosts; a push reads ghosts
/// and changes owned rows. `label` is the field's name in messages.
struct FlightCounts {
    int pulls = 0;
    int pushes = 0;

    /// Throws StateError while any exchange is in flight.
    void needLanded(std::string_view label, std::string_view what) const;
    /// Throws StateError while owned rows are about to change.
    void needSettled(std::string_view label, std::string_view what) const;
};

} // namespace DNDS::Python
