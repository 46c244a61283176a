/// @file Quadrature.hpp
/// @brief Quadrature on the reference shapes.
#pragma once

#include "DNDS/Geom/Elements/ReferenceElement.hpp"
#include "DNDS/Storage/Array.hpp"

#include <array>
#include <type_traits>
#include <vector>

namespace DNDS::Geom {

/// Points and weights of a rule, for kernels: points into a Quadrature, which must outlive it.
struct QuadratureView {
    ArrayView<const real, 4> rows; ///< [points] reference coordinates, weight

    /// The number of points; point and weight `q`. In kernels, too.
    DNDS_HOST_DEVICE index size() const { return rows.size(); }
    DNDS_HOST_DEVICE Point point(index q) const { return {rows(q, 0), rows(q, 1), rows(q, 2)}; }
    DNDS_HOST_DEVICE real weight(index q) const { return rows(q, 3); }
};
static_assert(std::is_trivially_copyable_v<QuadratureView>);

/// The highest degree of a rule that `Quadrature` makes.
inline constexpr int maxQuadratureDegree = 10;

/// A quadrature rule: sum of weight(q) * f(point(q)) is the integral of f over the reference shape, exact for
/// polynomials up to `degree`. All weights are positive, all points inside; weights add up to `referenceMeasure`.
///
///     const Quadrature rule(ReferenceShape::Hexahedron, 3);
///     const QuadratureView points = rule.view();
///     for (index q = 0; q < points.size(); q++)
///         integral += points.weight(q) * f(points.point(q));
///
/// Products of Gauss rules with n = degree / 2 + 1 points in each direction, computed once by Newton's method; in
/// triangles, tetrahedra and pyramids of Gauss-Jacobi rules in collapsed coordinates (Karniadakis and Sherwin,
/// Spectral/hp Element Methods, 2005, section 4.1 and appendix B). Those are exact for the functions of pyramids, too.
/// Degree 2 in triangles and tetrahedra: the symmetric rules of 3 and 4 points (Hammer and Stroud, 1956).
class Quadrature {
  public:
    /// Local. Throws ArgumentError for degrees that are not in 0 to `maxQuadratureDegree`.
    Quadrature(ReferenceShape shape, int degree);

    /// As asked for, and the number of points. Local.
    ReferenceShape shape() const noexcept { return shape_; }
    int degree() const noexcept { return degree_; }
    index size() const noexcept { return rows_.size(); }

    /// The view of the memory of `backend`. Local, O(1). Throws StaleError for a device without `toDevice()` before.
    template <DeviceBackend backend = DeviceBackend::Host>
    QuadratureView view() const {
        return {rows_.template deviceView<backend>()};
    }

    /// Copies the rule to the device. Local; waits. Throws NotBuiltError, MemoryError.
    void toDevice() { rows_.toDevice(); }

  private:
    ReferenceShape shape_;
    int degree_;
    Array<real, 4> rows_;
};

/// Rules of one degree on all shapes, for kernels: points into a QuadratureSet, which must outlive it.
struct QuadratureSetView {
    std::array<QuadratureView, referenceShapeCount> rules; ///< indexed by ReferenceShape

    /// The rule of a shape. In kernels, too.
    DNDS_HOST_DEVICE const QuadratureView &operator[](ReferenceShape shape) const {
        return rules[static_cast<std::size_t>(shape)];
    }
};
static_assert(std::is_trivially_copyable_v<QuadratureSetView>);

/// Rules of one degree on all shapes, for meshes of several types: `view()[elementLayout(type).shape]`.
class QuadratureSet {
  public:
    /// Local. Throws as Quadrature.
    explicit QuadratureSet(int degree);

    /// As of Quadrature. Local.
    template <DeviceBackend backend = DeviceBackend::Host>
    QuadratureSetView view() const {
        QuadratureSetView view;
        for (std::size_t i = 0; i < rules_.size(); i++)
            view.rules[i] = rules_[i].template view<backend>();
        return view;
    }
    void toDevice() {
        for (Quadrature &rule : rules_)
            rule.toDevice();
    }

  private:
    std::vector<Quadrature> rules_; ///< [referenceShapeCount]
};

} // namespace DNDS::Geom
