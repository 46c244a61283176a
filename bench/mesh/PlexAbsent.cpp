/// @file PlexAbsent.cpp
/// @brief What stands for DMPlex in builds without PETSc.
#include "MeshMethod.hpp"

namespace DNDS::Bench {

PlexSession::PlexSession() = default;
PlexSession::~PlexSession() = default;

std::string plexVersion() { return {}; }

std::vector<MeshMethod> plexMethods() { return {}; }

} // namespace DNDS::Bench
