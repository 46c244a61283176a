/// @file FaceNumbering.hpp
/// @brief Numbers the faces of polyhedral cells without duplicates. Part of CgnsWriter.
#pragma once

#include "DNDS/Geom/Source/CsrLists.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <string>
#include <vector>

namespace DNDS::Geom::Detail {

/// All faces of the mesh are faces of cells; a boundary face is one of them.
struct NumberedFaces {
    index globalSize = 0;          ///< different faces
    std::vector<index> ofCells;    ///< [own faces of cells]: the face's number, from 0
    std::vector<bool> listedFirst; ///< [own faces of cells]: whether no cell lists the face earlier
    std::vector<index> ofBoundary; ///< [own faces of the boundary]
};

/// Faces are lists of their corners, global nodes. They are equal if they have the same corners in any order; they are
/// numbered in the order in which cells, rank by rank, first list them: the same on any number of ranks. Collective;
/// O(own faces) memory on average, four sparse exchanges. Throws DataError on all ranks, with `origin`, if a face has
/// more than two cells or a boundary face belongs to no cell.
NumberedFaces numberFaces(CommunicatorContext &context, const CsrLists<index> &ofCells,
                          const CsrLists<index> &ofBoundary, const std::string &origin);

} // namespace DNDS::Geom::Detail
