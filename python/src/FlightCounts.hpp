/// @file FlightCounts.hpp
/// @brief Counts of exchanges in flight, which decide the allowed operations on a field's rows.
#pragma once

#include "DNDS/Exchange/Exchange.hpp"

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace DNDS::Python {

/// Exchanges of a field in flight, in groups or alone. A pull reads owned rows and writes ghosts; a push reads ghosts
/// and changes owned rows. `label` is the field's name in messages. Exchanges cancelled by `recover` are not in flight.
class FlightCounts {
  public:
    /// From its start until `end`, as long as it is in flight.
    void begin(const std::shared_ptr<const Exchange> &exchange);
    void end(const std::shared_ptr<const Exchange> &exchange);

    /// Whether an exchange in this direction is in flight.
    bool anyIs(Direction direction) const;
    /// Throws StateError while any exchange is in flight.
    void requireLanded(std::string_view label, std::string_view what) const;
    /// Throws StateError while owned rows are about to change.
    void requireSettled(std::string_view label, std::string_view what) const;

  private:
    mutable std::mutex mutex_; ///< waits run without Python's lock
    std::vector<std::weak_ptr<const Exchange>> started_;
};

} // namespace DNDS::Python
