/// @file DeviceTopology.hpp
/// @brief Access of a communicator's ranks to each other's device memory, found by trying it.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <map>
#include <memory>
#include <string>

namespace DNDS {

/// Reason for moving device rows through pinned memory on the user's request.
inline constexpr const char *forcedStaging = "DNDS_FORCE_HOST_STAGING is set";

/// Found once for each communicator, when its first exchange of device memory is made.
class DeviceTopology {
  public:
    /// The topology of `context`. Collective at the first call, Local afterwards.
    static DeviceTopology &of(CommunicatorContext &context);
    /// The same after a call of `of`; throws StateError before. Local.
    static std::shared_ptr<DeviceTopology> madeFor(const CommunicatorContext &context);

    /// Whether MPI moves device memory between all ranks: a real transfer was tried and its bytes were right.
    bool mpiTakesDeviceMemory() const noexcept { return gpuAware_; }
    /// The reasons.
    const std::string &aboutMpi() const noexcept { return aboutMpi_; }

    /// Whether this rank and `peer` can read each other's device memory: tried both ways. The same answer on both.
    bool reaches(int peer) const { return whyNot(peer).empty(); }
    /// Reason why not; empty if they can.
    const std::string &whyNot(int peer) const;

  private:
    /// Tries everything. Collective.
    explicit DeviceTopology(CommunicatorContext &context);

    /// Fills `whyNot_`. Collective.
    void tryPeers(CommunicatorContext &context, bool available);
    /// Sets `gpuAware_` and its reason. Collective.
    void tryMpi(CommunicatorContext &context, bool available);

    std::map<int, std::string> whyNot_; ///< reasons, by rank of this node
    std::string aboutMpi_;
    bool gpuAware_ = false;
};

} // namespace DNDS
