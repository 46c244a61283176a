#include "DNDS/Exchange/MakeTransports.hpp"

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Exchange/DeviceLocalTransport.hpp"
#include "DNDS/Exchange/DeviceMessageTransport.hpp"
#include "DNDS/Exchange/LocalTransport.hpp"
#include "DNDS/Exchange/MessageTransport.hpp"
#include "DNDS/Exchange/NodeSharedTransport.hpp"

#include <array>
#include <utility>

namespace DNDS {

namespace {

constexpr std::array<std::pair<TransportKind, std::string_view>, 6> names{{{TransportKind::Auto, "auto"},
                                                                           {TransportKind::Datatype, "datatype"},
                                                                           {TransportKind::Packed, "packed"},
                                                                           {TransportKind::NodeShared, "node-shared"},
                                                                           {TransportKind::Local, "local"},
                                                                           {TransportKind::Staged, "staged"}}};

constexpr std::string_view choices = "auto, datatype, packed or node-shared, or staged for device memory";

/// The transport that was asked for, and by whom; Auto where nobody asked for one that serves `space`.
TransportChoice wishFor(const ExchangeOptions &options, MemorySpace space) {
    const bool device = space == MemorySpace::Device;
    if (options.transport != TransportKind::Auto) {
        DNDS_CHECK(options.transport != TransportKind::Local, ArgumentError,
                   "the local transport serves rows of one's own rank only: choose {}", choices);
        DNDS_CHECK(isDeviceTransport(options.transport) == device, ArgumentError,
                   "the {} transport does not serve rows in {} memory: choose {}, or another space",
                   transportName(options.transport), device ? "device" : "host", choices);
        return {options.transport, "asked for by the caller"};
    }
    const std::string name = readEnvironment().transport;
    const TransportKind kind = name.empty() ? TransportKind::Auto : transportFromName(name);
    DNDS_CHECK(kind != TransportKind::Local, ArgumentError,
               "DNDS_TRANSPORT: the local transport serves rows of one's own rank only: choose {}", choices);
    if (kind == TransportKind::Auto || isDeviceTransport(kind) != device)
        return {};
    return {kind, "asked for by DNDS_TRANSPORT"};
}

TransportChoice chooseOnHost(const NodeTopology &node, int peer, TransportChoice wish) {
    if (wish.kind == TransportKind::Datatype || wish.kind == TransportKind::Packed)
        return wish;
    if (!node.sameNode(peer))
        return {TransportKind::Packed, "on another node"};
    if (node.arena != nullptr)
        return wish.kind == TransportKind::NodeShared ? wish
                                                      : TransportChoice{TransportKind::NodeShared, "on this node"};
    DNDS_CHECK(wish.kind == TransportKind::Auto, StateError, "the node-shared transport is {}, but {}", wish.why,
               node.whyNoArena);
    return {TransportKind::Packed, fmt::format("on this node, but {}", node.whyNoArena)};
}

TransportChoice chooseOnDevice(const TransportChoice &wish) {
    return wish.kind == TransportKind::Staged ? wish : TransportChoice{TransportKind::Staged, "by way of the host"};
}

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
    throw ArgumentError(fmt::format("there is no transport '{}': choose {}", name, choices));
}

TransportChoice chooseTransport(const CommunicatorContext &context, int peer, const ExchangeOptions &options,
                                MemorySpace space) {
    if (context.comm().rank() == peer)
        return {TransportKind::Local, "rows of this rank itself"};
    TransportChoice wish = wishFor(options, space);
    return space == MemorySpace::Device ? chooseOnDevice(wish) : chooseOnHost(context.node(), peer, std::move(wish));
}

std::unique_ptr<Transport> makeTransport(TransportKind kind, TransportPlan plan, const CommunicatorContext &context,
                                         std::uint64_t round, const std::shared_ptr<DeviceLane> &lane) {
    switch (kind) {
    case TransportKind::Local:
        if (lane)
            return std::make_unique<DeviceLocalTransport>(std::move(plan), lane);
        return std::make_unique<LocalTransport>(std::move(plan));
    case TransportKind::Staged:
        return std::make_unique<DeviceMessageTransport>(kind, std::move(plan), lane, context.node().crowded);
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
