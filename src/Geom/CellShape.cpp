#include "Geom/CellShape.hpp"

#include "DNDS/Base/Error.hpp"

namespace DNDS::Geom {

namespace {

constexpr std::array<CellFace, 3> triangleFaces{{{2, {0, 1}}, {2, {1, 2}}, {2, {2, 0}}}};
constexpr std::array<CellFace, 4> quadrilateralFaces{{{2, {0, 1}}, {2, {1, 2}}, {2, {2, 3}}, {2, {3, 0}}}};
constexpr std::array<CellFace, 4> tetrahedronFaces{{{3, {0, 2, 1}}, {3, {0, 1, 3}}, {3, {1, 2, 3}}, {3, {2, 0, 3}}}};
constexpr std::array<CellFace, 5> pyramidFaces{
    {{4, {0, 3, 2, 1}}, {3, {0, 1, 4}}, {3, {1, 2, 4}}, {3, {2, 3, 4}}, {3, {3, 0, 4}}}};
constexpr std::array<CellFace, 5> prismFaces{
    {{4, {0, 1, 4, 3}}, {4, {1, 2, 5, 4}}, {4, {2, 0, 3, 5}}, {3, {0, 2, 1}}, {3, {3, 4, 5}}}};
constexpr std::array<CellFace, 6> hexahedronFaces{
    {{4, {0, 3, 2, 1}}, {4, {0, 1, 5, 4}}, {4, {1, 2, 6, 5}}, {4, {2, 3, 7, 6}}, {4, {0, 4, 7, 3}}, {4, {4, 5, 6, 7}}}};

constexpr std::array<CellShapeInfo, 6> shapes{{{"triangle", 2, 3, 2, triangleFaces},
                                               {"quadrilateral", 2, 4, 2, quadrilateralFaces},
                                               {"tetrahedron", 3, 4, 3, tetrahedronFaces},
                                               {"pyramid", 3, 5, 4, pyramidFaces},
                                               {"prism", 3, 6, 4, prismFaces},
                                               {"hexahedron", 3, 8, 4, hexahedronFaces}}};

} // namespace

const CellShapeInfo &cellShapeInfo(CellShape shape) {
    const auto number = static_cast<std::size_t>(shape);
    DNDS_CHECK(number < shapes.size(), ArgumentError, "there is no cell shape {}", number);
    return shapes[number];
}

} // namespace DNDS::Geom
