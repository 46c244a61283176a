#include "DNDS/Geom/Locate/Triangles.hpp"

#include <algorithm>
#include <cmath>

namespace DNDS::Geom {

// Both without a square root, and not inline: a compiler that fuses products and sums may round differently at each
// place where it inlines, and comparisons of distances decide which face is the nearest.
real distance2ToSegment(const Point &p, const Point &a, const Point &b) {
    const Point along = b - a;
    const Point from = p - a;
    const real length2 = dot(along, along);
    const real at = length2 > 0.0 ? std::clamp(dot(from, along) / length2, 0.0, 1.0) : 0.0;
    const Point rest = at == 1.0 ? p - b : from - at * along;
    return dot(rest, rest);
}

// The projection lies inside if it is on the inner side of all three edges; then the distance is the height.
// Otherwise the nearest point is on an edge.
real distance2ToTriangle(const Point &p, const Point &a, const Point &b, const Point &c) {
    const Point normal = cross(b - a, c - a);
    const real size2 = dot(normal, normal);
    const auto inside = [&](const Point &from, const Point &to) {
        return dot(cross(to - from, p - from), normal) >= 0.0;
    };
    if (size2 > 0.0 && inside(a, b) && inside(b, c) && inside(c, a)) {
        // From the nearest corner, so that distances near the plane keep their digits.
        const Point *nearest = &a;
        for (const Point *corner : {&b, &c})
            if (dot(p - *corner, p - *corner) < dot(p - *nearest, p - *nearest))
                nearest = corner;
        const real height = dot(p - *nearest, normal);
        return height * height / size2;
    }
    return std::min({distance2ToSegment(p, a, b), distance2ToSegment(p, b, c), distance2ToSegment(p, c, a)});
}

// atan2 is accurate for all angles, also for points near the triangle's plane.
real solidAngle(const Point &a, const Point &b, const Point &c) {
    const real la = norm(a);
    const real lb = norm(b);
    const real lc = norm(c);
    const real volume = dot(a, cross(b, c));
    const real rest = la * lb * lc + dot(a, b) * lc + dot(a, c) * lb + dot(b, c) * la;
    return 2.0 * std::atan2(volume, rest);
}

} // namespace DNDS::Geom
