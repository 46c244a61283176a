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

/// history.csv: a line every few steps, written by rank 0. Numbers have all their digits: they can be compared to the
/// bit.
class History {
  public:
    /// A run that goes on from a step keeps the lines up to this one, and loses those behind. Collective. Throws
    /// DataError on all ranks where the file cannot be written, and where a file that is to be kept is none of these.
    History(DNDS::CommunicatorView comm, const std::string &path, index step = 0);
    /// Collective, too.
    void write(const RunResult &now);

  private:
    DNDS::CommunicatorView comm_;
    std::string path_;
    std::ofstream file_;
};

/// fields.vtkhdf: density, velocity, pressure and Mach number of cells, and the rank that computed them, in the order
/// of the mesh's file.
class FieldWriter {
  public:
    /// Collective, as all functions. Throws as MeshWriter.
    FieldWriter(const DNDS::Geom::UnstructuredMesh &mesh, const std::string &path);
    void write(const Solver &solver, const Gas &gas, real time);
    void close() { writer_.close(); }

  private:
    DNDS::Geom::MeshWriter writer_;
};

/// surface.csv: the pressure coefficient on the faces of `patches`, in the order of their cells in the file.
/// Collective. Rank 0 collects and writes it, in memory proportional to these patches. Throws DataError on all ranks
/// where the file cannot be written.
void writeSurface(const DNDS::Geom::UnstructuredMesh &mesh, const DNDS::Geom::MeshMetrics &metrics,
                  const Solver &solver, const Reference &reference, const std::vector<int> &patches,
                  const std::string &path);

} // namespace Euler
