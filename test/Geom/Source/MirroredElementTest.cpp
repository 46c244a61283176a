#include "DNDS/Geom/Source/MirroredElement.hpp"

#include "DNDS/Base/Error.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <numeric>
#include <vector>

namespace DNDS::Geom {
namespace {

using Place = std::array<double, 3>;
using Group = std::vector<int>; ///< corners whose mean a node of higher order is at

/// Corners of the type's reference element, then of which corners each further node is the mean (SIDS, section 3.3).
struct Reference {
    ElementType type;
    std::vector<Place> corners;
    std::vector<Group> others;
};

const std::vector<Place> square{{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}};
const std::vector<Place> cube{{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}};

std::vector<Reference> references() {
    const Reference triangle{ElementType::Tri6, {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}}, {{0, 1}, {1, 2}, {2, 0}}};
    const Reference square9{ElementType::Quad9, square, {{0, 1}, {1, 2}, {2, 3}, {3, 0}, {0, 1, 2, 3}}};
    const Reference tetrahedron{ElementType::Tetra10,
                                {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
                                {{0, 1}, {1, 2}, {2, 0}, {0, 3}, {1, 3}, {2, 3}}};
    const Reference pyramid{ElementType::Pyra14,
                            {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {0.4, 0.4, 1}},
                            {{0, 1}, {1, 2}, {2, 3}, {3, 0}, {0, 4}, {1, 4}, {2, 4}, {3, 4}, {0, 1, 2, 3}}};
    const Reference prism{ElementType::Penta18,
                          {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 1}, {0, 1, 1}},
                          {{0, 1},
                           {1, 2},
                           {2, 0},
                           {0, 3},
                           {1, 4},
                           {2, 5},
                           {3, 4},
                           {4, 5},
                           {5, 3},
                           {0, 1, 4, 3},
                           {1, 2, 5, 4},
                           {2, 0, 3, 5}}};
    const Reference hexahedron{ElementType::Hexa27,
                               cube,
                               {{0, 1},
                                {1, 2},
                                {2, 3},
                                {3, 0},
                                {0, 4},
                                {1, 5},
                                {2, 6},
                                {3, 7},
                                {4, 5},
                                {5, 6},
                                {6, 7},
                                {7, 4},
                                {0, 1, 2, 3},
                                {0, 1, 5, 4},
                                {1, 2, 6, 5},
                                {2, 3, 7, 6},
                                {0, 3, 7, 4},
                                {4, 5, 6, 7},
                                {0, 1, 2, 3, 4, 5, 6, 7}}};
    std::vector<Reference> all{triangle, square9, tetrahedron, pyramid, prism, hexahedron};
    const auto add = [&](const Reference &largest, std::initializer_list<ElementType> types) {
        for (const ElementType type : types) {
            Reference smaller = largest;
            smaller.type = type;
            smaller.others.resize(static_cast<std::size_t>(elementInfo(type).nodes - elementInfo(type).corners));
            all.push_back(smaller);
        }
    };
    add(triangle, {ElementType::Tri3});
    add(square9, {ElementType::Quad4, ElementType::Quad8});
    add(tetrahedron, {ElementType::Tetra4});
    add(pyramid, {ElementType::Pyra5, ElementType::Pyra13});
    add(prism, {ElementType::Penta6, ElementType::Penta15});
    add(hexahedron, {ElementType::Hexa8, ElementType::Hexa20});
    return all;
}

TEST(MirroredElement, KeepsNodesOfHigherOrderBetweenTheirCorners) {
    for (const Reference &reference : references()) {
        SCOPED_TRACE(std::string(elementInfo(reference.type).name));
        std::vector<Place> places = reference.corners;
        const auto mean = [&](const auto &cornerOf, const Group &group) {
            Place sum{};
            for (const int corner : group)
                for (std::size_t d = 0; d < 3; d++)
                    sum[d] += cornerOf(static_cast<std::size_t>(corner))[d] / static_cast<double>(group.size());
            return sum;
        };
        for (const Group &group : reference.others)
            places.push_back(mean([&](std::size_t k) { return reference.corners[k]; }, group));
        std::vector<index> nodes(places.size());
        std::iota(nodes.begin(), nodes.end(), index{0});
        const std::vector<index> original = nodes;
        mirrorElement(reference.type, nodes);
        EXPECT_NE(nodes, original);
        for (std::size_t k = 0; k < reference.others.size(); k++) {
            const Place expected =
                mean([&](std::size_t c) { return places[static_cast<std::size_t>(nodes[c])]; }, reference.others[k]);
            const Place found = places[static_cast<std::size_t>(nodes[reference.corners.size() + k])];
            for (std::size_t d = 0; d < 3; d++)
                EXPECT_NEAR(found[d], expected[d], 1e-14) << "node " << k;
        }
        // The first face (or the element) is passed the other way round.
        mirrorElement(reference.type, nodes);
        EXPECT_EQ(nodes, original);
    }
}

TEST(MirroredElement, TurnsPolygonsAndFacesOfPolyhedra) {
    std::vector<index> polygon{4, 7, 9, 1, 2};
    mirrorElement(ElementType::Polygon, polygon);
    EXPECT_EQ(polygon, (std::vector<index>{4, 2, 1, 9, 7}));
    std::vector<index> polyhedron{3, 0, 1, 2, 4, 5, 6, 7, 8};
    mirrorElement(ElementType::Polyhedron, polyhedron);
    EXPECT_EQ(polyhedron, (std::vector<index>{3, 0, 2, 1, 4, 5, 8, 7, 6}));
    std::vector<index> bar{0, 1};
    EXPECT_THROW(mirrorElement(ElementType::Bar2, bar), ArgumentError);
}

} // namespace
} // namespace DNDS::Geom
