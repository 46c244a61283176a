/// @file MakeTransports.hpp
/// @brief The one place where transports are chosen.
#pragma once

#include "DNDS/Transport/DeviceLane.hpp"
#include "DNDS/Transport/Transport.hpp"

#include <memory>
#include <string>
#include <vector>

namespace DNDS {

/// The transport for one peer, and why.
struct TransportChoice {
    TransportKind kind = TransportKind::Auto;
    std::string why;
};

/// Chooses for this rank and `peer`, for rows in `space`; both of them come to the same answer. Local. A transport that
/// DNDS_TRANSPORT names is for the space it serves. For device memory the context's devices must be known
/// (`DeviceTopology::of`). Throws ArgumentError when `options` or the environment name a
/// transport that there is not, or `options` one that does not reach `space`; StateError when one is forced that cannot
/// be used here.
TransportChoice chooseTransport(const CommunicatorContext &context, int peer, const ExchangeOptions &options,
                                MemorySpace space = MemorySpace::Host);

/// A transport of the given kind for the peers in `plan`. `round` is the context's number of this set-up; `lane`
/// belongs to exchanges of device memory and is null for others. Local.
std::unique_ptr<Transport> makeTransport(TransportKind kind, TransportPlan plan, const CommunicatorContext &context,
                                         std::uint64_t round, const std::shared_ptr<DeviceLane> &lane);

} // namespace DNDS
