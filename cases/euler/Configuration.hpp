/// @file Configuration.hpp
/// @brief All that a user chooses, read from a JSON file with comments. euler.schema.json describes the file.
#pragma once

#include "ExactFlows.hpp"
#include "Solver.hpp"

#include "DNDS/Geom/Cgns/CgnsReader.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace Euler {

/// A file, or else a box.
struct MeshChoice {
    std::string file;
    DNDS::Geom::CgnsOptions cgns;
    std::optional<DNDS::Geom::BoxMeshOptions> box;
    bool curve = false; ///< partition along a curve instead of the graph
};

/// The flow far away, and how forces become coefficients.
struct Reference {
    Primitive state;
    real length = 1;
    real area = 1;
    Vector drag{1, 0, 0}; ///< unit vectors
    Vector lift{0, 1, 0};
};

/// What the flow is at the start: the reference state everywhere, or a flow with known solution.
using InitialFlow = std::variant<std::monostate, Vortex, ShockTube>;

struct TimeChoice {
    bool steady = false; ///< each cell takes its own steps
    real cfl = 0.8;
    index steps = 0;                                  ///< at most
    real end = std::numeric_limits<real>::infinity(); ///< of unsteady runs
    real tolerance = 0; ///< steady: stop where the residual of mass is this share of the first one
};

struct OutputChoice {
    std::string folder = "output";
    index historyEvery = 10;
    index fieldsEvery = 0; ///< 0: at the end alone
    bool fields = true;
    index checkpointEvery = 0;       ///< steps; 0: never
    real checkpointMinutes = 0;      ///< 0: never
    index keep = 2;                  ///< checkpoints
    std::vector<std::string> forces; ///< patches; none named: all walls
};

struct Configuration {
    std::string path;
    MeshChoice mesh;
    Gas gas;
    Reference reference;
    InitialFlow initial;
    std::map<std::string, BoundaryCondition> boundaries; ///< by patch
    Scheme scheme;
    TimeChoice time;
    OutputChoice output;
    std::map<std::string, std::string> choices; ///< every key that was asked for, and its value as JSON
};

/// Reads the text of a file. `changes` are "key.key=value", applied first. Local. Throws ArgumentError that names the
/// file and the key: for what is no JSON, missing, unknown, of the wrong type or out of range.
Configuration parseConfiguration(const std::string &text, const std::string &path,
                                 const std::vector<std::string> &changes = {});
/// The same from a file. Collective: what fails on one rank is thrown on all.
Configuration readConfiguration(DNDS::CommunicatorView comm, const std::string &path,
                                const std::vector<std::string> &changes = {});

/// The reference flow, or what is known of the initial flow's later course.
Primitive flowAt(const Configuration &configuration, Vector point, real time);

/// The condition of each patch of a mesh. Collective. Throws ArgumentError on all ranks for a name that the mesh lacks,
/// and for a patch with faces that has no condition, listing what exists.
std::vector<BoundaryCondition> conditionsOf(const DNDS::Geom::UnstructuredMesh &mesh,
                                            const std::map<std::string, BoundaryCondition> &boundaries);
/// The numbers of the patches whose forces are asked for. Local. Throws ArgumentError as above.
std::vector<int> forcePatches(const DNDS::Geom::UnstructuredMesh &mesh, const Configuration &configuration);

} // namespace Euler
