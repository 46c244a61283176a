/// @file GhostUpdates.hpp
/// @brief Sums into the owners' rows of ghosts that change in each step.
#pragma once

#include "Measure.hpp"

namespace DNDS::Bench {

/// Each rank adds to 100 to 10,000 random ghosts a step: through a `GhostWindow`, by a push of all ghosts, and by a
/// push whose list is made for the step. Collective. Throws StateError if a way loses an update.
void ghostUpdates(Setting &setting);

} // namespace DNDS::Bench
