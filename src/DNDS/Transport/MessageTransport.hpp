/// @file MessageTransport.hpp
/// @brief Requests and completion of the transports that send one MPI message a peer.
#pragma once

#include "DNDS/Mpi/RequestSet.hpp"
#include "DNDS/Transport/TransportDescriptor.hpp"

namespace DNDS {

/// One persistent message to or from each peer of the plan.
class PersistentMessages : public Transport {
  public:
    std::string awaited() const override;
    bool settle() noexcept override;

  protected:
    /// Local.
    explicit PersistentMessages(TransportPlan plan) : plan_(std::move(plan)) {}

    /// The next request, of `count` of `type`. Local.
    void addSend(const void *from, int count, MPI_Datatype type);
    void addReceive(void *to, int count, MPI_Datatype type);
    /// Whether all messages are through. Local.
    bool progressMessages() {
        received_ = received_ || receives_.testAll();
        sent_ = sent_ || sends_.testAll();
        return received_ && sent_;
    }

    /// Peers with messages; requests are in its order.
    TransportPlan plan_;
    /// One request for each of `plan_.incoming` and `plan_.outgoing`, in their order.
    RequestSet receives_{RequestSet::Kind::Receive};
    RequestSet sends_{RequestSet::Kind::Send};
    bool received_ = true; ///< since the last start
    bool sent_ = true;
};

} // namespace DNDS
