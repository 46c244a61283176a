#include "DNDS/Transport/MessageTransport.hpp"

#include "DNDS/Storage/HostDeviceBuffer.hpp"

#include <algorithm>

namespace DNDS {

std::string PersistentMessages::awaited() const {
    for (std::size_t k = 0; !received_ && k < plan_.incoming.size(); ++k)
        if (!receives_.complete(k))
            return fmt::format("rank {} to send rows", plan_.incoming[k].peer);
    for (std::size_t k = 0; !sent_ && k < plan_.outgoing.size(); ++k)
        if (!sends_.complete(k))
            return fmt::format("rank {} to take rows", plan_.outgoing[k].peer);
    return "rows";
}

bool PersistentMessages::settle() noexcept {
    // Receives are cancelled, sends continue: a peer may have matched one already, and MPI tells when it needs the
    // buffer no longer.
    received_ = sent_ = true;
    const bool received = receives_.settle();
    return sends_.settle() && received;
}

void PersistentMessages::addSend(const void *from, int count, MPI_Datatype type) {
    const int peer = plan_.outgoing[sends_.size()].peer;
    checkMpi(MPI_Send_init(from, count, type, peer, plan_.channel.tag, plan_.channel.comm, sends_.add()),
             "MPI_Send_init");
}

void PersistentMessages::addReceive(void *to, int count, MPI_Datatype type) {
    const int peer = plan_.incoming[receives_.size()].peer;
    checkMpi(MPI_Recv_init(to, count, type, peer, plan_.channel.tag, plan_.channel.comm, receives_.add()),
             "MPI_Recv_init");
}

namespace {

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

  private:
    void bindSends(const Endpoints &endpoints) override;
    void startSends() override { sends_.startAll(); }

    /// One a message, kept as long as its request.
    std::vector<Datatype> types_;
};

/// Absolute addresses go with MPI_BOTTOM, so that one datatype can span several arrays.
std::size_t addressOf(const std::byte *pointer) { return reinterpret_cast<std::size_t>(pointer); }

/// The lines of the table that packed messages and datatypes have in common.
template <class Made>
TransportDescriptor describeHostMessages(TransportKind kind, const char *name) {
    TransportDescriptor transport;
    transport.kind = kind;
    transport.name = name;
    transport.servesHost = transport.pollsMpi = true;
    transport.reach = [](const CommunicatorContext &, int) { return Reach::yes(); };
    transport.make = [](TransportPlan plan, const TransportSetup &) { return std::make_unique<Made>(std::move(plan)); };
    return transport;
}

void MessageTransport::renew(const CommunicatorContext &context) {
    receives_.clear();
    sends_.clear();
    bound_ = {};
    plan_.channel = context.renewed(plan_.channel);
}

void MessageTransport::bind(const Endpoints &endpoints) {
    // Solvers swap old and new fathers each step: requests are kept for memory that did not move. If making them
    // fails half-way, `bound_` is empty, and the next call makes all of them.
    if (endpoints.destinations != bound_.destinations) {
        bound_.destinations.clear();
        bindReceives(endpoints);
        bound_.destinations = endpoints.destinations;
    }
    if (endpoints.sources != bound_.sources) {
        bound_.sources.clear();
        bindSends(endpoints);
        bound_.sources = endpoints.sources;
    }
}

// O(runs). Datatypes and requests hold absolute addresses, so they are made again when a destination moves.
void MessageTransport::bindReceives(const Endpoints &endpoints) {
    receives_.clear();
    sizes_.clear();
    types_.clear();
    sizes_.reserve(plan_.incoming.size());
    for (const Incoming &incoming : plan_.incoming) {
        // One run is received as plain bytes at its address; several as a datatype of absolute addresses.
        std::vector<ByteBlock> blocks;
        for (std::size_t p = 0; p < incoming.parts.size(); ++p)
            for (const ByteBlock &run : incoming.parts[p].runs())
                blocks.push_back({addressOf(endpoints.destinations[p]) + run.offset, run.bytes});
        if (blocks.size() == 1) {
            const ByteCount &size = sizes_.emplace_back(incoming.bytes);
            addReceive(reinterpret_cast<void *>(blocks.front().offset), size.count(), size.type());
        } else {
            addReceive(MPI_BOTTOM, 1, types_.emplace_back(Datatype::fromBlocks(blocks)).handle());
        }
    }
}

// Receives first: rows that arrive while this rank packs go straight to their destinations, without MPI's buffer of
// unexpected messages.
void MessageTransport::start() {
    received_ = false;
    sent_ = false;
    receives_.startAll();
    startSends();
}

void PackedTransport::bindSends(const Endpoints &endpoints) {
    // If all messages are packed, the requests refer to the buffer alone: another father costs nothing.
    sources_ = endpoints.sources;
    if (allPacked_ && sends_.size() == plan_.outgoing.size())
        return;
    sends_.clear();
    packed_.assign(plan_.outgoing.size(), nullptr);
    sizes_.clear();
    sizes_.reserve(plan_.outgoing.size());

    // One buffer for all peers, each beginning on a cache line of its own; `direct` are rows that are sent from where
    // they are.
    std::vector<std::size_t> offsets(plan_.outgoing.size());
    std::vector<const std::byte *> direct(plan_.outgoing.size(), nullptr);
    std::size_t total = 0;
    for (std::size_t k = 0; k < plan_.outgoing.size(); ++k) {
        const auto &[peer, parts, bytes, widths] = plan_.outgoing[k];
        const auto first = std::ranges::find_if(parts, [](const RowGather &part) { return part.bytes() > 0; });
        if (first->contiguous() && first->bytes() == bytes) {
            direct[k] = sources_[static_cast<std::size_t>(first - parts.begin())] + first->firstByte();
        } else {
            constexpr std::size_t cacheLine = 64;
            offsets[k] = total;
            total += (bytes + cacheLine - 1) / cacheLine * cacheLine;
        }
    }
    buffer_ = HostDeviceBuffer(total);
    std::byte *const buffer = total > 0 ? buffer_.write(MemorySpace::Host, "packed rows") : nullptr;
    allPacked_ = std::ranges::all_of(direct, [](const std::byte *from) { return from == nullptr; });
    for (std::size_t k = 0; k < plan_.outgoing.size(); ++k) {
        const std::byte *from = direct[k];
        if (from == nullptr)
            from = packed_[k] = buffer + offsets[k];
        const ByteCount &size = sizes_.emplace_back(plan_.outgoing[k].bytes);
        addSend(from, size.count(), size.type());
    }
}

// O(bytes packed). A message that is contiguous in its array is sent from there, without a copy.
void PackedTransport::startSends() {
    for (std::size_t k = 0; k < plan_.outgoing.size(); ++k) {
        if (std::byte *to = packed_[k]; to != nullptr) {
            for (std::size_t p = 0; p < plan_.outgoing[k].parts.size(); ++p) {
                const RowGather &part = plan_.outgoing[k].parts[p];
                part.gather(sources_[p], to);
                to += part.bytes();
            }
        }
        // Each message leaves as soon as it is packed, while the next one is being packed.
        sends_.start(k);
    }
}

// O(runs). MPI packs, or sends in place, as it sees fit.
void DatatypeTransport::bindSends(const Endpoints &endpoints) {
    sends_.clear();
    types_.clear();
    for (const Outgoing &outgoing : plan_.outgoing) {
        // One datatype a message, over all parts: runs of all arrays at absolute addresses. Made again when any
        // source has moved.
        std::vector<ByteBlock> all;
        for (std::size_t p = 0; p < outgoing.parts.size(); ++p)
            for (const ByteBlock &block : outgoing.parts[p].blocks())
                all.push_back({addressOf(endpoints.sources[p]) + block.offset, block.bytes});
        addSend(MPI_BOTTOM, 1, types_.emplace_back(Datatype::fromBlocks(all)).handle());
    }
}

} // namespace

TransportDescriptor describePackedTransport() {
    TransportDescriptor transport = describeHostMessages<PackedTransport>(TransportKind::Packed, "packed");
    transport.order = 1;
    transport.preference = 10;
    return transport;
}

TransportDescriptor describeDatatypeTransport() {
    return describeHostMessages<DatatypeTransport>(TransportKind::Datatype, "datatype");
}

} // namespace DNDS
