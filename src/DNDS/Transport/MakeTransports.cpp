#include "DNDS/Transport/MakeTransports.hpp"

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Transport/DeviceLocalTransport.hpp"
#include "DNDS/Transport/DeviceMessageTransport.hpp"
#include "DNDS/Transport/DevicePeerTransport.hpp"
#include "DNDS/Transport/DeviceTopology.hpp"
#include "DNDS/Transport/LocalTransport.hpp"
#include "DNDS/Transport/MessageTransport.hpp"
#include "DNDS/Transport/NodeSharedTransport.hpp"

#include <array>
#include <utility>

namespace DNDS {

namespace {

constexpr std::array<std::pair<TransportKind, std::string_view>, 8> names{{{TransportKind::Auto, "auto"},
                                                                           {TransportKind::Datatype, "datatype"},
                                                                           {TransportKind::Packed, "packed"},
                                                                           {TransportKind::NodeShared, "node-shared"},
                                                                           {TransportKind::Local, "local"},
                                                                           {TransportKind::Staged, "staged"},
                                                                           {TransportKind::Direct, "direct"},
                                                                           {TransportKind::Peer, "peer"}}};

constexpr std::string_view choices =
    "auto, datatype, packed or node-shared, or for device memory staged, direct or peer";

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

/// The fastest that was tried and works: device to device on the node, MPI from device memory, the host.
TransportChoice chooseOnDevice(const CommunicatorContext &context, int peer, const TransportChoice &wish) {
    const Environment environment = readEnvironment();
    if (environment.forceHostStaging)
        return {TransportKind::Staged, "DNDS_FORCE_HOST_STAGING is set"};
    if (wish.kind == TransportKind::Staged)
        return wish;
    DNDS_CHECK(context.devices() != nullptr, StateError, "no exchange of device memory was made on this communicator");
    const DeviceTopology &devices = *context.devices();
    const bool onNode = context.node().sameNode(peer);
    std::string whyNot;
    if (wish.kind != TransportKind::Direct) {
        if (devices.reaches(peer))
            return wish.kind == TransportKind::Peer
                       ? wish
                       : TransportChoice{TransportKind::Peer, "on this node, where devices read each other's memory"};
        DNDS_CHECK(wish.kind == TransportKind::Auto || !onNode, StateError, "the peer transport is {}, but rank {}: {}",
                   wish.why, peer, devices.whyNot(peer));
        whyNot = onNode ? fmt::format("on this node, but {}; ", devices.whyNot(peer)) : "on another node; ";
    }
    const bool takes = devices.mpiTakesDeviceMemory() && !environment.disableGpuAwareMpi;
    const std::string about = environment.disableGpuAwareMpi ? "DNDS_DISABLE_GPU_AWARE_MPI is set" : devices.aboutMpi();
    if (takes)
        return wish.kind == TransportKind::Direct ? wish : TransportChoice{TransportKind::Direct, whyNot + about};
    DNDS_CHECK(wish.kind != TransportKind::Direct, StateError, "the direct transport is {}, but {}", wish.why, about);
    return {TransportKind::Staged, whyNot + about};
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
    return space == MemorySpace::Device ? chooseOnDevice(context, peer, wish)
                                        : chooseOnHost(context.node(), peer, std::move(wish));
}

std::unique_ptr<Transport> makeTransport(TransportKind kind, TransportPlan plan, const CommunicatorContext &context,
                                         std::uint64_t round, const std::shared_ptr<DeviceLane> &lane) {
    switch (kind) {
    case TransportKind::Local:
        if (lane)
            return std::make_unique<DeviceLocalTransport>(std::move(plan), lane);
        return std::make_unique<LocalTransport>(std::move(plan));
    case TransportKind::Peer:
        return std::make_unique<DevicePeerTransport>(std::move(plan), context, round, lane,
                                                     readEnvironment().waitTimeout);
    case TransportKind::Direct:
    case TransportKind::Staged:
        return std::make_unique<DeviceMessageTransport>(kind, std::move(plan), lane, context.node(),
                                                        readEnvironment().waitTimeout);
    case TransportKind::Datatype:
        return std::make_unique<DatatypeTransport>(std::move(plan), context.node(), readEnvironment().waitTimeout);
    case TransportKind::Packed:
        return std::make_unique<PackedTransport>(std::move(plan), context.node(), readEnvironment().waitTimeout);
    case TransportKind::NodeShared:
        return std::make_unique<NodeSharedTransport>(std::move(plan), context.node(), round,
                                                     readEnvironment().waitTimeout);
    case TransportKind::Auto:
        break;
    }
    throw ArgumentError(fmt::format("no transport is called '{}'", transportName(kind)));
}

} // namespace DNDS
