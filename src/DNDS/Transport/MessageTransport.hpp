/// @file MessageTransport.hpp
/// @brief The transports that send one MPI message a peer, and what they have in common: receives and completion.
#pragma once

#include "DNDS/Mpi/RequestSet.hpp"
#include "DNDS/Transport/Transport.hpp"
#include "DNDS/Transport/TransportDescriptor.hpp"

namespace DNDS {

/// Persistent receives straight into the destinations: no unpacking where one run of one array is exchanged, and the
/// MPI library's own scattering into blocks elsewhere. Derived classes define what is sent.
class MessageTransport : public Transport {
  public:
    /// Local.
    MessageTransport(TransportPlan plan, const TransportSetup &setup);

    void replacePlan(TransportPlan plan) final {
        plan_ = std::move(plan);
        bound_ = {};
    }
    void bind(const Endpoints &endpoints) final;
    void start() final;
    bool progress() final;
    std::string awaited() const final;
    bool settle() noexcept final { return settleRequests(receives_, sends_); }
    void renew(const CommunicatorContext &context) final;

  protected:
    /// Makes `sends` one persistent send a peer of `outgoing()`. Only the sources matter, and they differ from the last
    /// call's.
    virtual void bindSends(const Endpoints &endpoints, RequestSet &sends) = 0;
    /// Prepares and starts each send.
    virtual void startSends(RequestSet &sends) = 0;

    const std::vector<Outgoing> &outgoing() const noexcept { return plan_.outgoing; }
    const Channel &channel() const noexcept { return plan_.channel; }

  private:
    void bindReceives(const Endpoints &endpoints);
    void addReceive(void *to, int count, MPI_Datatype type, int peer);

    TransportPlan plan_;
    Endpoints bound_; ///< what the requests were made for
    std::vector<ByteCount> sizes_;
    std::vector<Datatype> types_;
    std::vector<MPI_Status> statuses_; ///< of the receives
    RequestSet receives_{RequestSet::Kind::Receive};
    RequestSet sends_{RequestSet::Kind::Send};
    bool received_ = true; ///< since the last start
    bool sent_ = true;
};

/// Rows are gathered into one buffer a peer; rows that are contiguous already are sent from where they are.
class PackedTransport final : public MessageTransport {
  public:
    using MessageTransport::MessageTransport;
    static TransportDescriptor describe();

  private:
    void bindSends(const Endpoints &endpoints, RequestSet &sends) override;
    void startSends(RequestSet &sends) override;

    std::vector<const std::byte *> sources_;
    bool allPacked_ = false;          ///< the sends do not depend on the sources' addresses
    std::vector<std::byte *> packed_; ///< a place in `buffer_` for each peer; null where nothing is packed
    std::unique_ptr<std::byte[]> buffer_;
    std::vector<ByteCount> sizes_;
};

/// MPI derived datatypes describe the rows where they lie; runs of rows are joined into blocks.
class DatatypeTransport final : public MessageTransport {
  public:
    using MessageTransport::MessageTransport;
    static TransportDescriptor describe();

  private:
    void bindSends(const Endpoints &endpoints, RequestSet &sends) override;
    void startSends(RequestSet &sends) override;

    std::vector<Datatype> types_;
};

} // namespace DNDS
