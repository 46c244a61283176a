/// @file Benchmarks.hpp
/// @brief The two benchmarks of this folder and what they share.
#pragma once

#include "Report.hpp"
#include "Turns.hpp"

#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"

namespace DNDS::Bench {

struct Setting {
    CommunicatorView comm;
    Report &report;
    std::string fill = "triangles"; ///< cell shape of the solver's box
    index cells = 500000;           ///< cells of both meshes, nearly
    int steps = 20;
    int turns = 5;
};

/// A unit box of nearly `cells` cells, in two or three dimensions, slightly distorted.
Geom::BoxMeshOptions boxOf(const std::string &fill, index cells);
/// Partitioned, with one layer of ghosts by faces. Collective.
Geom::UnstructuredMesh buildBox(CommunicatorView comm, const Geom::BoxMeshOptions &box);

/// Steps of cases/euler: all ranks beside one, with and without overlap. Collective.
void benchmarkSolver(const Setting &setting);
/// A first-order flux loop: by hand beside the library. Collective. Throws DataError where they disagree.
void benchmarkAirfoil(const Setting &setting);

} // namespace DNDS::Bench
