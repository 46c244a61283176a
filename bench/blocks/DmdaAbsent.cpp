/// @file DmdaAbsent.cpp
/// @brief Stands for DMDA in builds without PETSc.
#include "GhostMethod.hpp"
#include "SlabMethod.hpp"

namespace DNDS::Bench {

std::shared_ptr<void> startPetsc() { return nullptr; }

std::unique_ptr<GhostMethod> makeGlobalToLocal(const BlockCase &, const IndexVector &) { return nullptr; }
std::unique_ptr<GhostMethod> makeLocalToLocal(const BlockCase &, const IndexVector &) { return nullptr; }
std::unique_ptr<SlabMethod> makePetscScatter(CommunicatorView, index) { return nullptr; }

} // namespace DNDS::Bench
