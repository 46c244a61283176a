#include "DNDS/Geom/Elements/ElementMap.hpp"

#include "Geom/Elements/ElementTypes.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace DNDS::Geom {
namespace {

using test::pointsInside;
using test::referenceNodes;
using test::shapedTypes;

TEST(ReferenceElement, AgreesWithTheTableOfTypes) {
    for (const ElementType type : shapedTypes) {
        const ElementInfo &info = elementInfo(type);
        SCOPED_TRACE(std::string(info.name));
        const ElementLayout layout = elementLayout(type);
        const ReferenceTable &table = referenceTable(layout.shape);
        EXPECT_EQ(layout.nodes, info.nodes);
        EXPECT_EQ(table.dimension, info.dimension);
        EXPECT_EQ(table.corners, info.corners);
        for (const Point &node : referenceNodes(type))
            EXPECT_LE(outside(layout.shape, node), 0.0);
        // Quadrilaterals are those of the table of types, in its order.
        int quads = 0;
        for (const ElementFace &face : info.faces)
            if (face.corners == 4) {
                for (std::size_t k = 0; k < 4; k++)
                    EXPECT_EQ(table.quad[quads][k], face.corner[k]);
                quads++;
            }
        EXPECT_EQ(info.dimension == 2 ? 0 : table.quads, quads);
        for (int q = 0; q < table.quads; q++)
            for (int k = 0; k < 4; k++) { // edge 4 + k joins corners k and k + 1
                const auto &edge = table.edge[table.quad[q][4 + k]];
                const int a = table.quad[q][k];
                const int b = table.quad[q][(k + 1) % 4];
                EXPECT_TRUE((edge[0] == a && edge[1] == b) || (edge[0] == b && edge[1] == a));
            }
    }
    EXPECT_EQ(elementLayout(ElementType::Polygon).nodes, 0);
    EXPECT_EQ(elementLayout(ElementType::Polyhedron).nodes, 0);
    EXPECT_EQ(elementLayout(ElementType::Mixed).nodes, 0);
}

TEST(ShapeFunctions, AreOneAtTheirNodeAndZeroAtTheOthers) {
    for (const ElementType type : shapedTypes) {
        SCOPED_TRACE(std::string(elementInfo(type).name));
        const std::vector<Point> nodes = referenceNodes(type);
        for (std::size_t i = 0; i < nodes.size(); i++) {
            const ShapeFunctions functions = shapeFunctions(type, nodes[i]);
            ASSERT_EQ(functions.nodes, static_cast<int>(nodes.size()));
            for (std::size_t k = 0; k < nodes.size(); k++)
                EXPECT_NEAR(functions.values[k], i == k ? 1.0 : 0.0, 1e-15) << "function " << k << " at node " << i;
        }
    }
}

TEST(ShapeFunctions, AddUpToOne) {
    for (const ElementType type : shapedTypes) {
        SCOPED_TRACE(std::string(elementInfo(type).name));
        for (const Point &at : pointsInside(elementLayout(type).shape, 20)) {
            const ShapeFunctions functions = shapeFunctions(type, at);
            real sum = 0.0;
            Point gradient{};
            for (std::size_t k = 0; k < static_cast<std::size_t>(functions.nodes); k++) {
                sum += functions.values[k];
                gradient = gradient + functions.gradients[k];
            }
            EXPECT_NEAR(sum, 1.0, 1e-14);
            EXPECT_NEAR(norm(gradient), 0.0, 1e-13);
        }
    }
}

TEST(ShapeFunctions, HaveTheGradientsOfDifferences) {
    constexpr real h = 1e-5;
    for (const ElementType type : shapedTypes) {
        SCOPED_TRACE(std::string(elementInfo(type).name));
        for (const Point &at : pointsInside(elementLayout(type).shape, 10)) {
            const ShapeFunctions functions = shapeFunctions(type, at);
            for (std::size_t d = 0; d < 3; d++) {
                Point before = at;
                Point after = at;
                before[d] -= h;
                after[d] += h;
                const bool used = static_cast<int>(d) < functions.dimension;
                const ShapeFunctions low = shapeFunctions(type, before);
                const ShapeFunctions high = shapeFunctions(type, after);
                for (std::size_t k = 0; k < static_cast<std::size_t>(functions.nodes); k++)
                    EXPECT_NEAR(functions.gradients[k][d], used ? (high.values[k] - low.values[k]) / (2.0 * h) : 0.0,
                                1e-7)
                        << "function " << k << ", derivative " << d;
            }
        }
    }
}

TEST(ShapeFunctions, ReproducePolynomialsOfTheirOrder) {
    for (const ElementType type : shapedTypes) {
        SCOPED_TRACE(std::string(elementInfo(type).name));
        const ElementLayout layout = elementLayout(type);
        const auto f = [&](const Point &p) {
            const real linear = 2.0 - p[0] + 0.5 * p[1] + 3.0 * p[2];
            return layout.order == 1 ? linear : linear * (1.0 + 0.25 * p[0] - p[1] + 0.5 * p[2]);
        };
        const std::vector<Point> nodes = referenceNodes(type);
        for (const Point &at : pointsInside(layout.shape, 20)) {
            const ShapeFunctions functions = shapeFunctions(type, at);
            real sum = 0.0;
            for (std::size_t k = 0; k < nodes.size(); k++)
                sum += functions.values[k] * f(nodes[k]);
            EXPECT_NEAR(sum, f(at), 1e-13);
        }
    }
}

TEST(ShapeFunctions, OfPyramidsAreFiniteAtTheApex) {
    for (const ElementType type : {ElementType::Pyra5, ElementType::Pyra13, ElementType::Pyra14}) {
        const ShapeFunctions apex = shapeFunctions(type, {0.0, 0.0, 1.0});
        const ShapeFunctions below = shapeFunctions(type, {0.0, 0.0, 1.0 - 1e-9});
        for (std::size_t k = 0; k < static_cast<std::size_t>(apex.nodes); k++) {
            EXPECT_NEAR(apex.values[k], below.values[k], 1e-8);
            EXPECT_NEAR(norm(apex.gradients[k] - below.gradients[k]), 0.0, 1e-7);
        }
    }
}

} // namespace
} // namespace DNDS::Geom
