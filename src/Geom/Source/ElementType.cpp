#include "DNDS/Geom/Source/ElementType.hpp"

#include "DNDS/Base/Error.hpp"

namespace DNDS::Geom {

namespace {

// Faces in the order and with the corners of the SIDS, section 3.3, from 0 instead of 1. Face normals point outward.
constexpr ElementFace barFaces[] = {{1, {0}}, {1, {1}}};
constexpr ElementFace triangleFaces[] = {{2, {0, 1}}, {2, {1, 2}}, {2, {2, 0}}};
constexpr ElementFace quadrilateralFaces[] = {{2, {0, 1}}, {2, {1, 2}}, {2, {2, 3}}, {2, {3, 0}}};
constexpr ElementFace tetrahedronFaces[] = {{3, {0, 2, 1}}, {3, {0, 1, 3}}, {3, {1, 2, 3}}, {3, {2, 0, 3}}};
constexpr ElementFace pyramidFaces[] = {
    {4, {0, 3, 2, 1}}, {3, {0, 1, 4}}, {3, {1, 2, 4}}, {3, {2, 3, 4}}, {3, {3, 0, 4}}};
constexpr ElementFace prismFaces[] = {
    {4, {0, 1, 4, 3}}, {4, {1, 2, 5, 4}}, {4, {2, 0, 3, 5}}, {3, {0, 2, 1}}, {3, {3, 4, 5}}};
constexpr ElementFace hexahedronFaces[] = {{4, {0, 3, 2, 1}}, {4, {0, 1, 5, 4}}, {4, {1, 2, 6, 5}},
                                           {4, {2, 3, 7, 6}}, {4, {0, 4, 7, 3}}, {4, {4, 5, 6, 7}}};

constexpr int firstType = 2;
// Indexed by ElementType less `firstType`. MIXED is no element: its dimension, -1, fits no list of cells or faces.
const ElementInfo table[] = {
    {"NODE", 0, 1, 1, {}},
    {"BAR_2", 1, 2, 2, barFaces},
    {"BAR_3", 1, 3, 2, barFaces},
    {"TRI_3", 2, 3, 3, triangleFaces},
    {"TRI_6", 2, 6, 3, triangleFaces},
    {"QUAD_4", 2, 4, 4, quadrilateralFaces},
    {"QUAD_8", 2, 8, 4, quadrilateralFaces},
    {"QUAD_9", 2, 9, 4, quadrilateralFaces},
    {"TETRA_4", 3, 4, 4, tetrahedronFaces},
    {"TETRA_10", 3, 10, 4, tetrahedronFaces},
    {"PYRA_5", 3, 5, 5, pyramidFaces},
    {"PYRA_14", 3, 14, 5, pyramidFaces},
    {"PENTA_6", 3, 6, 6, prismFaces},
    {"PENTA_15", 3, 15, 6, prismFaces},
    {"PENTA_18", 3, 18, 6, prismFaces},
    {"HEXA_8", 3, 8, 8, hexahedronFaces},
    {"HEXA_20", 3, 20, 8, hexahedronFaces},
    {"HEXA_27", 3, 27, 8, hexahedronFaces},
    {"MIXED", -1, 0, 0, {}},
    {"PYRA_13", 3, 13, 5, pyramidFaces},
    {"NGON_n", 2, 0, 0, {}},
    {"NFACE_n", 3, 0, 0, {}},
};

} // namespace

bool isElementType(int value) noexcept {
    return value >= firstType && value < firstType + static_cast<int>(std::size(table));
}

const ElementInfo &elementInfo(ElementType type) {
    DNDS_CHECK(isElementType(static_cast<int>(type)), ArgumentError, "{} is not an element type",
               static_cast<int>(type));
    return table[static_cast<int>(type) - firstType];
}

} // namespace DNDS::Geom
