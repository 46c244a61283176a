/// @file MeshReport.hpp
/// @brief Findings about a mesh while it is built: the same on every rank and for every number of ranks.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Geom/Source/ElementType.hpp"

#include <array>
#include <string>
#include <vector>

namespace DNDS::Geom {

/// Findings about a mesh, readable and for tests: the same on all ranks, for any number of ranks.
struct MeshReport {
    struct TypeCount {
        ElementType type;
        index count;
    };
    /// Counts of all ranks; each face counts once, however many zones name it.
    struct Patch {
        std::string name;
        std::string kind;
        index faces = 0;      ///< all of the connection
        index innerFaces = 0; ///< the subset with cells on both sides
    };
    /// As in SourceMesh.
    std::string origin;
    /// Of the cells.
    int dimension = 0;
    std::vector<TypeCount> cells; ///< numbers of cells of each type that occurs, ascending
    index cellsTotal = 0;
    index nodes = 0;             ///< number of nodes of the mesh
    index unusedNodes = 0;       ///< besides them: listed in the file and in no cell, left out
    real measure = 0.0;          ///< volume or area as the file orients its cells, from corner nodes
    real volume = 0.0;           ///< the same after reorienting cells
    index turnedCells = 0;       ///< reoriented: left-handed, clockwise or inward
    index flatCells = 0;         ///< zero or nearly zero measure
    index collapsedCells = 0;    ///< list a corner twice
    std::array<real, 3> lower{}; ///< bounding box of the nodes of cells
    std::array<real, 3> upper{};
    std::vector<Patch> patches;
    index innerFaces = 0;
    index boundaryFaces = 0;   ///< with a cell on one side; periodic ones included
    index unassignedFaces = 0; ///< the subset in no patch and no periodic connection
    index periodicPairs = 0;
    std::vector<std::string> warnings; ///< warnings of the source, then those found here
    std::vector<std::string> notes;    ///< notes of the source: harmless omissions
};

} // namespace DNDS::Geom
