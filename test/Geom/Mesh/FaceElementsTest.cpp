#include "DNDS/Geom/Mesh/FaceElements.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Elements/ElementMap.hpp"
#include "DNDS/Geom/Elements/Quadrature.hpp"
#include "DNDS/Geom/Mesh/MeshMetrics.hpp"
#include "Geom/Mesh/CurvedMeshes.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace DNDS::Geom {
namespace {

using test::BoxCells;
using test::Order;

UnstructuredMesh build(BoxCells cells, Order order) {
    const auto bent = [](const Point &p) { return Point{p[0] + 0.05 * p[1] * p[1], p[1] + 0.03 * p[0], p[2]}; };
    return buildMesh(CommunicatorView(MPI_COMM_WORLD),
                     test::curve(test::makeBox({.cells = cells}), order, bent).slice(CommunicatorView(MPI_COMM_WORLD)));
}

TEST(FaceElements, HaveTheCornersOfTheFaceAndLeaveItsFirstCell) {
    for (const BoxCells cells : {BoxCells::Mixed, BoxCells::Tetrahedra, BoxCells::Hexahedra, BoxCells::Polyhedra,
                                 BoxCells::Quadrilaterals, BoxCells::Triangles, BoxCells::Polygons}) {
        SCOPED_TRACE(static_cast<int>(cells));
        const UnstructuredMesh mesh = build(cells, Order::Complete);
        const FaceElements faces = faceElements(mesh);
        ASSERT_EQ(faces.nodes.size(), mesh.faces.size());
        for (index f = 0; f < mesh.faces.size(); f++) {
            const auto corners = mesh.faceNodes[f];
            const ElementType type = faces.types[toSize(f)];
            const auto nodes = faces.nodes[f];
            std::vector<LocalIndex> listed(nodes.begin(), nodes.end());
            listed.resize(static_cast<std::size_t>(corners.size())); // corners come first
            const auto start = std::find(listed.begin(), listed.end(), corners[0]);
            ASSERT_NE(start, listed.end());
            std::rotate(listed.begin(), start, listed.end());
            EXPECT_TRUE(std::equal(listed.begin(), listed.end(), corners.begin())) << "face " << f;
            if (faces.sources[toSize(f)].cell != noEntity && cells != BoxCells::Polygons) {
                EXPECT_EQ(elementLayout(type).order, 2);
            }
        }
    }
}

TEST(FaceElements, CloseAroundTheirCells) {
    for (const BoxCells cells : {BoxCells::Mixed, BoxCells::Tetrahedra, BoxCells::Hexahedra}) {
        const UnstructuredMesh mesh = build(cells, Order::Serendipity);
        const MeshMetrics metrics = computeMetrics(mesh, {.curved = true});
        const FaceElements faces = faceElements(mesh);
        const QuadratureSet rules(6);
        for (LocalIndex c = 0; c < static_cast<LocalIndex>(mesh.cells.owned); c++) {
            real flow = 0.0; // of the position, whose divergence is 3
            for (const LocalIndex f : mesh.cellFaces[c]) {
                const ElementType type = faces.types[static_cast<std::size_t>(f)];
                const ElementNodes nodes{mesh.coordinates.view(), faces.nodes[f]};
                const QuadratureView rule = rules.view()[elementLayout(type).shape];
                for (index q = 0; q < rule.size(); q++) {
                    const MappedPoint x = mapPoint(shapeFunctions(type, rule.point(q)), nodes);
                    flow += (mesh.faceCells(f, 0) == c ? 1.0 : -1.0) * rule.weight(q) * dot(x.position, x.areaVector());
                }
            }
            EXPECT_NEAR(flow, 3.0 * metrics.volumes(c, 0), 1e-13);
        }
    }
}

} // namespace
} // namespace DNDS::Geom
