/// @file ExactFlows.hpp
/// @brief Flows with known solutions: initial flows and references for errors.
#pragma once

#include "Gas.hpp"

namespace Euler {

/// An isentropic vortex convected by a uniform flow: Shu in "Advanced Numerical Approximation of Nonlinear Hyperbolic
/// Equations" (1998), scaled by the speed of sound.
struct Vortex {
    Primitive around;
    Vector centre;     ///< at time 0
    real strength = 5; ///< Shu's epsilon
    real radius = 1;
    Vector period; ///< period of the mesh in each direction; 0: none

    Primitive at(const Gas &gas, Vector point, real time) const;
};

/// Two states side by side in x: Toro, "Riemann Solvers and Numerical Methods for Fluid Dynamics", chapter 4.
struct ShockTube {
    Primitive left;
    Primitive right;
    real position = 0.5;

    /// Cost: each call iterates for the pressure in the middle.
    Primitive at(const Gas &gas, Vector point, real time) const;
};

} // namespace Euler
