#include "DNDS/Transport/TransportTable.hpp"

#include "DNDS/Base/Environment.hpp"

#include <algorithm>
#include <utility>

namespace DNDS {

namespace {

/// The table. A transport that comes with DNDS has its line here.
constexpr TransportDescriptor (*builtIn[])() = {
    describeDatatypeTransport, describePackedTransport, describeNodeSharedTransport, describeLocalTransport,
    describeStagedTransport,   describeDirectTransport, describePeerTransport,
};

/// For names outside of any communicator.
const TransportTable &builtInTable() {
    static const TransportTable table;
    return table;
}

/// Numbers of added transports begin here.
constexpr int firstAdded = 64;

/// Adds a reason that is not listed yet.
void append(std::string &reasons, const std::string &reason) {
    if (reasons.find(reason) != std::string::npos) // none, or that of another transport, too
        return;
    reasons += (reasons.empty() ? "" : "; ") + reason;
}

} // namespace

TransportTable &TransportTable::of(CommunicatorContext &context) {
    // A table a communicator, not a global one: programs that add transports do not affect libraries with
    // communicators of their own.
    return context.attach<TransportTable>([&] {
        std::shared_ptr<TransportTable> table;
        context.comm().guarded([&] { table = std::make_shared<TransportTable>(); });
        return table;
    });
}

TransportTable::TransportTable() {
    for (const auto describe : builtIn)
        insert(describe());
}

void TransportTable::insert(TransportDescriptor transport) {
    // After the transports of equal preference: the one that was added first is asked first.
    const auto after = std::ranges::upper_bound(lines_, transport.preference, std::greater<>(),
                                                [](const auto &line) { return line->preference; });
    lines_.insert(after, std::make_shared<const TransportDescriptor>(std::move(transport)));
}

TransportKind TransportTable::add(TransportDescriptor transport) {
    DNDS_CHECK(!transport.name.empty() && transport.name != "auto" &&
                   std::ranges::none_of(lines_, [&](const auto &line) { return line->name == transport.name; }),
               ArgumentError, "the name '{}' cannot be given to another transport", transport.name);
    DNDS_CHECK(transport.kind == TransportKind::Auto && transport.reach && transport.make &&
                   (transport.servesHost || transport.servesDevice) && !transport.withinRank,
               ArgumentError,
               "the transport '{}' needs a space that it serves, `reach` and `make`; its kind is given to it",
               transport.name);
    // The same on all ranks, which add the same transports in the same order: kinds are compared between ranks
    // (agreeOnPlan).
    const auto kind = static_cast<TransportKind>(firstAdded + added_);
    transport.kind = kind;
    insert(std::move(transport));
    ++added_;
    return kind;
}

const TransportDescriptor *TransportTable::find(TransportKind kind) const noexcept {
    const auto found = std::ranges::find(lines_, kind, [](const auto &line) { return line->kind; });
    return found == lines_.end() ? nullptr : found->get();
}

const std::shared_ptr<const TransportDescriptor> &TransportTable::line(TransportKind kind) const {
    const auto found = std::ranges::find(lines_, kind, [](const auto &line) { return line->kind; });
    DNDS_CHECK(found != lines_.end(), ArgumentError, "there is no transport of number {} on this communicator",
               static_cast<int>(kind));
    return *found;
}

const TransportDescriptor &TransportTable::at(TransportKind kind) const { return *line(kind); }

std::string TransportTable::choices() const {
    std::string host = "auto";
    std::string device;
    for (const auto &line : lines_)
        if (!line->withinRank) {
            if (line->servesHost)
                host += ", " + line->name;
            if (line->servesDevice)
                device += (device.empty() ? "" : ", ") + line->name;
        }
    return fmt::format("{}; or for device memory {}", host, device);
}

TransportKind TransportTable::kindOf(std::string_view name) const {
    if (name == "auto")
        return TransportKind::Auto;
    const auto found = std::ranges::find(
        lines_, name, [](const auto &line) -> const auto & { return line->name; });
    DNDS_CHECK(found != lines_.end(), ArgumentError, "there is no transport '{}': choose one of {}", name, choices());
    return (*found)->kind;
}

std::string_view TransportTable::nameOf(TransportKind kind) const noexcept {
    if (kind == TransportKind::Auto)
        return "auto";
    const TransportDescriptor *transport = find(kind);
    return transport != nullptr ? std::string_view(transport->name) : "unknown";
}

void TransportTable::prepare(CommunicatorContext &context, MemorySpace space) const {
    for (const auto &line : lines_)
        if (line->serves(space) && line->prepare)
            line->prepare(context);
}

/// A transport that must be used wherever it is meant for the peer, and the origin of the request; null: free choice.
struct TransportTable::RequestedTransport {
    const TransportDescriptor *transport = nullptr;
    const char *why = "";
};

TransportTable::RequestedTransport TransportTable::requestedTransport(TransportKind requested,
                                                                      MemorySpace space) const {
    // A transport that the caller asks for must serve the rows' memory; one from the environment applies to the
    // exchanges whose memory it serves, and others choose freely.
    const auto requirePeers = [&](const TransportDescriptor &transport, std::string_view who) {
        DNDS_CHECK(!transport.withinRank, ArgumentError,
                   "{}the {} transport serves rows of one's own rank only: choose one of {}", who, transport.name,
                   choices());
    };
    if (requested != TransportKind::Auto) {
        const TransportDescriptor &transport = at(requested);
        requirePeers(transport, "");
        DNDS_CHECK(transport.serves(space), ArgumentError,
                   "the {} transport does not serve rows in {} memory: choose one of {}, or another space",
                   transport.name, space == MemorySpace::Device ? "device" : "host", choices());
        return {&transport, "asked for by the caller"};
    }
    const std::string name = readEnvironment().transport;
    const TransportKind kind = name.empty() ? TransportKind::Auto : kindOf(name);
    if (kind == TransportKind::Auto)
        return {};
    const TransportDescriptor &transport = at(kind);
    requirePeers(transport, "DNDS_TRANSPORT: ");
    if (!transport.serves(space))
        return {};
    return {&transport, "asked for by DNDS_TRANSPORT"};
}

TransportChoice TransportTable::choose(const CommunicatorContext &context, int peer, TransportKind asked,
                                       MemorySpace space) const {
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
    for (const auto &line : lines_) {
        if (!line->serves(space) || line->withinRank != own || line->preference == 0)
            continue;
        const Reach reach = own ? Reach::yes("rows of this rank itself") : line->reach(context, peer);
        append(why, reach.why);
        if (reach.usable)
            return {line->kind, line->name, why};
    }
    throw StateError(fmt::format("no transport reaches rank {}: {}", peer, why));
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): plans are moved from
std::vector<std::unique_ptr<Transport>> TransportTable::make(std::map<TransportKind, TransportPlan> plans,
                                                             const TransportSetup &setup) const {
    // In ascending `order`: an exchange starts messages first, since they take longest.
    std::vector<std::unique_ptr<Transport>> made;
    made.reserve(plans.size());
    for (auto &[kind, plan] : plans) {
        const std::shared_ptr<const TransportDescriptor> &descriptor = line(kind);
        made.push_back(descriptor->make(std::move(plan), setup));
        DNDS_CHECK(made.back() != nullptr, StateError, "the transport '{}' made nothing: its `make` returned null",
                   descriptor->name);
        made.back()->descriptor_ = descriptor;
    }
    std::ranges::stable_sort(made, {}, [](const auto &transport) { return transport->descriptor().order; });
    return made;
}

std::string_view transportName(TransportKind kind) {
    const std::string_view name = builtInTable().nameOf(kind);
    return name == "unknown" && static_cast<int>(kind) >= firstAdded ? "added" : name;
}

TransportKind transportFromName(std::string_view name) { return builtInTable().kindOf(name); }

} // namespace DNDS
