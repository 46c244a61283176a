#include "DNDS/Geom/Source/SourceMesh.hpp"

#include <algorithm>
#include <cmath>

namespace DNDS::Geom {

namespace {

/// The rotation about one axis through the origin, by the right-hand rule; `angle` in radians.
RigidMotion rotationAbout(std::size_t axis, real angle) {
    RigidMotion motion;
    const std::size_t i = (axis + 1) % 3;
    const std::size_t j = (axis + 2) % 3;
    motion.matrix[3 * i + i] = motion.matrix[3 * j + j] = std::cos(angle);
    motion.matrix[3 * i + j] = -std::sin(angle);
    motion.matrix[3 * j + i] = std::sin(angle);
    return motion;
}

} // namespace

// Rows of the matrix times the vector.
Point RigidMotion::rotate(const Point &v) const {
    Point result;
    for (std::size_t d = 0; d < 3; d++)
        result[d] = matrix[3 * d] * v[0] + matrix[3 * d + 1] * v[1] + matrix[3 * d + 2] * v[2];
    return result;
}

Point RigidMotion::operator()(const Point &x) const { return rotate(x) + shift; }

// The inverse of a rotation is its transpose; the shift is turned back and negated.
RigidMotion RigidMotion::inverse() const {
    RigidMotion result;
    for (std::size_t i = 0; i < 3; i++)
        for (std::size_t j = 0; j < 3; j++)
            result.matrix[3 * i + j] = matrix[3 * j + i];
    result.shift = -1.0 * result.rotate(shift);
    return result;
}

// x -> A (B x + b) + a = A B x + (A b + a).
RigidMotion operator*(const RigidMotion &after, const RigidMotion &before) {
    RigidMotion result;
    for (std::size_t i = 0; i < 3; i++)
        for (std::size_t j = 0; j < 3; j++) {
            result.matrix[3 * i + j] = 0.0;
            for (std::size_t k = 0; k < 3; k++)
                result.matrix[3 * i + j] += after.matrix[3 * i + k] * before.matrix[3 * k + j];
        }
    result.shift = after(before.shift);
    return result;
}

/// SIDS, Periodic_t: rotate about the centre, then translate; written as x -> R x + (c - R c + t).
RigidMotion motionOf(const PeriodicTransform &transform) {
    RigidMotion rotation;
    for (std::size_t axis = 0; axis < 3; axis++)
        rotation = rotationAbout(axis, transform.angles[axis]) * rotation;
    rotation.shift = transform.centre - rotation.rotate(transform.centre) + transform.translation;
    return rotation;
}

/// Euler angles of R = Rz Ry Rx.
std::array<real, 3> anglesOf(const std::array<real, 9> &matrix) {
    // If the rotation about y is a right angle, the other two turn about one axis, and nearly so around it: the angle
    // about x is what remains after undoing the one about z, however inaccurate that is.
    const real z = std::atan2(matrix[3], matrix[0]);
    const real y = std::atan2(-matrix[6], std::hypot(matrix[0], matrix[3]));
    const real x = std::atan2(std::sin(z) * matrix[2] - std::cos(z) * matrix[5],
                              std::cos(z) * matrix[4] - std::sin(z) * matrix[1]);
    return {x, y, z};
}

/// The centre is kept, so that the inverse of the inverse is the given transform up to round-off, and exactly for one
/// axis.
PeriodicTransform inverseOf(const PeriodicTransform &transform) {
    PeriodicTransform inverse;
    inverse.centre = transform.centre;
    const RigidMotion back = motionOf({{}, transform.angles, {}}).inverse();
    inverse.angles = anglesOf(back.matrix);
    if (std::count(transform.angles.begin(), transform.angles.end(), 0.0) >= 2) // about one axis: to the last bit
        inverse.angles = -1.0 * transform.angles;
    inverse.translation = -1.0 * back.rotate(transform.translation);
    return inverse;
}

} // namespace DNDS::Geom
