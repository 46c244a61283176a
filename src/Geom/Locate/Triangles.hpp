/// @file Triangles.hpp
/// @brief Polygons in space as triangles, and distances from them.
#pragma once

#include "DNDS/Geom/Source/ElementFaces.hpp"

#include <cstddef>

namespace DNDS::Geom {

/// Calls `visit(a, b, c)` for the triangles of a face with corners `cornerAt(i)`: itself, or a fan around the mean of
/// its corners, as `computeMetrics` measures it; then c is that mean. Local.
template <class CornerAt, class Visit>
void forEachTriangle(std::size_t corners, CornerAt &&cornerAt, Visit &&visit) {
    if (corners == 3) {
        visit(cornerAt(0), cornerAt(1), cornerAt(2));
        return;
    }
    const Point mean = meanPoint(corners, cornerAt);
    for (std::size_t i = 0; i < corners; i++)
        visit(cornerAt(i), cornerAt(i + 1 == corners ? 0 : i + 1), mean);
}

/// The squared distance from `p` to the segment from `a` to `b`, and to the triangle `a`, `b`, `c`; either may be
/// degenerate. The same bits wherever they are called from. The error is a few roundings of the distance and of the
/// triangle's size, not of the coordinates. Local.
real distance2ToSegment(const Point &p, const Point &a, const Point &b);
real distance2ToTriangle(const Point &p, const Point &a, const Point &b, const Point &c);

/// The solid angle of a triangle seen from the origin, positive if its corners are counter-clockwise from outside: van
/// Oosterom and Strackee, The solid angle of a plane triangle, IEEE Trans. Biomed. Eng. 30 (2), 1983. Local.
real solidAngle(const Point &a, const Point &b, const Point &c);

} // namespace DNDS::Geom
