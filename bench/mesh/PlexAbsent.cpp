/// @file PlexAbsent.cpp
/// @brief Stands for DMPlex in builds without PETSc.
#include "MeshMethod.hpp"

namespace DNDS::Bench {

std::shared_ptr<void> startPetsc() { return nullptr; }

std::string plexVersion() { return {}; }

std::vector<MeshMethod> plexMethods() { return {}; }

} // namespace DNDS::Bench
