#include "ExactFlows.hpp"

#include <numbers>

namespace Euler {

namespace {

/// The velocity change across the wave between a state and the middle of a shock tube, and its derivative with respect
/// to the pressure there.
struct WaveJump {
    real change;
    real slope;
};

WaveJump waveJump(const Gas &gas, const Primitive &w, real pressure) {
    const real g = gas.gamma;
    const real sound = gas.soundSpeed(w);
    if (pressure > w.pressure) {
        const real a = 2 / ((g + 1) * w.density);
        const real b = (g - 1) / (g + 1) * w.pressure;
        const real root = std::sqrt(a / (pressure + b));
        return {(pressure - w.pressure) * root, root * (1 - 0.5 * (pressure - w.pressure) / (pressure + b))};
    }
    const real ratio = pressure / w.pressure;
    return {2 * sound / (g - 1) * (std::pow(ratio, (g - 1) / (2 * g)) - 1),
            std::pow(ratio, -(g + 1) / (2 * g)) / (w.density * sound)};
}

/// The state on the ray x / t = `speed`, left of the contact, for a left-moving wave into `w`.
Primitive leftFan(const Gas &gas, const Primitive &w, real pressure, real velocity, real speed) {
    const real g = gas.gamma;
    const real sound = gas.soundSpeed(w);
    const real ratio = pressure / w.pressure;
    if (ratio > 1) {
        const real shock = w.velocity.x - sound * std::sqrt((g + 1) / (2 * g) * ratio + (g - 1) / (2 * g));
        const real share = (g - 1) / (g + 1);
        return speed < shock ? w : Primitive{w.density * (ratio + share) / (share * ratio + 1), {velocity}, pressure};
    }
    const real soundBehind = sound * std::pow(ratio, (g - 1) / (2 * g));
    if (speed < w.velocity.x - sound)
        return w;
    if (speed > velocity - soundBehind)
        return {w.density * std::pow(ratio, 1 / g), {velocity}, pressure};
    const real inside = 2 / (g + 1) + (g - 1) / ((g + 1) * sound) * (w.velocity.x - speed);
    return {w.density * std::pow(inside, 2 / (g - 1)),
            {2 / (g + 1) * (sound + 0.5 * (g - 1) * w.velocity.x + speed)},
            w.pressure * std::pow(inside, 2 * g / (g - 1))};
}

Primitive mirrored(Primitive w) {
    w.velocity.x = -w.velocity.x;
    return w;
}

/// `offset` shifted by whole periods to its smallest value.
real nearest(real offset, real period) { return period > 0 ? offset - period * std::round(offset / period) : offset; }

} // namespace

Primitive Vortex::at(const Gas &gas, Vector point, real time) const {
    const Vector offset = point - centre - time * around.velocity;
    const real x = nearest(offset.x, period.x) / radius;
    const real y = nearest(offset.y, period.y) / radius;
    const real pi = std::numbers::pi;
    const real g = gas.gamma;
    const real bump = std::exp(1 - x * x - y * y);
    const real temperature = 1 - (g - 1) * strength * strength / (8 * g * pi * pi) * bump;
    const real speed = std::sqrt(around.pressure / around.density) * strength / (2 * pi) * std::sqrt(bump);
    return {around.density * std::pow(temperature, 1 / (g - 1)), around.velocity + Vector{-speed * y, speed * x, 0},
            around.pressure * std::pow(temperature, g / (g - 1))};
}

Primitive ShockTube::at(const Gas &gas, Vector point, real time) const {
    if (time <= 0)
        return point.x < position ? left : right;
    const real jump = right.velocity.x - left.velocity.x;
    real pressure = 0.5 * (left.pressure + right.pressure);
    for (int i = 0; i < 100; i++) {
        const WaveJump l = waveJump(gas, left, pressure);
        const WaveJump r = waveJump(gas, right, pressure);
        const real next = std::fmax(pressure - (l.change + r.change + jump) / (l.slope + r.slope), 1e-8 * pressure);
        const bool done = std::fabs(next - pressure) <= 1e-14 * pressure;
        pressure = next;
        if (done)
            break;
    }
    const real velocity = 0.5 * (left.velocity.x + right.velocity.x) +
                          0.5 * (waveJump(gas, right, pressure).change - waveJump(gas, left, pressure).change);
    const real speed = (point.x - position) / time;
    return speed < velocity ? leftFan(gas, left, pressure, velocity, speed)
                            : mirrored(leftFan(gas, mirrored(right), pressure, -velocity, -speed));
}

} // namespace Euler
