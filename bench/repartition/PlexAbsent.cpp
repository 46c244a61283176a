/// @file PlexAbsent.cpp
/// @brief Stands for DMPlex in builds without PETSc.
#include "PlexMove.hpp"

namespace DNDS::Bench {

std::shared_ptr<void> startPetsc() { return nullptr; }

std::unique_ptr<PlexMove> makePlexMove(const Geom::UnstructuredMesh & /*mesh*/, Geom::SourceMesh /*source*/,
                                       int /*fields*/) {
    return nullptr;
}

} // namespace DNDS::Bench
