#include "DNDS/Geom/Elements/ElementMap.hpp"

#include "DNDS/Geom/Elements/ReferenceElement.hpp"
#include "Geom/Elements/ElementTypes.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace DNDS::Geom {
namespace {

using test::pointsInside;
using test::referenceNodes;
using test::shapedTypes;

/// Turns, shears and stretches: its determinant is 6.5.
Point affine(const Point &p) {
    return {5.0 + 2.0 * p[0] + 0.5 * p[1], -3.0 - 0.5 * p[0] + 1.5 * p[1], 7.0 + p[0] + p[1] + 2.0 * p[2]};
}

/// A smooth bend on top of it.
Point bent(const Point &p) {
    const Point q = affine(p);
    return {q[0] + 0.1 * p[1] * p[1] - 0.05 * p[2], q[1] + 0.08 * p[0] * p[2], q[2] + 0.1 * p[0] * p[0]};
}

template <class Map>
std::vector<Point> mappedNodes(ElementType type, Map &&map) {
    std::vector<Point> nodes = referenceNodes(type);
    for (Point &node : nodes)
        node = map(node);
    return nodes;
}

auto reader(const std::vector<Point> &nodes) {
    return [&nodes](int k) { return nodes[static_cast<std::size_t>(k)]; };
}

TEST(ElementMap, IsAffineForAffineNodes) {
    for (const ElementType type : shapedTypes) {
        SCOPED_TRACE(std::string(elementInfo(type).name));
        const std::vector<Point> nodes = mappedNodes(type, affine);
        for (const Point &at : pointsInside(elementLayout(type).shape, 10)) {
            const MappedPoint mapped = mapPoint(shapeFunctions(type, at), reader(nodes));
            EXPECT_NEAR(norm(mapped.position - affine(at)), 0.0, 1e-13);
            if (mapped.dimension == 3)
                EXPECT_NEAR(mapped.measure(), 6.5, 1e-12);
            else
                EXPECT_NEAR(mapped.measure(), mapped.dimension == 1 ? std::sqrt(5.25) : std::sqrt(16.8125), 1e-12);
            const auto rows = mapped.reciprocals();
            for (int i = 0; i < mapped.dimension; i++)
                for (int k = 0; k < mapped.dimension; k++)
                    EXPECT_NEAR(dot(rows[static_cast<std::size_t>(i)], mapped.tangents[static_cast<std::size_t>(k)]),
                                i == k ? 1.0 : 0.0, 1e-14);
        }
    }
}

TEST(ElementMap, GivesGradientsInSpace) {
    const auto f = [](const Point &p) { return 2.0 * p[0] - p[1] + 0.5 * p[2]; };
    for (const ElementType type : shapedTypes) {
        if (elementInfo(type).dimension != 3)
            continue;
        SCOPED_TRACE(std::string(elementInfo(type).name));
        const std::vector<Point> nodes = mappedNodes(type, bent);
        for (const Point &at : pointsInside(elementLayout(type).shape, 5)) {
            const ShapeFunctions functions = shapeFunctions(type, at);
            const auto rows = mapPoint(functions, reader(nodes)).reciprocals();
            Point gradient{};
            for (std::size_t k = 0; k < nodes.size(); k++)
                gradient = gradient + f(nodes[k]) * gradientInSpace(rows, functions.gradients[k]);
            EXPECT_NEAR(norm(gradient - Point{2.0, -1.0, 0.5}), 0.0, 1e-12);
        }
    }
}

TEST(ElementMap, IsInverted) {
    for (const ElementType type : shapedTypes) {
        SCOPED_TRACE(std::string(elementInfo(type).name));
        const bool straight = elementLayout(type).order == 1;
        const std::vector<Point> nodes = mappedNodes(type, bent);
        for (const Point &at : pointsInside(elementLayout(type).shape, 20)) {
            const Point target = mapPoint(shapeFunctions(type, at), reader(nodes)).position;
            const InverseMap inverse = findReferencePoint(type, reader(nodes), target);
            ASSERT_TRUE(inverse.found());
            EXPECT_NEAR(norm(inverse.reference - at), 0.0, 1e-12);
            EXPECT_LE(inverse.distance, 1e-13);
            EXPECT_LE(inverse.iterations, straight ? 8 : 10);
        }
    }
}

TEST(ElementMap, FindsTheNearestPointOfASurface) {
    const std::vector<Point> nodes = mappedNodes(ElementType::Quad4, affine);
    const MappedPoint mapped = mapPoint(shapeFunctions(ElementType::Quad4, {0.25, -0.5, 0.0}), reader(nodes));
    const Point normal = (1.0 / mapped.measure()) * mapped.areaVector();
    const InverseMap inverse = findReferencePoint(ElementType::Quad4, reader(nodes), mapped.position + 0.3 * normal);
    ASSERT_TRUE(inverse.found());
    EXPECT_NEAR(norm(inverse.reference - Point{0.25, -0.5, 0.0}), 0.0, 1e-12);
    EXPECT_NEAR(inverse.distance, 0.3, 1e-12);
}

TEST(ElementMap, FindsPointsOutside) {
    const std::vector<Point> nodes = mappedNodes(ElementType::Hexa8, affine);
    const InverseMap inverse = findReferencePoint(ElementType::Hexa8, reader(nodes), affine({3.0, 0.0, -1.5}));
    ASSERT_TRUE(inverse.found());
    EXPECT_NEAR(outside(ReferenceShape::Hexahedron, inverse.reference), 2.0, 1e-12);
}

TEST(ElementMap, SaysWhyThereIsNoInverse) {
    const std::vector<Point> flat(8, Point{1.0, 1.0, 1.0});
    EXPECT_EQ(findReferencePoint(ElementType::Hexa8, reader(flat), {0.0, 0.0, 0.0}).status, InverseStatus::Singular);
    // y = x^2 folds back: no point of the segment has the position x = -10.
    const std::vector<Point> folded{{0.0, 0.0, 0.0}, {0.1, 0.0, 0.0}, {1.0, 0.0, 0.0}};
    const InverseMap none = findReferencePoint(ElementType::Bar3, reader(folded), {10.0, 0.0, 0.0});
    EXPECT_EQ(none.status, InverseStatus::NotConverged);
    EXPECT_EQ(none.iterations, 30);
    EXPECT_FALSE(none.found());
}

/// The measure of an element by a rule of some degree.
real measureOf(ElementType type, const std::vector<Point> &nodes, int degree) {
    const Quadrature rule(elementLayout(type).shape, degree);
    const QuadratureView points = rule.view();
    real sum = 0.0;
    for (index q = 0; q < points.size(); q++)
        sum += points.weight(q) * mapPoint(shapeFunctions(type, points.point(q)), reader(nodes)).measure();
    return sum;
}

TEST(ElementMap, HasExactVolumes) {
    for (const ElementType type : shapedTypes) {
        SCOPED_TRACE(std::string(elementInfo(type).name));
        const std::vector<Point> straight = mappedNodes(type, affine);
        const real reference = referenceMeasure(elementLayout(type).shape);
        const int dimension = elementInfo(type).dimension;
        const real factor = dimension == 3 ? 6.5 : dimension == 2 ? std::sqrt(16.8125) : std::sqrt(5.25);
        EXPECT_NEAR(measureOf(type, straight, 1), factor * reference, 1e-12);
        // The volume under a curved element is a polynomial: degree 5 is exact, so higher ones change nothing.
        if (dimension == 3) {
            const std::vector<Point> curved = mappedNodes(type, bent);
            EXPECT_NEAR(measureOf(type, curved, 5), measureOf(type, curved, 10), 1e-12);
        }
    }
    // A quadratic map that second-order elements follow exactly: (x, y, z + x^2) keeps volumes, as does the pyramid's.
    for (const ElementType type : {ElementType::Tetra10, ElementType::Pyra13, ElementType::Pyra14, ElementType::Penta15,
                                   ElementType::Penta18, ElementType::Hexa20, ElementType::Hexa27}) {
        const auto raised = [](const Point &p) { return Point{p[0] + 0.3 * p[1] * p[1], p[1], p[2] + p[0] * p[1]}; };
        const ReferenceShape shape = elementLayout(type).shape;
        EXPECT_NEAR(measureOf(type, mappedNodes(type, raised), 5), referenceMeasure(shape), 1e-13)
            << elementInfo(type).name;
    }
}

} // namespace
} // namespace DNDS::Geom
