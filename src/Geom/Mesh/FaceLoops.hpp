/// @file FaceLoops.hpp
/// @brief Loops over the faces of a rank's own cells.
#pragma once

#include "DNDS/Geom/Mesh/MeshView.hpp"

namespace DNDS::Geom {

/// Calls `visit(face, first, second)` for each face between two cells of which this rank owns at least one: area
/// vectors point from the first into the second. Local, O(local faces), on the host.
///
///     forEachInnerFace(view, [&](LocalIndex face, LocalIndex first, LocalIndex second) {
///         const real flow = flux(u, face, first, second);
///         residual(first) -= flow;
///         residual(second) += flow;                  // rows of ghosts are given up: their owners compute the same
///     });
///
/// The faces of an own cell come in the local order, which depends on the number of ranks, and so may the last bits of
/// sums over them. Loops over `cellFaces` have the order of the file. Both sides of a periodic boundary are visited:
/// once for each own cell, the other cell is an image.
template <class Visit>
void forEachInnerFace(const MeshView &mesh, Visit &&visit) {
    for (LocalIndex face = 0; face < mesh.faces; face++) {
        const LocalIndex first = mesh.faceCells(face, 0);
        const LocalIndex second = mesh.faceCells(face, 1);
        const bool hasBoth = first >= 0 && second >= 0; // else at the boundary, or beyond the last layer of ghosts
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
