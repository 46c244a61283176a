/// @file Gas.hpp
/// @brief Perfect gas: states and derived quantities.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <cmath>

namespace Euler {

using DNDS::index;
using DNDS::real;

/// The smaller and the larger of two numbers; `a` if `b` is NaN. One instruction each, unlike std::fmin and fmax, which
/// compilers call as functions.
DNDS_HOST_DEVICE inline real smaller(real a, real b) { return b < a ? b : a; }
DNDS_HOST_DEVICE inline real larger(real a, real b) { return b > a ? b : a; }

struct Vector {
    real x = 0, y = 0, z = 0;

    DNDS_HOST_DEVICE static Vector load(const real *row) { return {row[0], row[1], row[2]}; }
    DNDS_HOST_DEVICE void store(real *row) const {
        row[0] = x;
        row[1] = y;
        row[2] = z;
    }
};
DNDS_HOST_DEVICE inline Vector operator+(Vector a, Vector b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
DNDS_HOST_DEVICE inline Vector operator-(Vector a, Vector b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
DNDS_HOST_DEVICE inline Vector operator*(real a, Vector b) { return {a * b.x, a * b.y, a * b.z}; }
DNDS_HOST_DEVICE inline real dot(Vector a, Vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

/// Five numbers per cell, in either form; in two dimensions the third components of vectors stay 0.
inline constexpr int variables = 5;

struct Primitive {
    real density = 0;
    Vector velocity;
    real pressure = 0;

    DNDS_HOST_DEVICE static Primitive load(const real *row) { return {row[0], Vector::load(row + 1), row[4]}; }
    DNDS_HOST_DEVICE void store(real *row) const {
        row[0] = density;
        velocity.store(row + 1);
        row[4] = pressure;
    }
    /// False for NaN, too.
    DNDS_HOST_DEVICE bool physical() const { return density > 0 && pressure > 0; }
};

/// Conserved variables per volume, or the flux of each through an area.
struct Conserved {
    real mass = 0;
    Vector momentum;
    real energy = 0;

    DNDS_HOST_DEVICE static Conserved load(const real *row) { return {row[0], Vector::load(row + 1), row[4]}; }
    DNDS_HOST_DEVICE void store(real *row) const {
        row[0] = mass;
        momentum.store(row + 1);
        row[4] = energy;
    }
};
DNDS_HOST_DEVICE inline Conserved operator+(const Conserved &a, const Conserved &b) {
    return {a.mass + b.mass, a.momentum + b.momentum, a.energy + b.energy};
}
DNDS_HOST_DEVICE inline Conserved operator-(const Conserved &a, const Conserved &b) {
    return {a.mass - b.mass, a.momentum - b.momentum, a.energy - b.energy};
}
DNDS_HOST_DEVICE inline Conserved operator*(real a, const Conserved &b) {
    return {a * b.mass, a * b.momentum, a * b.energy};
}

struct Gas {
    real gamma = 1.4;

    DNDS_HOST_DEVICE real soundSquare(const Primitive &w) const { return gamma * w.pressure / w.density; }
    DNDS_HOST_DEVICE real soundSpeed(const Primitive &w) const { return std::sqrt(soundSquare(w)); }
    DNDS_HOST_DEVICE real mach(const Primitive &w) const {
        return std::sqrt(dot(w.velocity, w.velocity)) / soundSpeed(w);
    }
    /// Internal and kinetic energy per volume.
    DNDS_HOST_DEVICE real energy(const Primitive &w) const {
        return w.pressure / (gamma - 1) + 0.5 * w.density * dot(w.velocity, w.velocity);
    }
    DNDS_HOST_DEVICE Conserved conserved(const Primitive &w) const {
        return {w.density, w.density * w.velocity, energy(w)};
    }
    DNDS_HOST_DEVICE Primitive primitive(const Conserved &u) const {
        const Vector velocity = (1 / u.mass) * u.momentum;
        return {u.mass, velocity, (gamma - 1) * (u.energy - 0.5 * dot(u.momentum, velocity))};
    }
    /// The flux of `w` through a unit area with the unit normal `n`.
    DNDS_HOST_DEVICE Conserved normalFlux(const Primitive &w, Vector n) const {
        const real through = dot(w.velocity, n);
        const real mass = w.density * through;
        return {mass, mass * w.velocity + w.pressure * n, through * (energy(w) + w.pressure)};
    }
};

} // namespace Euler
