/// @file GhostState.hpp
/// @brief Whether ghosts were pulled since this rank last wrote its own rows.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Storage/ArrayBase.hpp"

namespace DNDS {

/// State of a rank's ghosts from its own point of view: the version of its own father at their last pull.
///
/// Ranks that run the same program write their fathers between the same pulls, and then this holds for the
/// owners, too. Where only some ranks write, the others do not notice: their ghosts count as current. Writes into
/// the ghosts themselves after the pull are not considered; `ArrayBase::version` of the son tells them.
enum class GhostState : unsigned char {
    NeverPulled, ///< the last pull did not fill these rows: there was none, it is in flight, it failed, or it pulled
                 ///< only some ghosts (ExchangePattern::restrictedTo)
    Stale,       ///< the father was written, or its contents replaced, since the pull started
    Current      ///< the father has the contents that it had when the pull started; or there are no ghosts
};

/// Compares the father's version with that of the last completed pull into `son`. Local, O(1). Non-const access counts
/// as writing even if it only reads; see ArrayBase::version, also for writes that it misses.
inline GhostState ghostStateOf(const ArrayBase &father, const ArrayBase &son) noexcept {
    if (son.size() == 0)
        return GhostState::Current;
    if (son.pulledFrom() == 0)
        return GhostState::NeverPulled;
    return son.pulledFrom() == father.version() ? GhostState::Current : GhostState::Stale;
}

/// Check of ghosts by a view for reading, in code compiled with DNDS_DEBUG_CHECKS.
enum class GhostUse : unsigned char {
    Unchecked, ///< no check: old values are intended
    Checked,   ///< on the host, each access to a ghost: see GhostWatch
    Read       ///< ghosts must be current when the view is taken, on the device, too: StaleError; then as Checked
};

/// Throws StaleError naming the father unless `ghostStateOf` is Current. Local, O(1).
inline void requireCurrentGhosts(const ArrayBase &father, const ArrayBase &son) {
    const GhostState state = ghostStateOf(father, son);
    DNDS_CHECK(state == GhostState::Current, StaleError, "the ghosts of '{}' are {}: pull before reading them",
               father.label(), state == GhostState::NeverPulled ? "never pulled" : "older than the owned rows");
}

} // namespace DNDS
