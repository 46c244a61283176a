#include "DNDS/Geom/Elements/ReferenceElement.hpp"

#include "DNDS/Base/Error.hpp"

#include <cmath>
#include <numbers>
#include <vector>

namespace DNDS::Geom {

namespace {

struct LinePoint {
    real at; ///< in [-1, 1]
    real weight;
};

/// The Jacobi polynomial P_n^(alpha, 0) and its derivative, by the recurrence in n.
/// O(n). The derivative follows from differentiating the recurrence, so no division by 1 - x^2 is needed near the
/// ends.
LinePoint jacobi(int n, real alpha, real x) {
    real before = 0.0;
    real value = 1.0;
    real slopeBefore = 0.0;
    real slope = 0.0;
    for (int k = 0; k < n; k++) {
        // a P_{k+1} = (b + c x) P_k - d P_{k-1}
        const real s = 2.0 * k + alpha;
        const real a = 2.0 * (k + 1.0) * (k + alpha + 1.0) * s;
        const real b = (s + 1.0) * alpha * alpha;
        const real c = s * (s + 1.0) * (s + 2.0);
        const real d = 2.0 * (k + alpha) * k * (s + 2.0);
        // The first step has 0 / 0 for alpha = 0.
        const real next = k == 0 ? 0.5 * (alpha + (alpha + 2.0) * x) : ((b + c * x) * value - d * before) / a;
        const real slopeNext = k == 0 ? 0.5 * (alpha + 2.0) : ((b + c * x) * slope + c * value - d * slopeBefore) / a;
        before = value;
        value = next;
        slopeBefore = slope;
        slope = slopeNext;
    }
    return {value, slope};
}

/// Gauss-Jacobi rule for the mean of f with the weight (1 - x)^alpha over [-1, 1]. Zeros found before are divided out
/// of the polynomial, so that Newton's method finds each once.
/// O(n^2) for n points, n at most 6. Weights by the formula with the derivative at the zeros.
/// The starting points are Chebyshev nodes, ascending; deflation keeps Newton's method from returning to a zero it
/// has found.
std::vector<LinePoint> gaussJacobi(int n, real alpha) {
    std::vector<LinePoint> points;
    for (int k = 0; k < n; k++) {
        real x = -std::cos((2.0 * k + 1.0) / (2.0 * n) * std::numbers::pi);
        real step = 1.0;
        for (int iteration = 0; iteration < 50 && std::fabs(step) > 1e-16; iteration++) {
            real divided = 0.0;
            for (const LinePoint &point : points)
                divided += 1.0 / (x - point.at);
            const auto [value, slope] = jacobi(n, alpha, x);
            step = value / (slope - divided * value);
            x -= step;
        }
        const real slope = jacobi(n, alpha, x).weight;
        points.push_back({x, (alpha + 1.0) / ((1.0 - x * x) * slope * slope)});
    }
    return points;
}

/// Points of the product of three rules, of those in fewer dimensions with one point.
template <class Place>
void product(const std::vector<LinePoint> &inX, const std::vector<LinePoint> &inY, const std::vector<LinePoint> &inZ,
             real measure, std::vector<std::array<real, 4>> &rows, Place &&place) {
    for (const LinePoint &z : inZ)
        for (const LinePoint &y : inY)
            for (const LinePoint &x : inX) {
                const Point at = place(x.at, y.at, z.at);
                rows.push_back({at[0], at[1], at[2], measure * x.weight * y.weight * z.weight});
            }
}

/// The symmetric rule with the point nearest to each corner: all barycentric coordinates `small` but one.
/// Equal weights; `small` is fixed by exactness for degree 2.
void cornerRule(ReferenceShape shape, real small, std::vector<std::array<real, 4>> &rows) {
    const int corners = referenceTable(shape).corners;
    for (int k = 0; k < corners; k++) {
        std::array<real, 4> row{small, small, corners == 4 ? small : 0.0, referenceMeasure(shape) / corners};
        if (k > 0)
            row[static_cast<std::size_t>(k - 1)] = 1.0 - (corners - 1) * small;
        rows.push_back(row);
    }
}

/// Collapsed coordinates: the Jacobian (1 - y) of a triangle, or (1 - z)^2 of a cone, is the weight of the
/// Gauss-Jacobi rule, so that polynomials stay polynomials.
/// n^d points in d dimensions for n = degree / 2 + 1: an n-point Gauss rule is exact up to degree 2n - 1.
std::vector<std::array<real, 4>> rowsOf(ReferenceShape shape, int degree) {
    std::vector<std::array<real, 4>> rows;
    if (degree == 2 && (shape == ReferenceShape::Triangle || shape == ReferenceShape::Tetrahedron)) {
        cornerRule(shape, shape == ReferenceShape::Triangle ? 1.0 / 6.0 : (5.0 - std::sqrt(5.0)) / 20.0, rows);
        return rows;
    }
    const int n = degree / 2 + 1;
    const std::vector<LinePoint> one{{0.0, 1.0}};
    const std::vector<LinePoint> line = gaussJacobi(n, 0.0);
    const std::vector<LinePoint> once = gaussJacobi(n, 1.0);  // with the weight of a triangle's collapsed side
    const std::vector<LinePoint> twice = gaussJacobi(n, 2.0); // with that of a cone
    const real measure = referenceMeasure(shape);
    const auto toUnit = [](real x) { return 0.5 * (1.0 + x); };
    switch (shape) {
    case ReferenceShape::Vertex:
        rows.push_back({0.0, 0.0, 0.0, 1.0});
        break;
    case ReferenceShape::Segment:
        product(line, one, one, measure, rows, [](real x, real, real) { return Point{x, 0.0, 0.0}; });
        break;
    case ReferenceShape::Quadrilateral:
        product(line, line, one, measure, rows, [](real x, real y, real) { return Point{x, y, 0.0}; });
        break;
    case ReferenceShape::Hexahedron:
        product(line, line, line, measure, rows, [](real x, real y, real z) { return Point{x, y, z}; });
        break;
    case ReferenceShape::Triangle:
    case ReferenceShape::Prism: {
        const bool flat = shape == ReferenceShape::Triangle;
        product(line, once, flat ? one : line, measure, rows, [&](real x, real y, real z) {
            const real v = toUnit(y);
            return Point{toUnit(x) * (1.0 - v), v, flat ? 0.0 : z};
        });
        break;
    }
    case ReferenceShape::Tetrahedron:
        product(line, once, twice, measure, rows, [&](real x, real y, real z) {
            const real w = toUnit(z);
            const real v = toUnit(y) * (1.0 - w);
            return Point{toUnit(x) * (1.0 - v - w), v, w};
        });
        break;
    case ReferenceShape::Pyramid:
        product(line, line, twice, measure, rows, [&](real x, real y, real z) {
            const real w = toUnit(z);
            return Point{x * (1.0 - w), y * (1.0 - w), w};
        });
        break;
    }
    return rows;
}

} // namespace

Quadrature::Quadrature(ReferenceShape shape, int degree) : shape_(shape), degree_(degree) {
    DNDS_CHECK(degree >= 0 && degree <= maxQuadratureDegree, ArgumentError,
               "quadrature has degrees from 0 to {}, not {}", maxQuadratureDegree, degree);
    const std::vector<std::array<real, 4>> rows = rowsOf(shape, degree);
    rows_.setName("quadrature");
    rows_.resize(static_cast<index>(rows.size()));
    const auto view = rows_.view();
    for (index q = 0; q < view.size(); q++)
        for (rowsize k = 0; k < 4; k++)
            view(q, k) = rows[toSize(q)][static_cast<std::size_t>(k)];
}

QuadratureSet::QuadratureSet(int degree) {
    for (std::size_t shape = 0; shape < referenceShapeCount; shape++)
        rules_.emplace_back(static_cast<ReferenceShape>(shape), degree);
}

} // namespace DNDS::Geom
