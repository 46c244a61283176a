/// @file MeshView.hpp
/// @brief Volumes, centroids, face areas and normals; a trivially copyable view of a mesh with them, for kernels; loops
/// over the faces of one cell, and of all cells that a rank owns; the faces of a mesh as elements with all their nodes,
/// for integrals over curved faces.
#pragma once

#include "DNDS/Geom/Elements/ReferenceElement.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Geom/Source/ElementType.hpp"

#include <type_traits>
#include <vector>

namespace DNDS::Geom {

/// Options of `computeMetrics`; the same on all ranks.
struct MetricOptions {
    /// Follows the curved faces of second-order elements and the bilinear ones of linear elements, instead of the
    /// corners alone.
    bool curved = false;
};

/// Metrics of all local cells and faces, ghosts included; images are measured at their own positions. In two dimensions
/// "volume" is area, "area" is length.
struct MeshMetrics {
    /// Empty; `computeMetrics` makes whole ones.
    explicit MeshMetrics(CommunicatorView comm);

    ParArray<real, 1> volumes;     ///< [cells] positive
    ParArray<real, 3> centroids;   ///< [cells] of the volume
    ParArray<real, 1> areas;       ///< [faces] of the vector below
    ParArray<real, 3> areaVectors; ///< [faces] away from the first cell
    ParArray<real, 3> faceCentres; ///< [faces] centre of area
    /// The largest |sum of outward area vectors| over the sum of their lengths, of all owned cells of all ranks.
    /// Rounding alone gives about 1e-15.
    real closure = 0.0;
    /// [faces] the area of the face itself, which is larger than that of its area vector where the face is curved. No
    /// rows unless `MetricOptions::curved`.
    ParArray<real, 1> surfaceAreas;
    /// Owned cells of all ranks whose map is inverted, or singular, at a quadrature point: high-order meshers leave
    /// some at curved walls. 0 unless `MetricOptions::curved`.
    index invertedCells = 0;
};

/// Local except for the closure and the number of inverted cells, which are reduced: Collective. O(cells + faces +
/// nodes).
///
/// From corners, the default: faces are fanned around the mean of their corners, the same for both neighbours; a cell's
/// volume and centroid are those of the cones over its faces with the mean of its corners as apex: exact if faces are
/// flat. Normals of edges lie in the plane of their first cell. Cells of a curved surface do not close.
///
/// `MetricOptions::curved`: volumes, centroids and area vectors are integrals over the maps of the elements
/// (ElementMap.hpp), exact to rounding in space and in planes; areas of curved surfaces, `surfaceAreas` and
/// `faceCentres` are by Gauss quadrature with 4 points in each direction. A face has the nodes that its first cell
/// gives it, on all ranks that have this cell: both neighbours use the same numbers, and cells close to rounding if
/// both have the same nodes there. Where the first cell is not local (at the outer ghosts, or without ghosts) the
/// second gives the nodes, and the last bits may differ from those of another rank. Polygons and polyhedra are measured
/// from corners. Costs about 2 microseconds a linear hexahedron and 6 a HEXA_27, instead of 0.15.
MeshMetrics computeMetrics(const UnstructuredMesh &mesh, const MetricOptions &options = {});

/// Pointers into an UnstructuredMesh and its metrics: both must outlive it and not be resized.
struct MeshView {
    using Adjacency = LocalAdjacency::ConstView;
    template <rowsize width>
    using Rows = ArrayView<const real, width>;

    // Counts: owned ones come first, then ghosts, up to `cells`, `nodes` and `faces`.
    index ownedCells = 0;
    index cells = 0;
    index ownedNodes = 0;
    index nodes = 0;
    index ownedFaces = 0;
    index faces = 0;
    // As the members of UnstructuredMesh of the same names.
    Adjacency cellNodes;
    Adjacency cellFaces;
    Adjacency cellCells;
    Adjacency nodeCells;
    Adjacency faceNodes;
    LocalPairs::ConstView faceCells;
    ArrayView<const int, 1> facePatches; ///< [faces] the id of the first patch, or `noPatch`
    Rows<3> coordinates;
    // As the members of MeshMetrics of the same names.
    Rows<1> volumes;
    Rows<3> centroids;
    Rows<1> areas;
    Rows<3> areaVectors;
    Rows<3> faceCentres;
};
static_assert(std::is_trivially_copyable_v<MeshView>);

/// Copies the arrays of a MeshView to the device. Local; waits. Throws NotBuiltError, MemoryError.
inline void toDevice(UnstructuredMesh &mesh, MeshMetrics &metrics) {
    for (LocalAdjacency *adjacency :
         {&mesh.cellNodes, &mesh.cellFaces, &mesh.cellCells, &mesh.nodeCells, &mesh.faceNodes})
        adjacency->toDevice();
    mesh.faceCells.toDevice();
    mesh.facePatches.toDevice();
    mesh.coordinates.toDevice();
    metrics.volumes.toDevice();
    metrics.centroids.toDevice();
    metrics.areas.toDevice();
    metrics.areaVectors.toDevice();
    metrics.faceCentres.toDevice();
}

/// The view of the memory of `backend`, where the arrays must be current. Local, O(1). Throws StaleError.
template <DeviceBackend backend = DeviceBackend::Host>
MeshView viewOf(const UnstructuredMesh &mesh, const MeshMetrics &metrics) {
    MeshView view;
    view.ownedCells = mesh.cells.owned;
    view.cells = mesh.cells.size();
    view.ownedNodes = mesh.nodes.owned;
    view.nodes = mesh.nodes.size();
    view.ownedFaces = mesh.faces.owned;
    view.faces = mesh.faces.size();
    view.cellNodes = mesh.cellNodes.template deviceView<backend>();
    view.cellFaces = mesh.cellFaces.template deviceView<backend>();
    view.cellCells = mesh.cellCells.template deviceView<backend>();
    view.nodeCells = mesh.nodeCells.template deviceView<backend>();
    view.faceNodes = mesh.faceNodes.template deviceView<backend>();
    view.faceCells = mesh.faceCells.template deviceView<backend>();
    view.facePatches = mesh.facePatches.template deviceView<backend>();
    view.coordinates = mesh.coordinates.template deviceView<backend>();
    view.volumes = metrics.volumes.template deviceView<backend>();
    view.centroids = metrics.centroids.template deviceView<backend>();
    view.areas = metrics.areas.template deviceView<backend>();
    view.areaVectors = metrics.areaVectors.template deviceView<backend>();
    view.faceCentres = metrics.faceCentres.template deviceView<backend>();
    return view;
}

/// Deleted for temporaries, such as `viewOf(mesh, computeMetrics(mesh))`: mesh and metrics must outlive the view.
template <DeviceBackend backend = DeviceBackend::Host>
MeshView viewOf(const UnstructuredMesh &mesh, const MeshMetrics &&) = delete; // name the metrics: the view points there
template <DeviceBackend backend = DeviceBackend::Host>
MeshView viewOf(const UnstructuredMesh &&, const MeshMetrics &metrics) = delete; // name the mesh: the view points there
template <DeviceBackend backend = DeviceBackend::Host>
MeshView viewOf(const UnstructuredMesh &&, const MeshMetrics &&) = delete; // name both: the view points there

/// Whether the area vector of face `k` of a cell points out of it, not into it; of `faceCells` and the cell's row of
/// `cellFaces`. A cell around a slit has faces twice: first out of it, then into it. Local.
template <class FaceCells, class Faces>
DNDS_HOST_DEVICE bool pointsOut(const FaceCells &faceCells, const Faces &faces, index cell, rowsize k) {
    if (faceCells(faces[k], 0) != cell)
        return false;
    for (rowsize before = 0; faceCells(faces[k], 1) == cell && before < k; before++)
        if (faces[before] == faces[k])
            return false;
    return true;
}

/// Calls `visit(face, other, sign)` for each face of an own cell, in the order of the file: `other` is the cell across
/// the face, negative at the boundary; area vectors point out of the cell if `sign` is 1, into it if it is -1. Local,
/// O(faces of the cell), on the host.
///
///     forEachFaceOf(view, cell, [&](LocalIndex face, LocalIndex other, real sign) {
///         const real mean = other >= 0 ? 0.5 * (u(cell) + u(other)) : u(cell);
///         slope += sign * mean * view.areaVectors(face, 0);
///     });
template <class Visit>
void forEachFaceOf(const MeshView &mesh, index cell, Visit &&visit) {
    const auto faces = mesh.cellFaces[cell];
    const auto others = mesh.cellCells[cell];
    for (rowsize k = 0; k < faces.size(); k++)
        visit(faces[k], others[k], pointsOut(mesh.faceCells, faces, cell, k) ? real(1) : real(-1));
}

/// Calls `visit(face, first, second)` for each face between two cells of which this rank owns at least one: area
/// vectors point from the first into the second. Local, O(local faces), on the host.
///
///     forEachInnerFace(view, [&](LocalIndex face, LocalIndex first, LocalIndex second) {
///         const real flow = flux(u, face, first, second);
///         residual(first) -= flow;
///         residual(second) += flow;                  // rows of ghosts are discarded: their owners compute the same
///     });
///
/// The faces of an own cell are visited in local order, which depends on the number of ranks, and so may the last bits
/// of sums over them. Loops over `cellFaces` have the order of the file. Both sides of a periodic boundary are visited:
/// once for each own cell, the other cell is an image.
template <class Visit>
void forEachInnerFace(const MeshView &mesh, Visit &&visit) {
    for (LocalIndex face = 0; face < mesh.faces; face++) {
        const LocalIndex first = mesh.faceCells(face, 0);
        const LocalIndex second = mesh.faceCells(face, 1);
        const bool hasBoth = first >= 0 && second >= 0; // else a boundary face, or beyond the last layer of ghosts
        if (hasBoth && (first < mesh.ownedCells || second < mesh.ownedCells))
            visit(face, first, second);
    }
}

/// Calls `visit(face, cell, patch)` for each boundary face of own cells: area vectors point outwards; `patch` is the id
/// of its first patch, never `noPatch`. Local, O(own faces), on the host. Each face is visited on one rank.
///
///     const int wall = mesh.patch("wall").id;
///     forEachBoundaryFace(view, [&](LocalIndex face, LocalIndex cell, int patch) {
///         residual(cell) -= patch == wall ? wallFlux(u, face, cell) : farFlux(u, face, cell);
///     });
template <class Visit>
void forEachBoundaryFace(const MeshView &mesh, Visit &&visit) {
    for (LocalIndex face = 0; face < mesh.ownedFaces; face++)
        if (mesh.faceCells(face, 1) == noEntity)
            visit(face, mesh.faceCells(face, 0), mesh.facePatches(face));
}

/// The same for the faces of one patch: `visit(face, cell)`, O(its faces). A face inside the mesh that the file puts
/// into a patch has a second cell, too; without ghost layers `cell` is the second one where the first is on another
/// rank.
template <class Visit>
void forEachFace(const MeshView &mesh, const MeshPatch &patch, Visit &&visit) {
    for (const LocalIndex face : patch.ownFaces())
        visit(face, mesh.faceCells(face, mesh.faceCells(face, 0) >= 0 ? 0 : 1));
}

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
