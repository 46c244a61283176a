/// @file Boundary.hpp
/// @brief Boundary conditions.
#pragma once

#include "Gas.hpp"

namespace Euler {

enum class BoundaryKind : unsigned char {
    Wall,             ///< slip wall
    Symmetry,         ///< the same, without a force
    FarField,         ///< the reference state, by Riemann invariants
    SupersonicInflow, ///< the given state
    SupersonicOutflow,
    PressureOutlet ///< the given pressure, unless the outflow is supersonic
};

/// One per patch.
struct BoundaryCondition {
    BoundaryKind kind = BoundaryKind::Wall;
    Primitive outside; ///< state of far field and inflow; of a pressure outlet only the pressure
};

/// Combines the far state and the inside state by the Riemann invariants along the outward normal `n`; entropy and
/// tangential velocity are taken from upstream: Whitfield and Janus, AIAA 84-1552.
DNDS_HOST_DEVICE inline Primitive farFieldState(const Gas &gas, const Primitive &outside, const Primitive &inside,
                                                Vector n) {
    const real insideSpeed = dot(inside.velocity, n);
    const real outsideSpeed = dot(outside.velocity, n);
    const real insideSound = gas.soundSpeed(inside);
    const real outsideSound = gas.soundSpeed(outside);
    if (insideSpeed >= insideSound)
        return inside;
    if (outsideSpeed <= -outsideSound)
        return outside;
    const real outgoing = insideSpeed + 2 * insideSound / (gas.gamma - 1);
    const real incoming = outsideSpeed - 2 * outsideSound / (gas.gamma - 1);
    const real speed = 0.5 * (outgoing + incoming);
    const real sound = 0.25 * (gas.gamma - 1) * (outgoing - incoming);
    const Primitive far = outside;
    // member by member: selecting one of two objects would spill states to GPU memory
    const real fromDensity = speed > 0 ? inside.density : far.density;
    const Vector fromVelocity{speed > 0 ? inside.velocity.x : far.velocity.x,
                              speed > 0 ? inside.velocity.y : far.velocity.y,
                              speed > 0 ? inside.velocity.z : far.velocity.z};
    const real fromSound = speed > 0 ? insideSound : outsideSound;
    const real fromSpeed = speed > 0 ? insideSpeed : outsideSpeed;
    const real density = fromDensity * std::pow(sound / fromSound, 2 / (gas.gamma - 1));
    return {density, fromVelocity + (speed - fromSpeed) * n, density * sound * sound / gas.gamma};
}

/// A pressure outlet, by linear characteristics.
DNDS_HOST_DEVICE inline Primitive pressureOutletState(const Gas &gas, real pressure, const Primitive &inside,
                                                      Vector n) {
    const real sound = gas.soundSpeed(inside);
    if (dot(inside.velocity, n) >= sound)
        return inside;
    const real excess = inside.pressure - pressure;
    return {inside.density - excess / (sound * sound), inside.velocity + (excess / (inside.density * sound)) * n,
            pressure};
}

/// The state at a boundary face with the outward unit normal `n`.
DNDS_HOST_DEVICE inline Primitive boundaryState(const Gas &gas, const BoundaryCondition &condition,
                                                const Primitive &inside, Vector n) {
    switch (condition.kind) {
    case BoundaryKind::Wall:
    case BoundaryKind::Symmetry:
        return {inside.density, inside.velocity - dot(inside.velocity, n) * n, inside.pressure};
    case BoundaryKind::FarField:
        return farFieldState(gas, condition.outside, inside, n);
    case BoundaryKind::SupersonicInflow:
        return condition.outside;
    case BoundaryKind::PressureOutlet:
        return pressureOutletState(gas, condition.outside.pressure, inside, n);
    case BoundaryKind::SupersonicOutflow:
        break;
    }
    return inside;
}

/// The flux out of the mesh through a unit area; the mass flux through walls is exactly zero.
DNDS_HOST_DEVICE inline Conserved boundaryFlux(const Gas &gas, const BoundaryCondition &condition,
                                               const Primitive &inside, Vector n) {
    if (condition.kind == BoundaryKind::Wall || condition.kind == BoundaryKind::Symmetry)
        return {0, inside.pressure * n, 0};
    return gas.normalFlux(boundaryState(gas, condition, inside, n), n);
}

} // namespace Euler
