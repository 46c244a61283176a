/// @file FlightCounts.hpp
/// @brief What may be done with the rows of a field while its exchanges are in flight.
#pragma once

#include <string_view>

namespace DNDS::Python {

/// Exchanges of a field that are in flight, in groups or alone. A pull reads owned rows and writes ghosts; a push reads
/// ghosts and changes owned rows. `label` is what messages call the field.
struct FlightCounts {
    int pulls = 0;
    int pushes = 0;

    /// Throws StateError while any exchange is in flight.
    void needLanded(std::string_view label, std::string_view what) const;
    /// Throws StateError while owned rows are about to change.
    void needSettled(std::string_view label, std::string_view what) const;
};

} // namespace DNDS::Python
