#include "DNDS/Exchange/MakeTransports.hpp"

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Exchange/LocalTransport.hpp"
#include "DNDS/Exchange/MessageTransport.hpp"
#include "DNDS/Exchange/NodeSharedTransport.hpp"

#include <array>
#include <utility>

namespace DNDS {

namespace {

constexpr std::array<std::pair<TransportKind, std::string_view>, 5> names{{{TransportKind::Auto, "auto"},
                                                                           {TransportKind::Datatype, "datatype"},
                                                                           {TransportKind::Packed, "packed"},
                                                                           {TransportKind::NodeShared, "node-shared"},
                                                                           {TransportKind::Local, "local"}}};

} // namespace

std::string_view transportName(TransportKind kind) {
    for (const auto &[known, name] : names)
        if (known == kind)
            return name;
    return "unknown";
}

TransportKind transportFromName(std::string_view name) {
    for (const auto &[kind, known] : names)
        if (known == name)
            return kind;
    throw ArgumentError(fmt::format("there is no transport '{}': choose auto, datatype, packed or node-shared", name));
}

TransportChoice chooseTransport(const CommunicatorContext &context, int peer, const ExchangeOptions &options) {
    if (context.comm().rank() == peer)
        return {TransportKind::Local, "rows of this rank itself"};
    TransportKind kind = options.transport;
    std::string why = "asked for by the caller";
    if (kind == TransportKind::Auto) {
        if (const std::string wish = readEnvironment().transport; !wish.empty()) {
            kind = transportFromName(wish);
            why = "asked for by DNDS_TRANSPORT";
        }
    }
    DNDS_CHECK(kind != TransportKind::Local, ArgumentError,
               "the local transport serves rows of one's own rank only: choose auto, datatype, packed or node-shared");
    const NodeTopology &node = context.node();
    if (kind == TransportKind::Datatype || kind == TransportKind::Packed)
        return {kind, std::move(why)};
    if (!node.sameNode(peer))
        return {TransportKind::Packed, "on another node"};
    if (node.arena != nullptr)
        return {TransportKind::NodeShared, kind == TransportKind::NodeShared ? std::move(why) : "on this node"};
    DNDS_CHECK(kind == TransportKind::Auto, StateError, "the node-shared transport is {}, but {}", why,
               node.whyNoArena);
    return {TransportKind::Packed, fmt::format("on this node, but {}", node.whyNoArena)};
}

std::unique_ptr<Transport> makeTransport(TransportKind kind, TransportPlan plan, const CommunicatorContext &context,
                                         std::uint64_t round) {
    switch (kind) {
    case TransportKind::Local:
        return std::make_unique<LocalTransport>(std::move(plan));
    case TransportKind::Datatype:
        return std::make_unique<DatatypeTransport>(std::move(plan));
    case TransportKind::Packed:
        return std::make_unique<PackedTransport>(std::move(plan));
    case TransportKind::NodeShared:
        return std::make_unique<NodeSharedTransport>(std::move(plan), context.node(), round,
                                                     readEnvironment().waitTimeout);
    case TransportKind::Auto:
        break;
    }
    throw ArgumentError(fmt::format("no transport is called '{}'", transportName(kind)));
}

} // namespace DNDS
