/// @file MeshMethod.hpp
/// @brief The ways that are compared: from blocks of a mesh to parts with ghosts, faces and metrics.
#pragma once

#include "Stages.hpp"

#include "DNDS/Geom/Generate/BoxMesh.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace DNDS::Bench {

/// The stages that make the mesh or read it from a file, which are no part of what is compared, and the partitioner
/// itself.
inline constexpr const char *GenerateStage = "generate";
inline constexpr const char *ReadStage = "read";
inline constexpr const char *PartitionStage = "partition";

/// Input of all methods.
struct MeshCase {
    Geom::BoxMeshOptions box;
    std::string file; ///< with the same mesh, for methods that can read it; "" without a file
};

/// Result of a method, on this rank.
struct MeshParts {
    index cells = 0;
    index ghosts = 0;
    index faces = 0; ///< ghosts' included
    double volume = 0.0;
};

/// One way; Collective. It begins stages on the clock, `GenerateStage` or `ReadStage` first, and frees all that it
/// makes.
struct MeshMethod {
    std::string name;
    std::function<MeshParts(CommunicatorView comm, const MeshCase &mesh, StageClock &clock)> run;
};

/// dnds (PT-Scotch) and dnds_curve.
std::vector<MeshMethod> dndsMethods();
/// dmplex and, all cells being on rank 0 at first, dmplex_root; none in builds without PETSc.
std::vector<MeshMethod> plexMethods();

/// Starts PETSc, as long as what this returns lives; does nothing in builds without it.
std::shared_ptr<void> startPetsc();
/// "3.18.5", or "" without PETSc.
std::string plexVersion();

} // namespace DNDS::Bench
