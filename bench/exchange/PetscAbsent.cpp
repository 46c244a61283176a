/// @file PetscAbsent.cpp
/// @brief Stands for PETSc in builds without it.
#include "PullMethod.hpp"
#include "SetupMethod.hpp"

namespace DNDS::Bench {

std::shared_ptr<void> startPetsc() { return nullptr; }

std::string petscVersion() { return {}; }

std::unique_ptr<PullMethod> makePetsc(CommunicatorView, std::span<const index>, const PullPlan &, const double *, int) {
    return nullptr;
}

std::vector<SetupMethod> petscSetups(CommunicatorView, const Problem &, const double *, int) { return {}; }

} // namespace DNDS::Bench
