/// @file Configuration.hpp
/// @brief All user choices, read from a JSON file with comments. euler.schema.json describes the file.
#pragma once

#include "ExactFlows.hpp"
#include "ImplicitSteps.hpp"
#include "Kinetics.hpp"
#include "Solver.hpp"

#include "DNDS/Geom/Cgns/Cgns.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"

#include <array>
#include <cstdint>
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

/// The far-field flow, and the reference values of force coefficients.
struct Reference {
    Primitive state;
    real length = 1;
    real area = 1;
    Vector drag{1, 0, 0}; ///< unit vectors
    Vector lift{0, 1, 0};
};

/// The initial flow: the reference state everywhere, or a flow with known solution.
using InitialFlow = std::variant<std::monostate, Vortex, ShockTube>;

struct TimeChoice {
    bool steady = false; ///< local time steps
    real cfl = 0.8;
    index steps = 0;                                  ///< at most
    real end = std::numeric_limits<real>::infinity(); ///< end of unsteady runs
    real tolerance = 0; ///< steady: stop when the mass residual relative to the first one is this small
};

/// When cells move to other ranks.
struct BalanceChoice {
    real threshold = 0.1; ///< share by which the slowest rank exceeds the mean: less is left alone
    bool graph = false;   ///< parts with the fewest faces between them, by the graph instead of a curve
};

enum class PictureField { Density, Pressure, Mach, Speed };

/// The word for it in the file.
std::string pictureFieldName(PictureField field);

/// Pictures while a run computes.
struct PictureChoice {
    index every = 0; ///< steps
    PictureField field = PictureField::Pressure;
    std::optional<std::array<real, 2>> range;  ///< range of colours; else the range of each picture
    std::optional<std::array<real, 4>> window; ///< low and high along the width and the height; else the mesh's
    int normal = 2;                            ///< the coordinate across the plane, in three dimensions
    std::optional<real> at;                    ///< position of the plane; else in the middle
    std::uint32_t width = 960;                 ///< pixels; the height follows from the window
};

struct OutputChoice {
    std::string folder = "output";
    index historyEvery = 10;
    index fieldsEvery = 0; ///< 0: only at the end
    bool fields = true;
    index checkpointEvery = 0;       ///< steps; 0: never
    real checkpointMinutes = 0;      ///< 0: never
    index keep = 2;                  ///< checkpoints
    std::vector<std::string> forces; ///< walls or symmetries; empty: all walls
    std::optional<PictureChoice> picture;
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
    std::optional<ImplicitChoice> implicit; ///< for steady runs
    std::optional<HotRegion> kinetics;
    std::optional<BalanceChoice> balance;
    OutputChoice output;
    std::map<std::string, std::string> choices; ///< every key read, with its value as JSON
};

/// Reads the text of a file. `changes` are "key.key=value", applied first. Local. Throws ArgumentError with the file
/// and the key: for invalid JSON, and for keys that are missing, unknown, of the wrong type or out of range.
Configuration parseConfiguration(const std::string &text, const std::string &path,
                                 const std::vector<std::string> &changes = {});
/// The same from a file. Collective: an error on one rank is thrown on all.
Configuration readConfiguration(DNDS::CommunicatorView comm, const std::string &path,
                                const std::vector<std::string> &changes = {});

/// The reference flow, or the exact solution of the initial flow.
Primitive flowAt(const Configuration &configuration, Vector point, real time);

/// The condition of each patch of a mesh. Collective. Throws ArgumentError on all ranks for an unknown name and for a
/// patch with faces but no condition, listing what exists.
std::vector<BoundaryCondition> conditionsOf(const DNDS::Geom::UnstructuredMesh &mesh,
                                            const std::map<std::string, BoundaryCondition> &boundaries);
/// The numbers of the patches for forces. Local. Throws ArgumentError as above, and for
/// patches through which gas flows.
std::vector<int> forcePatches(const DNDS::Geom::UnstructuredMesh &mesh, const Configuration &configuration);

} // namespace Euler
