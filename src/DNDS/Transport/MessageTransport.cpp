#include "DNDS/Transport/MessageTransport.hpp"

#include <algorithm>

namespace DNDS {

namespace {

/// Absolute addresses go with MPI_BOTTOM, so that one datatype can span several arrays.
std::size_t addressOf(const std::byte *pointer) { return reinterpret_cast<std::size_t>(pointer); }

/// The parts of a message that hold bytes.
template <class Parts>
std::size_t countNonEmpty(const Parts &parts, std::size_t &last) {
    std::size_t count = 0;
    for (std::size_t p = 0; p < parts.size(); ++p)
        if (parts[p] > 0) {
            ++count;
            last = p;
        }
    return count;
}

constexpr std::size_t cacheLine = 64;

} // namespace

MessageTransport::MessageTransport(TransportPlan plan, const TransportSetup & /*setup*/)
    : plan_(std::move(plan)), statuses_(plan_.incoming.size()) {}

void MessageTransport::renew(const CommunicatorContext &context) {
    receives_.clear();
    sends_.clear();
    bound_ = {};
    plan_.channel = context.renewed(plan_.channel);
    received_ = sent_ = true;
}

void MessageTransport::bind(const Endpoints &endpoints) {
    // Solvers swap old and new fathers each step: what did not move keeps its requests.
    // Where making them fails half-way, `bound_` is empty, and the next call makes all of them.
    if (endpoints.destinations != bound_.destinations) {
        bound_.destinations.clear();
        bindReceives(endpoints);
        bound_.destinations = endpoints.destinations;
    }
    if (endpoints.sources != bound_.sources) {
        bound_.sources.clear();
        bindSends(endpoints, sends_);
        bound_.sources = endpoints.sources;
    }
}

void MessageTransport::bindReceives(const Endpoints &endpoints) {
    receives_.clear();
    sizes_.clear();
    types_.clear();
    sizes_.reserve(plan_.incoming.size());
    for (const Incoming &incoming : plan_.incoming) {
        std::vector<ByteBlock> blocks;
        for (std::size_t p = 0; p < incoming.parts.size(); ++p)
            for (const ByteBlock &run : incoming.parts[p].runs())
                blocks.push_back({addressOf(endpoints.destinations[p]) + run.offset, run.bytes});
        if (blocks.size() == 1) {
            const ByteCount &size = sizes_.emplace_back(incoming.bytes);
            addReceive(reinterpret_cast<void *>(blocks.front().offset), size.count(), size.type(), incoming.peer);
        } else {
            addReceive(MPI_BOTTOM, 1, types_.emplace_back(Datatype::fromBlocks(blocks)).handle(), incoming.peer);
        }
    }
}

void MessageTransport::addReceive(void *to, int count, MPI_Datatype type, int peer) {
    checkMpi(MPI_Recv_init(to, count, type, peer, plan_.channel.tag, plan_.channel.comm, receives_.add()),
             "MPI_Recv_init");
}

void MessageTransport::start() {
    received_ = false;
    sent_ = false;
    receives_.startAll();
    startSends(sends_);
}

bool MessageTransport::progress() {
    received_ = received_ || receives_.testAll(statuses_);
    sent_ = sent_ || sends_.testAll();
    return received_ && sent_;
}

std::string MessageTransport::awaited() const {
    for (std::size_t k = 0; !received_ && k < plan_.incoming.size(); ++k)
        if (!receives_.complete(k))
            return fmt::format("rank {} to send rows", plan_.incoming[k].peer);
    for (std::size_t k = 0; !sent_ && k < plan_.outgoing.size(); ++k)
        if (!sends_.complete(k))
            return fmt::format("rank {} to take rows", plan_.outgoing[k].peer);
    return "rows";
}

TransportDescriptor PackedTransport::describe() {
    TransportDescriptor transport;
    transport.kind = TransportKind::Packed;
    transport.name = "packed";
    transport.servesHost = transport.looksAtMpi = true;
    transport.order = 1;
    transport.preference = 10;
    transport.reach = [](const CommunicatorContext &, int) { return Reach::yes(); };
    transport.make = [](TransportPlan plan, const TransportSetup &setup) {
        return std::make_unique<PackedTransport>(std::move(plan), setup);
    };
    return transport;
}

void PackedTransport::bindSends(const Endpoints &endpoints, RequestSet &sends) {
    sources_ = endpoints.sources;
    if (allPacked_ && sends.size() == outgoing().size())
        return;
    sends.clear();
    packed_.assign(outgoing().size(), nullptr);
    sizes_.clear();
    sizes_.reserve(outgoing().size());

    // One buffer for all peers, each beginning on a cache line of its own.
    std::vector<std::size_t> offsets(outgoing().size());
    std::vector<const std::byte *> direct(outgoing().size(), nullptr);
    std::size_t total = cacheLine;
    for (std::size_t k = 0; k < outgoing().size(); ++k) {
        const std::vector<RowGather> &parts = outgoing()[k].parts;
        std::vector<std::size_t> bytes(parts.size());
        std::transform(parts.begin(), parts.end(), bytes.begin(), [](const RowGather &part) { return part.bytes(); });
        std::size_t only = 0;
        if (countNonEmpty(bytes, only) == 1 && parts[only].contiguous()) {
            direct[k] = sources_[only] + parts[only].firstByte();
        } else {
            offsets[k] = total;
            total += (outgoing()[k].bytes + cacheLine - 1) / cacheLine * cacheLine;
        }
    }
    buffer_ = total > cacheLine ? std::make_unique_for_overwrite<std::byte[]>(total) : nullptr;
    const std::size_t shift = buffer_ ? cacheLine - addressOf(buffer_.get()) % cacheLine : 0;

    allPacked_ = std::count(direct.begin(), direct.end(), nullptr) == static_cast<std::ptrdiff_t>(direct.size());
    for (std::size_t k = 0; k < outgoing().size(); ++k) {
        const std::byte *from = direct[k];
        if (from == nullptr)
            from = packed_[k] = buffer_.get() + offsets[k] - cacheLine + shift;
        const ByteCount &size = sizes_.emplace_back(outgoing()[k].bytes);
        checkMpi(MPI_Send_init(from, size.count(), size.type(), outgoing()[k].peer, channel().tag, channel().comm,
                               sends.add()),
                 "MPI_Send_init");
    }
}

void PackedTransport::startSends(RequestSet &sends) {
    for (std::size_t k = 0; k < outgoing().size(); ++k) {
        if (std::byte *to = packed_[k]; to != nullptr) {
            for (std::size_t p = 0; p < outgoing()[k].parts.size(); ++p) {
                const RowGather &part = outgoing()[k].parts[p];
                part.gather(sources_[p], to);
                to += part.bytes();
            }
        }
        sends.start(k);
    }
}

TransportDescriptor DatatypeTransport::describe() {
    TransportDescriptor transport;
    transport.kind = TransportKind::Datatype;
    transport.name = "datatype";
    transport.servesHost = transport.looksAtMpi = true;
    transport.reach = [](const CommunicatorContext &, int) { return Reach::yes(); };
    transport.make = [](TransportPlan plan, const TransportSetup &setup) {
        return std::make_unique<DatatypeTransport>(std::move(plan), setup);
    };
    return transport;
}

void DatatypeTransport::bindSends(const Endpoints &endpoints, RequestSet &sends) {
    sends.clear();
    types_.clear();
    for (const Outgoing &outgoing : outgoing()) {
        std::vector<ByteBlock> all;
        for (std::size_t p = 0; p < outgoing.parts.size(); ++p) {
            for (ByteBlock block : outgoing.parts[p].blocks()) {
                block.offset += addressOf(endpoints.sources[p]);
                all.push_back(block);
            }
        }
        const Datatype &type = types_.emplace_back(Datatype::fromBlocks(all));
        checkMpi(MPI_Send_init(MPI_BOTTOM, 1, type.handle(), outgoing.peer, channel().tag, channel().comm, sends.add()),
                 "MPI_Send_init");
    }
}

void DatatypeTransport::startSends(RequestSet &sends) { sends.startAll(); }

} // namespace DNDS
