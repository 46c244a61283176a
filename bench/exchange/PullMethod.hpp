/// @file PullMethod.hpp
/// @brief One way of refreshing ghosts, and the baselines among them.
#pragma once

#include "PullPlan.hpp"

#include <memory>
#include <span>
#include <string>

namespace DNDS::Bench {

/// A pull bound to a father and to a son of its own. Destroying one is collective.
class PullMethod {
  public:
    explicit PullMethod(std::string name) : name_(std::move(name)) {}
    PullMethod(const PullMethod &) = delete;
    PullMethod &operator=(const PullMethod &) = delete;
    virtual ~PullMethod() = default;

    const std::string &name() const { return name_; }
    /// Collective: complete when it returns, as far as this rank's ghosts are concerned.
    virtual void pull() = 0;
    /// Output of `pull`: ghosts in order of global row, or own rows for the local yardsticks.
    virtual std::span<double> son() = 0;
    /// Whether `pull` brings the rows of other ranks.
    virtual bool communicates() const { return true; }

  private:
    std::string name_;
};

/// Names under which baselines appear in tables and records.
inline constexpr const char *RawMpiName = "raw_mpi";
inline constexpr const char *SharedByHandName = "shared_by_hand";
inline constexpr const char *PetscName = "petsc_sf";
inline constexpr const char *GhexName = "ghex";
inline constexpr const char *FloorName = "floor";
inline constexpr const char *MemcpyName = "memcpy";

/// Persistent MPI by hand: one packed send a reader, receives straight into the son. Collective.
std::unique_ptr<PullMethod> makeRawMpi(CommunicatorView comm, const PullPlan &plan, const double *father, int width);
/// Through shared memory by hand: owners gather straight into the readers' sons, ordered by two flags. Null where the
/// ranks are on several nodes. Collective.
std::unique_ptr<PullMethod> makeSharedByHand(CommunicatorView comm, const PullPlan &plan, const double *father,
                                             int width);
/// The rows that this rank would send, gathered into its own memory: what any pull must do at least. Local.
std::unique_ptr<PullMethod> makeFloor(const PullPlan &plan, const double *father, int width);
/// A copy of as many bytes as this rank would send. Local.
std::unique_ptr<PullMethod> makeMemcpy(const PullPlan &plan, int width);
/// PETSc's star forest, or null in builds without PETSc. Collective.
std::unique_ptr<PullMethod> makePetsc(CommunicatorView comm, std::span<const index> offsets, const PullPlan &plan,
                                      const double *father, int width);
/// GHEX's exchange of unstructured grids, or null in builds without GHEX. Collective.
std::unique_ptr<PullMethod> makeGhex(CommunicatorView comm, std::span<const index> offsets, const PullPlan &plan,
                                     const double *father, int width);

} // namespace DNDS::Bench
