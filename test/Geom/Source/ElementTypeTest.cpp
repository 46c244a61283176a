#include "DNDS/Geom/Source/ElementType.hpp"

#include "DNDS/Base/Error.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace DNDS::Geom {
namespace {

using Point = std::array<double, 3>;

/// The corners of a type where the standard draws them.
std::vector<Point> corners(ElementType type) {
    switch (type) {
    case ElementType::Tri3:
        return {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}};
    case ElementType::Quad4:
        return {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}};
    case ElementType::Tetra4:
        return {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    case ElementType::Pyra5:
        return {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {0.5, 0.5, 1}};
    case ElementType::Penta6:
        return {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 1}, {0, 1, 1}};
    case ElementType::Hexa8:
        return {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}};
    default:
        return {};
    }
}

Point minus(const Point &a, const Point &b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
Point cross(const Point &a, const Point &b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
double dot(const Point &a, const Point &b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

const std::array linearTypes{ElementType::Tri3,  ElementType::Quad4,  ElementType::Tetra4,
                             ElementType::Pyra5, ElementType::Penta6, ElementType::Hexa8};

TEST(ElementTypeTest, FacesLookOutwards) {
    for (const ElementType type : linearTypes) {
        const ElementInfo &info = elementInfo(type);
        SCOPED_TRACE(std::string(info.name));
        const std::vector<Point> at = corners(type);
        ASSERT_EQ(static_cast<int>(at.size()), info.nodes);
        Point center{0, 0, 0};
        for (const Point &p : at)
            for (std::size_t k = 0; k < 3; k++)
                center[k] += p[k] / info.nodes;
        for (const ElementFace &face : info.faces) {
            const Point &a = at[face.corner[0]];
            const Point along = minus(at[face.corner[1]], a);
            const Point normal =
                info.dimension == 2 ? Point{along[1], -along[0], 0.0} : cross(along, minus(at[face.corner[2]], a));
            EXPECT_GT(dot(normal, minus(a, center)), 0.0);
            if (face.corners == 4) { // planar, and in order around the face
                EXPECT_DOUBLE_EQ(dot(normal, minus(at[face.corner[3]], a)), 0.0);
                const Point second = cross(minus(at[face.corner[2]], a), minus(at[face.corner[3]], a));
                EXPECT_GT(dot(normal, second), 0.0);
            }
        }
    }
}

TEST(ElementTypeTest, FacesCloseTheCell) {
    for (const ElementType type : linearTypes) {
        const ElementInfo &info = elementInfo(type);
        SCOPED_TRACE(std::string(info.name));
        std::map<std::pair<int, int>, int> edges; // of faces; in two dimensions, corners as edges without length
        for (const ElementFace &face : info.faces)
            if (info.dimension == 2) {
                edges[{face.corner[0], -1}]++;
                edges[{-1, face.corner[1]}]++;
            } else {
                for (int k = 0; k < face.corners; k++)
                    edges[{face.corner[static_cast<std::size_t>(k)],
                           face.corner[static_cast<std::size_t>((k + 1) % face.corners)]}]++;
            }
        for (const auto &[edge, count] : edges) {
            EXPECT_EQ(count, 1);
            EXPECT_EQ(edges.count({edge.second, edge.first}), 1U);
        }
        const auto count = static_cast<int>(edges.size()) / 2;
        EXPECT_EQ(info.nodes - count + (info.dimension == 2 ? 0 : static_cast<int>(info.faces.size())),
                  info.dimension == 2 ? 0 : 2);
    }
}

TEST(ElementTypeTest, RefusesUnknownTypes) { EXPECT_THROW(elementInfo(static_cast<ElementType>(99)), ArgumentError); }

} // namespace
} // namespace DNDS::Geom
