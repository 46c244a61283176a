/// @file Point.hpp
/// @brief Points and vectors in space, and their arithmetic.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <array>
#include <cmath>

namespace DNDS::Geom {

using Point = std::array<real, 3>;

/// Vectors in space: differences, sums, multiples, products and length.
inline Point operator-(const Point &a, const Point &b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
inline Point operator+(const Point &a, const Point &b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }
inline Point operator*(real s, const Point &a) { return {s * a[0], s * a[1], s * a[2]}; }
inline real dot(const Point &a, const Point &b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
inline real norm(const Point &a) { return std::sqrt(dot(a, a)); }
inline Point cross(const Point &a, const Point &b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

} // namespace DNDS::Geom
