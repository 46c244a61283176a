#include "DNDS/Geom/Elements/ReferenceElement.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Geom/Elements/ElementMap.hpp"
#include "Geom/Elements/ElementTypes.hpp"

#include <gtest/gtest.h>

#include <string>

namespace DNDS::Geom {
namespace {

using test::pointsInside;
using test::referenceNodes;
using test::shapedTypes;

/// The nodes of `part` in the reference shape of `type`.
std::vector<Point> nodesOf(ElementType type, const SubElement &part) {
    std::vector<Point> nodes;
    for (const int k : part.nodes())
        nodes.push_back(referenceNode(elementLayout(type).shape, k));
    return nodes;
}

TEST(SubElements, FacesLookOutwardsWithAllTheirNodes) {
    for (const ElementType type : shapedTypes) {
        const ElementInfo &info = elementInfo(type);
        SCOPED_TRACE(std::string(info.name));
        const ReferenceShape shape = elementLayout(type).shape;
        for (int f = 0; f < static_cast<int>(info.faces.size()); f++) {
            const SubElement face = faceOf(type, f);
            EXPECT_EQ(elementInfo(face.type).dimension, info.dimension - 1);
            const std::vector<Point> nodes = nodesOf(type, face);
            // As many nodes as the element has on the boundary there.
            const Point middle = inElement(type, face, referenceCentre(elementLayout(face.type).shape));
            if (info.dimension == 1) {
                EXPECT_EQ(middle, nodes[0]);
                continue;
            }
            for (const Point &at : pointsInside(elementLayout(face.type).shape, 4)) {
                const MappedPoint mapped =
                    mapPoint(shapeFunctions(face.type, at), [&](int k) { return nodes[static_cast<std::size_t>(k)]; });
                const Point normal =
                    info.dimension == 3 ? mapped.areaVector() : cross(mapped.tangents[0], {0.0, 0.0, 1.0});
                EXPECT_GT(outside(shape, mapped.position + 0.01 * normal), 0.001);
                EXPECT_LT(outside(shape, mapped.position + (-0.01) * normal), -0.0005);
                EXPECT_NEAR(norm(mapped.position - inElement(type, face, at)), 0.0, 1e-15);
                // Functions of the element are those of the face there, and 0 for all other nodes.
                const ShapeFunctions whole = shapeFunctions(type, mapped.position);
                const ShapeFunctions part = shapeFunctions(face.type, at);
                std::array<real, maxElementNodes> expected{};
                for (std::size_t k = 0; k < nodes.size(); k++)
                    expected[face.node[k]] = part.values[k];
                for (std::size_t k = 0; k < static_cast<std::size_t>(whole.nodes); k++)
                    EXPECT_NEAR(whole.values[k], expected[k], 1e-14) << "face " << f << ", node " << k;
            }
        }
    }
}

TEST(SubElements, EdgesHaveTheirMidNode) {
    for (const ElementType type : shapedTypes) {
        SCOPED_TRACE(std::string(elementInfo(type).name));
        for (int e = 0; e < edgeCount(type); e++) {
            const SubElement edge = edgeOf(type, e);
            const std::vector<Point> nodes = nodesOf(type, edge);
            if (elementLayout(type).order == 1) {
                EXPECT_EQ(edge.type, ElementType::Bar2);
                continue;
            }
            ASSERT_EQ(edge.type, ElementType::Bar3);
            EXPECT_EQ(edge.node[2], elementInfo(type).corners + e);
            EXPECT_NEAR(norm(nodes[2] - 0.5 * (nodes[0] + nodes[1])), 0.0, 1e-15);
        }
    }
}

TEST(SubElements, HaveTheTypesOfTheStandard) {
    EXPECT_EQ(faceOf(ElementType::Hexa27, 5).type, ElementType::Quad9);
    EXPECT_EQ(faceOf(ElementType::Hexa20, 5).type, ElementType::Quad8);
    EXPECT_EQ(faceOf(ElementType::Penta18, 0).type, ElementType::Quad9);
    EXPECT_EQ(faceOf(ElementType::Penta18, 4).type, ElementType::Tri6);
    EXPECT_EQ(faceOf(ElementType::Penta15, 0).type, ElementType::Quad8);
    EXPECT_EQ(faceOf(ElementType::Pyra14, 0).type, ElementType::Quad9);
    EXPECT_EQ(faceOf(ElementType::Pyra13, 0).type, ElementType::Quad8);
    EXPECT_EQ(faceOf(ElementType::Tri6, 0).type, ElementType::Bar3);
    // SIDS, HEXA_27, face 6: nodes 5 to 8, 17 to 20, 26, counted from 1.
    const SubElement top = faceOf(ElementType::Hexa27, 5);
    EXPECT_EQ(std::vector<int>(top.nodes().begin(), top.nodes().end()),
              (std::vector<int>{4, 5, 6, 7, 16, 17, 18, 19, 25}));
}

TEST(SubElements, RefuseWhatDoesNotExist) {
    EXPECT_THROW(faceOf(ElementType::Tri6, 3), ArgumentError);
    EXPECT_THROW(edgeOf(ElementType::Tri6, -1), ArgumentError);
    EXPECT_THROW(faceOf(ElementType::Polyhedron, 0), ArgumentError);
}

} // namespace
} // namespace DNDS::Geom
