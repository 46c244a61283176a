/// @file ExactFlows.hpp
/// @brief Flows whose solution is known: to start from, and to measure errors by.
#pragma once

#include "Gas.hpp"

namespace Euler {

/// An isentropic vortex that a uniform flow carries along: Shu in "Advanced Numerical Approximation of Nonlinear
/// Hyperbolic Equations" (1998), scaled by the speed of pressure and density around it.
struct Vortex {
    Primitive around;
    Vector centre;     ///< at time 0
    real strength = 5; ///< his epsilon
    real radius = 1;
    Vector period; ///< of the mesh in each direction; 0: none

    Primitive at(const Gas &gas, Vector point, real time) const;
};

/// Two states side by side in x: Toro, "Riemann Solvers and Numerical Methods for Fluid Dynamics", chapter 4.
struct ShockTube {
    Primitive left;
    Primitive right;
    real position = 0.5;

    /// Cost: an iteration for the pressure in the middle at each call.
    Primitive at(const Gas &gas, Vector point, real time) const;
};

} // namespace Euler
