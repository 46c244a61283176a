/// @file FaceLoops.hpp
/// @brief Loops over the faces of one cell, and of all cells that a rank owns.
#pragma once

#include "DNDS/Geom/Mesh/MeshView.hpp"

namespace DNDS::Geom {

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
        visit(faces[k], others[k], mesh.faceCells(faces[k], 0) == cell ? real(1) : real(-1));
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
/// into a patch has a second cell, too.
template <class Visit>
void forEachFace(const MeshView &mesh, const MeshPatch &patch, Visit &&visit) {
    for (const LocalIndex face : patch.ownFaces())
        visit(face, mesh.faceCells(face, 0));
}

} // namespace DNDS::Geom
