/// @file RunResult.hpp
/// @brief What a run has come to.
#pragma once

#include "Gas.hpp"

#include <array>

namespace Euler {

/// The same on all ranks and for any number of ranks.
struct RunResult {
    index steps = 0;
    real time = 0;
    bool converged = false; ///< the residual came down to the tolerance
    std::array<real, variables> residual{};
    real drag = 0; ///< coefficients
    real lift = 0;
    /// Mean and root mean square difference of density from what is known of the flow; 0 where nothing is.
    real meanError = 0;
    real squareError = 0;
    std::array<real, variables> total{}; ///< integrals of conserved amounts
};

} // namespace Euler
