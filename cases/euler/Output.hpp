/// @file Output.hpp
/// @brief Files of a run: histories, fields, pressure on walls.
#pragma once

#include "Configuration.hpp"
#include "Solver.hpp"

#include "DNDS/Geom/Write/WriteMesh.hpp"

#include <fstream>
#include <string>

namespace Euler {

struct RunResult;

/// history.csv: a line every few steps, written by rank 0. Numbers have full precision: they can be compared to the
/// bit.
class History {
  public:
    /// A run continued from a step keeps the lines up to it and drops later ones. Collective. Throws DataError on all
    /// ranks if the file cannot be written, and if the file to keep is not a history.
    /// `implicit` adds the CFL number and the iterations of GMRES so far.
    History(DNDS::CommunicatorView comm, const std::string &path, index step = 0, bool implicit = false);
    /// Collective.
    void write(const RunResult &now);

  private:
    DNDS::CommunicatorView comm_;
    std::string path_;
    bool implicit_;
    std::ofstream file_;
};

/// fields.vtkhdf: density, velocity, pressure, Mach number, species if there are any, and rank of cells, in the order
/// of the mesh's file.
class FieldWriter {
  public:
    /// All functions are Collective and throw as MeshWriter.
    FieldWriter(const DNDS::Geom::UnstructuredMesh &mesh, const std::string &path);
    void write(const Solver &solver, const Kinetics *kinetics, const Gas &gas, real time);
    /// The mesh has another partition from now on.
    void moved(const DNDS::Geom::UnstructuredMesh &mesh) { writer_.moved(mesh); }
    void close() { writer_.close(); }

  private:
    DNDS::Geom::MeshWriter writer_;
};

/// surface.csv: the pressure coefficient on the faces of `patches`, in the order of their cells in the file.
/// Collective. Rank 0 collects and writes it, in memory proportional to these patches. Throws DataError on all ranks if
/// the file cannot be written.
void writeSurface(const DNDS::Geom::UnstructuredMesh &mesh, const DNDS::Geom::MeshMetrics &metrics,
                  const Solver &solver, const Reference &reference, const std::vector<int> &patches,
                  const std::string &path);

} // namespace Euler
