#include "DNDS/Geom/Elements/ReferenceElement.hpp"

#include "DNDS/Base/Error.hpp"
#include "Geom/Elements/ElementTypes.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace DNDS::Geom {
namespace {

using test::referenceShapes;

/// The integral of x^i over [-1, 1].
real line(int i) { return i % 2 == 1 ? 0.0 : 2.0 / (i + 1); }

/// The integral of x^i y^j z^k over a simplex: i! j! k! / (i + j + k + dimension)!.
real simplex(int i, int j, int k, int dimension) {
    return std::tgamma(i + 1) * std::tgamma(j + 1) * std::tgamma(k + 1) / std::tgamma(i + j + k + dimension + 1);
}

real exactIntegral(ReferenceShape shape, int i, int j, int k) {
    switch (shape) {
    case ReferenceShape::Segment:
        return line(i);
    case ReferenceShape::Quadrilateral:
        return line(i) * line(j);
    case ReferenceShape::Hexahedron:
        return line(i) * line(j) * line(k);
    case ReferenceShape::Triangle:
        return simplex(i, j, 0, 2);
    case ReferenceShape::Tetrahedron:
        return simplex(i, j, k, 3);
    case ReferenceShape::Prism:
        return simplex(i, j, 0, 2) * line(k);
    default: // the section at height z is [-w, w]^2, w = 1 - z: a beta integral
        return line(i) * line(j) * std::tgamma(k + 1) * std::tgamma(i + j + 3) / std::tgamma(i + j + k + 4);
    }
}

TEST(Quadrature, IsExactToItsDegree) {
    for (const ReferenceShape shape : referenceShapes)
        for (int degree = 0; degree <= maxQuadratureDegree; degree++) {
            SCOPED_TRACE(testing::Message() << "shape " << static_cast<int>(shape) << ", degree " << degree);
            const Quadrature rule(shape, degree);
            const QuadratureView points = rule.view();
            const int dimension = referenceTable(shape).dimension;
            real worst = 0.0;
            for (int i = 0; i <= degree; i++)
                for (int j = 0; i + j <= (dimension > 1 ? degree : i); j++)
                    for (int k = 0; i + j + k <= (dimension > 2 ? degree : i + j); k++) {
                        real sum = 0.0;
                        for (index q = 0; q < points.size(); q++) {
                            const Point at = points.point(q);
                            sum += points.weight(q) * std::pow(at[0], i) * std::pow(at[1], j) * std::pow(at[2], k);
                        }
                        worst = std::max(worst, std::fabs(sum - exactIntegral(shape, i, j, k)));
                    }
            EXPECT_LE(worst, 2e-15 * referenceMeasure(shape));
        }
}

TEST(Quadrature, HasPositiveWeightsAndPointsInside) {
    for (const ReferenceShape shape : referenceShapes)
        for (int degree = 0; degree <= maxQuadratureDegree; degree++) {
            const Quadrature rule(shape, degree);
            EXPECT_EQ(rule.shape(), shape);
            EXPECT_EQ(rule.degree(), degree);
            const QuadratureView points = rule.view();
            EXPECT_EQ(rule.size(), points.size());
            real sum = 0.0;
            for (index q = 0; q < points.size(); q++) {
                EXPECT_GT(points.weight(q), 0.0);
                const Point at = points.point(q);
                EXPECT_LT(outside(shape, at), -1e-4);
                for (int d = referenceTable(shape).dimension; d < 3; d++)
                    EXPECT_EQ(at[static_cast<std::size_t>(d)], 0.0);
                sum += points.weight(q);
            }
            EXPECT_NEAR(sum, referenceMeasure(shape), 4e-15 * referenceMeasure(shape));
        }
}

TEST(Quadrature, NeedsFewPointsForLowDegrees) {
    for (const ReferenceShape shape : referenceShapes)
        EXPECT_EQ(Quadrature(shape, 1).size(), 1);
    EXPECT_EQ(Quadrature(ReferenceShape::Triangle, 2).size(), 3);
    EXPECT_EQ(Quadrature(ReferenceShape::Tetrahedron, 2).size(), 4);
    EXPECT_EQ(Quadrature(ReferenceShape::Hexahedron, 3).size(), 8);
    EXPECT_EQ(Quadrature(ReferenceShape::Vertex, 10).size(), 1);
}

TEST(Quadrature, RefusesOtherDegrees) {
    EXPECT_THROW(Quadrature(ReferenceShape::Prism, maxQuadratureDegree + 1), ArgumentError);
    EXPECT_THROW(Quadrature(ReferenceShape::Prism, -1), ArgumentError);
}

} // namespace
} // namespace DNDS::Geom
