/// @file PlexCells.hpp
/// @brief Cells of a generated mesh as PETSc's DMPlex takes them. For sources that are compiled with PETSc only.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Petsc/Session.hpp"

#include <petscdmplex.h>

#include <utility>
#include <vector>

namespace DNDS::Bench {

using Plex = Petsc::Owner<DM, DMDestroy>;

/// The blocks of the generator as DMPlex takes cells. Its tetrahedra and hexahedra are numbered inside out.
struct CellList {
    PetscInt corners = 0;
    std::vector<PetscInt> cells;
    std::vector<PetscReal> coordinates;
    PetscInt ownNodes = 0;

    explicit CellList(const Geom::SourceMesh &source) {
        corners = source.cells.size() > 0 ? static_cast<PetscInt>(source.cells.nodesOf(0).size()) : 1;
        cells.assign(source.cells.nodes.begin(), source.cells.nodes.end());
        for (std::size_t at = 0; at < cells.size(); at += static_cast<std::size_t>(corners))
            corners == 8 ? std::swap(cells[at + 1], cells[at + 3]) : std::swap(cells[at], cells[at + 1]);
        for (const auto &point : source.coordinates)
            coordinates.insert(coordinates.end(), point.begin(), point.end());
        ownNodes = static_cast<PetscInt>(source.nodes());
    }
    PetscInt size() const { return static_cast<PetscInt>(cells.size()) / corners; }
    /// Cells, in their order, and nodes. Collective.
    Plex create(CommunicatorView comm) const {
        Plex plex;
        Petsc::check(DMPlexCreateFromCellListParallelPetsc(comm.handle(), 3, size(), ownNodes, PETSC_DECIDE, corners,
                                                           PETSC_FALSE, cells.data(), 3, coordinates.data(), nullptr,
                                                           nullptr, plex.out()),
                     "DMPlexCreateFromCellListParallelPetsc");
        return plex;
    }
};

/// The same with faces and edges. Collective.
inline Plex interpolated(DM plex) {
    Plex made;
    Petsc::check(DMPlexInterpolate(plex, made.out()), "DMPlexInterpolate");
    return made;
}

} // namespace DNDS::Bench
