#include "DNDS/Transport/TransportTable.hpp"

#include "DNDS/Base/Environment.hpp"

#include <algorithm>
#include <utility>

namespace DNDS {

namespace {

/// All transports, in descending preference, those of equal preference as listed. Never destroyed: exchanges with
/// static storage refer to it.
const std::vector<TransportDescriptor> &transports() {
    static const auto &table = *new std::vector<TransportDescriptor>([] {
        std::vector<TransportDescriptor> made{
            describeDatatypeTransport(), describePackedTransport(), describeNodeSharedTransport(),
            describeLocalTransport(),    describeStagedTransport(), describeDirectTransport(),
            describePeerTransport(),
        };
        std::ranges::stable_sort(made, std::greater<>(), &TransportDescriptor::preference);
        return made;
    }());
    return table;
}

/// The names that may be given, for messages.
std::string choices() {
    std::string host = "auto";
    std::string device;
    for (const TransportDescriptor &transport : transports())
        if (!transport.withinRank) {
            if (transport.servesHost)
                host += ", " + transport.name;
            if (transport.servesDevice)
                device += (device.empty() ? "" : ", ") + transport.name;
        }
    return fmt::format("{}; or for device memory {}", host, device);
}

/// Adds a reason that is not listed yet.
void append(std::string &reasons, const std::string &reason) {
    if (reasons.find(reason) != std::string::npos) // none, or that of another transport, too
        return;
    reasons += (reasons.empty() ? "" : "; ") + reason;
}

/// A transport that must be used wherever it is meant for the peer, and the origin of the request; null: free choice.
struct RequestedTransport {
    const TransportDescriptor *transport = nullptr;
    const char *why = "";
};

/// By the caller, else by DNDS_TRANSPORT. Throws as `chooseTransport`.
RequestedTransport requestedTransport(TransportKind requested, MemorySpace space) {
    // A transport that the caller asks for must serve the rows' memory; one from the environment applies to the
    // exchanges whose memory it serves, and others choose freely.
    const auto requirePeers = [&](const TransportDescriptor &transport, std::string_view who) {
        DNDS_CHECK(!transport.withinRank, ArgumentError,
                   "{}the {} transport serves rows of one's own rank only: choose one of {}", who, transport.name,
                   choices());
    };
    if (requested != TransportKind::Auto) {
        const TransportDescriptor &transport = transportOf(requested);
        requirePeers(transport, "");
        DNDS_CHECK(transport.serves(space), ArgumentError,
                   "the {} transport does not serve rows in {} memory: choose one of {}, or another space",
                   transport.name, space == MemorySpace::Device ? "device" : "host", choices());
        return {&transport, "asked for by the caller"};
    }
    const std::string name = readEnvironment().transport;
    const TransportKind kind = name.empty() ? TransportKind::Auto : transportFromName(name);
    if (kind == TransportKind::Auto)
        return {};
    const TransportDescriptor &transport = transportOf(kind);
    requirePeers(transport, "DNDS_TRANSPORT: ");
    if (!transport.serves(space))
        return {};
    return {&transport, "asked for by DNDS_TRANSPORT"};
}

} // namespace

// A scan of seven lines: cheaper than a map, and only set-ups ask.
const TransportDescriptor *findTransport(TransportKind kind) noexcept {
    const auto found = std::ranges::find(transports(), kind, &TransportDescriptor::kind);
    return found == transports().end() ? nullptr : &*found;
}

const TransportDescriptor &transportOf(TransportKind kind) {
    const TransportDescriptor *found = findTransport(kind);
    DNDS_CHECK(found != nullptr, ArgumentError, "there is no transport of number {}", static_cast<int>(kind));
    return *found;
}

// Names of the table, so that a transport is named in one place.
std::string_view transportName(TransportKind kind) {
    if (kind == TransportKind::Auto)
        return "auto";
    const TransportDescriptor *transport = findTransport(kind);
    return transport != nullptr ? std::string_view(transport->name) : "unknown";
}

TransportKind transportFromName(std::string_view name) {
    if (name == "auto")
        return TransportKind::Auto;
    const auto found = std::ranges::find(transports(), name, &TransportDescriptor::name);
    DNDS_CHECK(found != transports().end(), ArgumentError, "there is no transport '{}': choose one of {}", name,
               choices());
    return found->kind;
}

// Collective: every rank walks through the same table, so the calls of `prepare` match.
void prepareTransports(CommunicatorContext &context, MemorySpace space) {
    for (const TransportDescriptor &transport : transports())
        if (transport.serves(space) && transport.prepare)
            transport.prepare(context);
}

// A transport that was asked for comes first; if it is not meant for this peer, as one within nodes for a rank of
// another node, or if none was asked for, preference decides. Rows of the rank itself have transports of their own.
TransportChoice chooseTransport(const CommunicatorContext &context, int peer, TransportKind asked, MemorySpace space) {
    const bool own = context.comm().rank() == peer;
    const RequestedTransport requested = own ? RequestedTransport{} : requestedTransport(asked, space);
    if (requested.transport != nullptr) {
        const Reach reach = requested.transport->reach(context, peer);
        if (reach.usable)
            return {requested.transport->kind, requested.transport->name, requested.why};
        DNDS_CHECK(reach.fallBack, StateError, "the {} transport is {}, but cannot be used with rank {}: {}",
                   requested.transport->name, requested.why, peer, reach.why);
    }
    // In descending preference, the first that is usable; `why` collects the reasons against the others. Both ranks
    // of a pair get the same answers (`reach`), and so make the same choice.
    std::string why;
    for (const TransportDescriptor &transport : transports()) {
        if (!transport.serves(space) || transport.withinRank != own || transport.preference == 0)
            continue;
        const Reach reach = own ? Reach::yes("rows of this rank itself") : transport.reach(context, peer);
        append(why, reach.why);
        if (reach.usable)
            return {transport.kind, transport.name, why};
    }
    throw StateError(fmt::format("no transport reaches rank {}: {}", peer, why));
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): plans are moved from
std::vector<std::unique_ptr<Transport>> makeTransports(std::map<TransportKind, TransportPlan> plans,
                                                       const TransportSetup &setup) {
    // In ascending `order`: an exchange starts messages first, since they take longest.
    std::vector<std::unique_ptr<Transport>> made;
    made.reserve(plans.size());
    for (auto &[kind, plan] : plans) {
        const TransportDescriptor &descriptor = transportOf(kind);
        made.push_back(descriptor.make(std::move(plan), setup));
        made.back()->descriptor_ = &descriptor;
    }
    std::ranges::stable_sort(made, {}, [](const auto &transport) { return transport->descriptor().order; });
    return made;
}

} // namespace DNDS
