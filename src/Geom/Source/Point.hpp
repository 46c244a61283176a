/// @file Point.hpp
/// @brief Points and vectors in space, and their arithmetic; usable in kernels.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <array>
#include <cmath>

namespace DNDS::Geom {

using Point = std::array<real, 3>;

/// Vectors in space: differences, sums, multiples, products and length.
DNDS_HOST_DEVICE inline Point operator-(const Point &a, const Point &b) {
    return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
DNDS_HOST_DEVICE inline Point operator+(const Point &a, const Point &b) {
    return {a[0] + b[0], a[1] + b[1], a[2] + b[2]};
}
DNDS_HOST_DEVICE inline Point operator*(real s, const Point &a) { return {s * a[0], s * a[1], s * a[2]}; }
DNDS_HOST_DEVICE inline real dot(const Point &a, const Point &b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
DNDS_HOST_DEVICE inline real norm(const Point &a) { return std::sqrt(dot(a, a)); }
DNDS_HOST_DEVICE inline Point cross(const Point &a, const Point &b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

} // namespace DNDS::Geom
