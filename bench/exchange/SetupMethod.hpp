/// @file SetupMethod.hpp
/// @brief Ways from an unsorted list of wanted rows to a pull that can start.
#pragma once

#include "Problem.hpp"

#include "DNDS/Exchange/Exchange.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace DNDS::Bench {

/// One way, up to one stage. Objects made by `build` live until `release`.
///
/// Stages: "mapping" (senders, receivers and rows are known), "bound" (also buffers, the son's memory and requests),
/// "first_pull" (also one pull: what is done lazily is done). PETSc knows "translate" (global rows to pairs of rank and
/// row, which it wants as input), "graph" (PetscSFSetGraph and PetscSFSetUp from such pairs) and "first_pull" (graph, a
/// son's memory and one PetscSFBcast, whose buffers and requests PETSc makes on first use).
struct SetupMethod {
    std::string method;
    std::string stage;
    std::function<void()> build;   ///< collective
    std::function<void()> release; ///< collective
};

/// By hand: PullPlan and RawMpi.
std::vector<SetupMethod> handSetups(CommunicatorView comm, const Problem &problem, const double *father, int width);
/// The library's, bound by `kind`.
std::vector<SetupMethod> dndsSetups(CommunicatorView comm, const Problem &problem, TransportKind kind, int width);
/// PETSc's; empty in builds without it.
std::vector<SetupMethod> petscSetups(CommunicatorView comm, const Problem &problem, const double *father, int width);

/// PETSc's version, or an empty text in builds without it.
std::string petscVersion();

/// Starts PETSc, as long as what this returns lives; does nothing in builds without it.
std::shared_ptr<void> startPetsc();

} // namespace DNDS::Bench
