/// @file Vortex.hpp
/// @brief Perfect gas, its fluxes, and an isentropic vortex.
#pragma once

#include "DNDS/Geom/Source/ElementType.hpp"

#include <array>
#include <cmath>
#include <numbers>

namespace DgVortex {

using DNDS::index; // POSIX has a function of that name
using DNDS::LocalIndex;
using DNDS::real;

/// Density, momentum in x and y, energy per volume.
inline constexpr int variables = 4;
using State = std::array<real, variables>;

inline constexpr real gamma = 1.4;

DNDS_HOST_DEVICE inline real pressureOf(const State &u) {
    return (gamma - 1) * (u[3] - 0.5 * (u[1] * u[1] + u[2] * u[2]) / u[0]);
}

/// The flux of `u` through the area vector (nx, ny).
DNDS_HOST_DEVICE inline State fluxOf(const State &u, real nx, real ny) {
    const real p = pressureOf(u);
    const real through = (u[1] * nx + u[2] * ny) / u[0];
    return {u[0] * through, u[1] * through + p * nx, u[2] * through + p * ny, (u[3] + p) * through};
}

DNDS_HOST_DEVICE inline real soundSpeed(const State &u) { return std::sqrt(gamma * pressureOf(u) / u[0]); }

/// The flux from `left` to `right` through the area vector by HLLC, with the wave speeds of Davis (Toro, Riemann
/// Solvers and Numerical Methods for Fluid Dynamics, 2009, sections 10.4 to 10.6).
DNDS_HOST_DEVICE inline State hllcFlux(const State &left, const State &right, real nx, real ny) {
    const real area = std::sqrt(nx * nx + ny * ny);
    const auto smaller = [](real a, real b) { return a < b ? a : b; };
    const auto normalVelocity = [&](const State &u) { return (u[1] * nx + u[2] * ny) / (u[0] * area); };
    const real l = normalVelocity(left);
    const real r = normalVelocity(right);
    const real slowest = smaller(l - soundSpeed(left), r - soundSpeed(right));
    const real fastest = -smaller(-l - soundSpeed(left), -r - soundSpeed(right));
    if (slowest >= 0)
        return fluxOf(left, nx, ny);
    if (fastest <= 0)
        return fluxOf(right, nx, ny);
    const real massLeft = left[0] * (slowest - l); // through the waves
    const real massRight = right[0] * (fastest - r);
    const real contact = (pressureOf(right) - pressureOf(left) + l * massLeft - r * massRight) / (massLeft - massRight);
    const State u = contact >= 0 ? left : right;
    const real wave = contact >= 0 ? slowest : fastest;
    const real normal = contact >= 0 ? l : r;
    const real density = u[0] * (wave - normal) / (wave - contact);
    const real push = density * (contact - normal) / area;
    const real energy =
        density * (u[3] / u[0] + (contact - normal) * (contact + pressureOf(u) / (u[0] * (wave - normal))));
    State flux = fluxOf(u, nx, ny);
    const State between{density, density * u[1] / u[0] + push * nx, density * u[2] / u[0] + push * ny, energy};
    for (std::size_t k = 0; k < variables; k++)
        flux[k] += area * wave * (between[k] - u[k]);
    return flux;
}

/// A vortex in a uniform flow of density and temperature 1, which carries it without change (Shu, ICASE Report 97-65,
/// 1997, section 5; Yee, Sandham and Djomehri, J. Comput. Phys. 150, 1999). Periodic in a box [0, side]^2, which is
/// large enough if the vortex has faded at a distance of side / 2, as exp(-r^2 / 2): its periodic images would disturb
/// each other (Spiegel, Huynh and DeBonis, AIAA 2015-2444).
struct Vortex {
    real side = 14;
    real strength = 5; ///< 0: the uniform flow
    real velocity = 1; ///< of the uniform flow, in x and in y

    /// The flow at (x, y) and `time`.
    State at(real x, real y, real time) const {
        const auto offset = [&](real position) {
            const real d = position - 0.5 * side - velocity * time;
            return d - side * std::floor(d / side + 0.5);
        };
        const real dx = offset(x);
        const real dy = offset(y);
        const real turn = strength / (2 * std::numbers::pi) * std::exp(0.5 * (1 - dx * dx - dy * dy));
        const real u = velocity - turn * dy;
        const real v = velocity + turn * dx;
        const real temperature = 1 - (gamma - 1) / (2 * gamma) * turn * turn;
        const real density = std::pow(temperature, 1 / (gamma - 1));
        return {density, density * u, density * v,
                density * temperature / (gamma - 1) + 0.5 * density * (u * u + v * v)};
    }
};

} // namespace DgVortex
