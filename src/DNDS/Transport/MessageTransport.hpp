/// @file MessageTransport.hpp
/// @brief The transports that send one MPI message a peer, and their common parts: requests and completion.
#pragma once

#include "DNDS/Mpi/RequestSet.hpp"
#include "DNDS/Storage/HostDeviceBuffer.hpp"
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

/// Of rows in host memory: receives straight into the destinations, with no unpacking where one run of one array is
/// exchanged, and the MPI library's own scattering into blocks elsewhere. Derived classes define what is sent.
class MessageTransport : public PersistentMessages {
  public:
    explicit MessageTransport(TransportPlan plan) : PersistentMessages(std::move(plan)) {}

    void replacePlan(TransportPlan plan) final {
        plan_ = std::move(plan);
        bound_ = {};
    }
    void bind(const Endpoints &endpoints) final;
    void start() final;
    bool progress() final { return progressMessages(); }
    void renew(const CommunicatorContext &context) final;

  protected:
    /// Makes `sends_` one persistent send a peer. Only the sources matter, and they differ from the last call's.
    virtual void bindSends(const Endpoints &endpoints) = 0;
    /// Prepares and starts each send.
    virtual void startSends() = 0;

  private:
    /// One persistent receive a peer, at the destinations' addresses or by a datatype over them.
    void bindReceives(const Endpoints &endpoints);

    Endpoints bound_; ///< the memory for which the requests were made
    /// Of receives: kept as long as their requests, as they may own datatypes.
    std::vector<ByteCount> sizes_;
    std::vector<Datatype> types_;
};

/// Rows are gathered into one buffer a peer; rows that are contiguous already are sent from where they are.
class PackedTransport final : public MessageTransport {
  public:
    using MessageTransport::MessageTransport;
    static TransportDescriptor describe();

  private:
    void bindSends(const Endpoints &endpoints) override;
    void startSends() override;

    /// Bases of the parts to gather from at the next start.
    std::vector<const std::byte *> sources_;
    bool allPacked_ = false;          ///< the sends do not depend on the sources' addresses
    std::vector<std::byte *> packed_; ///< a place in `buffer_` for each peer; null where nothing is packed
    /// All packed messages; the counts of sends, which may own datatypes.
    HostDeviceBuffer buffer_;
    std::vector<ByteCount> sizes_;
};

/// MPI derived datatypes describe the rows where they lie; runs of rows are joined into blocks.
class DatatypeTransport final : public MessageTransport {
  public:
    using MessageTransport::MessageTransport;
    static TransportDescriptor describe();

  private:
    void bindSends(const Endpoints &endpoints) override;
    void startSends() override { sends_.startAll(); }

    /// One a message, kept as long as its request.
    std::vector<Datatype> types_;
};

} // namespace DNDS
