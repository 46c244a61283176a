/// @file RiemannSolvers.hpp
/// @brief Fluxes between two states.
#pragma once

#include "Gas.hpp"

namespace Euler {

enum class FluxScheme : unsigned char { Hllc, Roe };

/// Averages of Roe: "Approximate Riemann solvers, parameter vectors, and difference schemes", J. Comput. Phys. 43
/// (1981).
struct RoeAverage {
    real density;
    Vector velocity;
    real enthalpy;
    real soundSpeed;

    DNDS_HOST_DEVICE RoeAverage(const Gas &gas, const Primitive &left, const Primitive &right) {
        const real ratio = std::sqrt(right.density / left.density);
        const real leftShare = 1 / (1 + ratio);
        const real rightShare = ratio * leftShare;
        density = ratio * left.density;
        velocity = leftShare * left.velocity + rightShare * right.velocity;
        // Roe's (gamma - 1) (enthalpy - velocity^2 / 2), without the difference: always positive.
        const Vector jump = right.velocity - left.velocity;
        const real square = leftShare * gas.soundSquare(left) + rightShare * gas.soundSquare(right) +
                            0.5 * (gas.gamma - 1) * leftShare * rightShare * dot(jump, jump);
        enthalpy = square / (gas.gamma - 1) + 0.5 * dot(velocity, velocity);
        soundSpeed = std::sqrt(square);
    }
};

/// HLLC: Toro, Spruce, Speares, Shock Waves 4 (1994); speeds of the outer waves by Einfeldt, SIAM J. Numer. Anal. 25
/// (1988), as in Batten, Clarke, Lambert, Causon, SIAM J. Sci. Comput. 18 (1997), with which it keeps density and
/// pressure positive.
DNDS_HOST_DEVICE inline Conserved hllcFlux(const Gas &gas, const Primitive &left, const Primitive &right, Vector n) {
    const RoeAverage roe(gas, left, right);
    const real leftSpeed = dot(left.velocity, n);
    const real rightSpeed = dot(right.velocity, n);
    const real middle = dot(roe.velocity, n);
    const real slowest = smaller(leftSpeed - gas.soundSpeed(left), middle - roe.soundSpeed);
    const real fastest = larger(rightSpeed + gas.soundSpeed(right), middle + roe.soundSpeed);
    if (slowest >= 0)
        return gas.normalFlux(left, n);
    if (fastest <= 0)
        return gas.normalFlux(right, n);
    const real leftMass = left.density * (slowest - leftSpeed);
    const real rightMass = right.density * (fastest - rightSpeed);
    const real contact =
        (right.pressure - left.pressure + leftMass * leftSpeed - rightMass * rightSpeed) / (leftMass - rightMass);
    // Weights, not a branch: which side of the contact a face is on depends on its orientation and is hard to predict.
    const real ofLeft = contact >= 0 ? 1 : 0;
    const real ofRight = 1 - ofLeft;
    const auto upwind = [&](real ofLeftSide, real ofRightSide) { return ofLeft * ofLeftSide + ofRight * ofRightSide; };
    const Primitive w{upwind(left.density, right.density), ofLeft * left.velocity + ofRight * right.velocity,
                      upwind(left.pressure, right.pressure)};
    const real wave = upwind(slowest, fastest);
    const real speed = upwind(leftSpeed, rightSpeed);
    const real mass = upwind(leftMass, rightMass);
    const real share = 1 / (wave - contact);
    const real starPressure = w.pressure + mass * (contact - speed);
    const real energy = share * ((wave - speed) * gas.energy(w) - w.pressure * speed + starPressure * contact);
    const real through = share * mass * contact;
    const Vector velocity = w.velocity + (contact - speed) * n;
    return {through, through * velocity + starPressure * n, contact * (energy + starPressure)};
}

/// Roe's flux; below `fix` times the speed of sound the speeds of acoustic waves are rounded off as by Harten, J.
/// Comput. Phys. 49 (1983).
DNDS_HOST_DEVICE inline Conserved roeFlux(const Gas &gas, const Primitive &left, const Primitive &right, Vector n,
                                          real fix) {
    const RoeAverage roe(gas, left, right);
    const real c = roe.soundSpeed;
    const real through = dot(roe.velocity, n);
    const auto rounded = [&](real speed) {
        const real size = std::fabs(speed);
        const real limit = fix * c;
        return size < limit ? 0.5 * (size * size / limit + limit) : size;
    };
    const real densityJump = right.density - left.density;
    const real pressureJump = right.pressure - left.pressure;
    const Vector velocityJump = right.velocity - left.velocity;
    const real normalJump = dot(velocityJump, n);
    const Vector shearJump = velocityJump - normalJump * n;

    const real backward = rounded(through - c) * (pressureJump - roe.density * c * normalJump) / (2 * c * c);
    const real forward = rounded(through + c) * (pressureJump + roe.density * c * normalJump) / (2 * c * c);
    const real entropy = std::fabs(through) * (densityJump - pressureJump / (c * c));
    const real shear = std::fabs(through) * roe.density;
    const Conserved dissipation{backward + entropy + forward,
                                backward * (roe.velocity - c * n) + entropy * roe.velocity + shear * shearJump +
                                    forward * (roe.velocity + c * n),
                                backward * (roe.enthalpy - c * through) +
                                    entropy * (0.5 * dot(roe.velocity, roe.velocity)) +
                                    shear * dot(roe.velocity, shearJump) + forward * (roe.enthalpy + c * through)};
    return 0.5 * (gas.normalFlux(left, n) + gas.normalFlux(right, n) - dissipation);
}

} // namespace Euler
