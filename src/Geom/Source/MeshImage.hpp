/// @file MeshImage.hpp
/// @brief Rigid motions, and the images of a mesh that periodic connections make.
#pragma once

#include "DNDS/Geom/Source/Point.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"

#include <array>
#include <compare>
#include <vector>

namespace DNDS::Geom {

/// x -> matrix x + shift, the matrix a rotation, its rows one after the other.
/// Motions form a group: images of images are products, and the motion back is the transpose.
struct RigidMotion {
    std::array<real, 9> matrix{1, 0, 0, 0, 1, 0, 0, 0, 1};
    Point shift{};

    /// The image of the point: matrix x + shift.
    Point operator()(const Point &x) const;
    /// Rotates a vector, such as a velocity.
    Point rotate(const Point &v) const;
    /// The motion back; and the motion that is `before` first, then `after`.
    RigidMotion inverse() const;
    friend RigidMotion operator*(const RigidMotion &after, const RigidMotion &before);
};

/// The motion from the first side of a connection to the second. Local.
RigidMotion motionOf(const PeriodicTransform &transform);

/// The angles about x, then y, then z of a rotation matrix; accurate to the last digits even if the second is near a
/// right angle, where the others are not determined one by one. Local.
std::array<real, 3> anglesOf(const std::array<real, 9> &matrix);

/// From the second side to the first. Local.
PeriodicTransform inverseOf(const PeriodicTransform &transform);

/// An image of the mesh: the mesh moved by `motion`, the product of its steps.
struct MeshImage {
    struct Steps {
        int connection; ///< index in SourceMesh::periodic; the first connection with the same motion
        int times;      ///< number of times that its motion is applied; negative: the inverse
        friend auto operator<=>(const Steps &, const Steps &) = default; // NOLINT(modernize-use-nullptr): false alarm
    };
    std::vector<Steps> steps; ///< ascending connections, none 0 times; empty: the mesh itself
    RigidMotion motion;
};

} // namespace DNDS::Geom
