/// @file RunResult.hpp
/// @brief The result of a run.
#pragma once

#include "Gas.hpp"

#include <array>

namespace Euler {

/// Record of implicit steps.
struct ImplicitRecord {
    real cfl = 0;          ///< CFL number of the last step
    real nextCfl = 0;      ///< 0: no step was made
    real first = 0;        ///< residual before the first step, as ImplicitSteps measures it; 0: unknown
    index iterations = 0;  ///< iterations of GMRES in all steps
    index unconverged = 0; ///< linear systems of this run that GMRES left above the tolerance
    index rejected = 0;    ///< attempts of this run, repeated with a smaller CFL number
};

/// The same on all ranks and for any number of ranks.
struct RunResult {
    index steps = 0;
    real time = 0;
    bool converged = false; ///< the residual fell to the tolerance
    std::array<real, variables> residual{};
    real drag = 0; ///< coefficients
    real lift = 0;
    /// Mean and root mean square error of density against the exact flow; 0 if none is known.
    real meanError = 0;
    real squareError = 0;
    ImplicitRecord implicit;
    std::array<real, variables> total{}; ///< integrals of the conserved variables
};

/// Cost of moving cells to other ranks; the same on all ranks.
struct BalanceResult {
    index moves = 0;
    index cells = 0; ///< cells that moved to another rank
    double seconds = 0;
    double most = 0, mean = 0; ///< seconds of work of the slowest rank of each step, and of all ranks
};

/// Cost of pictures.
struct PictureResult {
    index written = 0;
    double seconds = 0;
};

} // namespace Euler
