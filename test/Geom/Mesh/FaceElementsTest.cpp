#include "DNDS/Geom/Mesh/MeshView.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Elements/ElementMap.hpp"
#include "DNDS/Geom/Elements/ReferenceElement.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "Geom/Mesh/CurvedMeshes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace DNDS::Geom {
namespace {

using Cells = test::BoxCells;
using test::Order;

UnstructuredMesh build(Cells cells, Order order) {
    const auto bent = [](const Point &p) { return Point{p[0] + 0.05 * p[1] * p[1], p[1] + 0.03 * p[0], p[2]}; };
    return buildMesh(CommunicatorView(MPI_COMM_WORLD),
                     test::curve(test::makeBox({.cells = cells}), order, bent).slice(CommunicatorView(MPI_COMM_WORLD)));
}

TEST(FaceElements, HaveTheCornersOfTheFaceAndLeaveItsFirstCell) {
    for (const Cells cells : {Cells::Mixed, Cells::Tetrahedra, Cells::Hexahedra, Cells::Polyhedra,
                              Cells::Quadrilaterals, Cells::Triangles, Cells::Polygons}) {
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
            if (faces.sources[toSize(f)].cell != noEntity && cells != Cells::Polygons) {
                EXPECT_EQ(elementLayout(type).order, 2);
            }
        }
    }
}

TEST(FaceElements, CloseAroundTheirCells) {
    for (const Cells cells : {Cells::Mixed, Cells::Tetrahedra, Cells::Hexahedra}) {
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

/// Periodic in x and y, bent, of second order.
UnstructuredMesh bentBox(Geom::BoxCells fill) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    SourceMesh source = makeBoxMesh(
        {.fill = fill, .cells = {4, 3, 2}, .shuffled = true, .periodic = {true, true}, .secondOrder = true}, comm);
    for (auto &[x, y, z] : source.coordinates) {
        const real turn = 2 * std::acos(-1.0);
        const std::array<real, 2> before{x, y};
        x += 0.03 * std::sin(turn * before[1]) + 0.02 * std::cos(turn * before[0]);
        y += 0.03 * std::cos(turn * before[0]) * std::cos(turn * before[1]);
    }
    return buildMesh(comm, std::move(source));
}

TEST(FaceElements, BothCellsMeetInTheSamePoints) {
    for (const auto fill : {Geom::BoxCells::Triangles, Geom::BoxCells::Quadrilaterals, Geom::BoxCells::MixedSurface,
                            Geom::BoxCells::Tetrahedra, Geom::BoxCells::Hexahedra, Geom::BoxCells::Prisms}) {
        const UnstructuredMesh mesh = bentBox(fill);
        SCOPED_TRACE(mesh.origin);
        const FaceElements faces = faceElements(mesh);
        const QuadratureSet rules(4);
        index met = 0;
        for (index f = 0; f < mesh.faces.size(); f++) {
            const QuadratureView rule = rules.view()[elementLayout(faces.types[toSize(f)]).shape];
            for (const int side : {0, 1}) {
                const LocalIndex cell = mesh.faceCells(f, side);
                if (cell < 0) {
                    EXPECT_THROW(faceInCell(mesh, faces, f, side), ArgumentError);
                    continue;
                }
                const ElementType type = mesh.cellTypes[static_cast<std::size_t>(cell)];
                const SubElement part = faceInCell(mesh, faces, f, side);
                for (index q = 0; q < rule.size(); q++) {
                    const Point at = inElement(type, part, rule.point(q));
                    const Point there =
                        mapPoint(shapeFunctions(type, at), ElementNodes{mesh.coordinates.view(), mesh.cellNodes[cell]})
                            .position;
                    const Point here = mapPoint(shapeFunctions(faces.types[toSize(f)], rule.point(q)),
                                                ElementNodes{mesh.coordinates.view(), faces.nodes[f]})
                                           .position;
                    EXPECT_LT(norm(there - here), 1e-14) << "face " << f << ", side " << side;
                }
                met += side;
            }
        }
        EXPECT_GT(met, 0);
    }
}

TEST(FaceElements, OfPolygonsHaveNoPlaceInReferenceElements) {
    const UnstructuredMesh mesh = build(Cells::Polygons, Order::Linear);
    const FaceElements faces = faceElements(mesh);
    for (const LocalIndex face : mesh.boundaryFaces) {
        if (mesh.cellTypes[static_cast<std::size_t>(mesh.faceCells(face, 0))] == ElementType::Polygon) {
            EXPECT_THROW(faceInCell(mesh, faces, face, 0), ArgumentError);
        } else {
            EXPECT_EQ(faceInCell(mesh, faces, face, 0).type, ElementType::Bar2);
        }
    }
}

} // namespace
} // namespace DNDS::Geom
