/// @file GhostMethod.hpp
/// @brief One way of refreshing the ghosts of blocks, and the baselines among them.
#pragma once

#include "BlockCase.hpp"

#include "DNDS/Exchange/Exchange.hpp"

#include <memory>
#include <string>

namespace DNDS::Bench {

/// Has memory of its own. Destroying one is collective.
class GhostMethod {
  public:
    GhostMethod(std::string name, const BlockCase &of) : name_(std::move(name)), case_(of) {}
    GhostMethod(const GhostMethod &) = delete;
    GhostMethod &operator=(const GhostMethod &) = delete;
    virtual ~GhostMethod() = default;

    const std::string &name() const { return name_; }
    /// Collective: complete when it returns, as far as this rank's ghosts are concerned.
    virtual void exchange() = 0;
    /// Writes new values to the cells that others need. Local.
    virtual void rewrite(int round) = 0;
    /// Throws DataError where a ghost is wrong. Local.
    virtual void compare(int round) const = 0;
    /// Whether ghosts become what the cells are.
    virtual bool checked() const { return true; }

  protected:
    const BlockCase &of() const { return case_; }

  private:
    std::string name_;
    const BlockCase &case_;
};

inline constexpr const char *PackedName = "packed by hand";
inline constexpr const char *SubarrayName = "subarray types";
inline constexpr const char *GlobalToLocalName = "DMDA global-to-local";
inline constexpr const char *LocalToLocalName = "DMDA local-to-local";
inline constexpr const char *P4estName = "p4est";
inline constexpr const char *StridedCopyName = "strided copy";

/// Persistent MPI, one packed message a peer; copies between own blocks by loops. Collective.
std::unique_ptr<GhostMethod> makePacked(const BlockCase &of);
/// Persistent MPI, one message a peer of types made of MPI_Type_create_subarray. Collective.
std::unique_ptr<GhostMethod> makeSubarray(const BlockCase &of);
/// The same rows moved within this process: to each ghost of another rank from the cells just inside, and the copies
/// between own blocks. Local.
std::unique_ptr<GhostMethod> makeStridedCopy(const BlockCase &of);
/// A field of the library. Collective.
std::unique_ptr<GhostMethod> makeDnds(const BlockCase &of, TransportKind kind);

/// PETSc's distributed arrays of the same cells and parts; null without PETSc. Collective.
std::unique_ptr<GhostMethod> makeGlobalToLocal(const BlockCase &of, const IndexVector &parts);
std::unique_ptr<GhostMethod> makeLocalToLocal(const BlockCase &of, const IndexVector &parts);

/// The ghost layer of a uniform forest of p4est; null without p4est, or where its parts are others: it cuts a cube
/// whose edge is a power of two along Morton's order. Collective.
std::unique_ptr<GhostMethod> makeP4est(const BlockCase &of, const IndexVector &parts);

/// Starts PETSc, as long as what this returns lives; does nothing in builds without it.
std::shared_ptr<void> startPetsc();

} // namespace DNDS::Bench
