#include "DNDS/Transport/MessageTransport.hpp"

#include <algorithm>

namespace DNDS {

namespace {

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

} // namespace

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

void MessageTransport::start() {
    received_ = false;
    sent_ = false;
    receives_.startAll();
    startSends();
}

TransportDescriptor PackedTransport::describe() {
    TransportDescriptor transport = describeHostMessages<PackedTransport>(TransportKind::Packed, "packed");
    transport.order = 1;
    transport.preference = 10;
    return transport;
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

TransportDescriptor DatatypeTransport::describe() {
    return describeHostMessages<DatatypeTransport>(TransportKind::Datatype, "datatype");
}

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

} // namespace DNDS
