/// @file FaceElements.hpp
/// @brief The faces of a mesh as elements with all their nodes, for integrals over curved faces.
#pragma once

#include "DNDS/Geom/Elements/ReferenceElement.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Geom/Source/ElementType.hpp"

#include <vector>

namespace DNDS::Geom {

/// Positions of an element's nodes, as `mapPoint` and `findReferencePoint` take them; in kernels, too.
///
///     const auto x = mapPoint(shapeFunctions(type, at), ElementNodes{mesh.coordinates.view(), mesh.cellNodes[cell]});
struct ElementNodes {
    ArrayView<const real, 3> coordinates;
    AdjacencyRow<const LocalIndex> nodes;

    /// The position of node `k` of the element. In kernels, too.
    DNDS_HOST_DEVICE Point operator()(int k) const {
        const real *at = coordinates[nodes[k]];
        return {at[0], at[1], at[2]};
    }
};

/// The faces of a mesh with their second-order nodes, which `UnstructuredMesh::faceNodes` lacks. A face gets the nodes
/// that its first cell gives it; those of the second cell if the first is not local, or is a polygon or polyhedron.
struct FaceElements {
    /// Source of the nodes of a face.
    struct Source {
        LocalIndex cell = noEntity; ///< `noEntity`: its cells are polygons or polyhedra, its nodes are `faceNodes`
        int face = 0;               ///< `faceOf(mesh.cellTypes[cell], face)` is it
    };

    std::vector<ElementType> types; ///< [faces] Bar2 to Quad9, or Polygon
    LocalAdjacency nodes;        ///< [faces] in the order of the standard; the normal of the map leaves the first cell
    std::vector<Source> sources; ///< [faces]
};

/// Makes the list for all local faces. Local. O(cells + faces).
FaceElements faceElements(const UnstructuredMesh &mesh);

/// The nodes that `cell` has on its face `face`, second-order ones included, in the order of `faceOf`. For polygons and
/// polyhedra at a periodic boundary whose face lists the nodes of the other side: all nodes of the cell. Local, O(nodes
/// of the cell).
std::vector<LocalIndex> nodesOnFace(const UnstructuredMesh &mesh, LocalIndex cell, LocalIndex face);

/// The face `face` as a part of its cell `mesh.faceCells(face, side)`, with corners in the order of the face's element.
/// Corners are matched by position, hence also across a periodic boundary. So both cells of a face can use the same
/// quadrature points: `inElement` gives the reference coordinates in that cell of a point of the face's element.
///
///     const SubElement part = faceInCell(mesh, faces, face, 1);
///     const ShapeFunctions there = shapeFunctions(mesh.cellTypes[second], inElement(mesh.cellTypes[second], part,
///     at));
///
/// The result is a BAR_2, TRI_3 or QUAD_4. There are few different ones, so that programs tabulate shape functions by
/// type and `node`. Local, O(faces of the cell). Throws ArgumentError where there is no local cell on that side, or its
/// face is collapsed or belongs to a polygon or polyhedron.
SubElement faceInCell(const UnstructuredMesh &mesh, const FaceElements &faces, index face, int side);

} // namespace DNDS::Geom
