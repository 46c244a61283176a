/// @file TransportTable.hpp
/// @brief The one place where transports are described, chosen and made.
#pragma once

#include "DNDS/Transport/TransportDescriptor.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace DNDS {

/// The transport for one peer, and why.
struct TransportChoice {
    TransportKind kind = TransportKind::Auto;
    std::string name;
    std::string why;
};

/// The descriptor; null if no transport has this kind, as none has Auto. Local.
const TransportDescriptor *findTransport(TransportKind kind) noexcept;
/// The same; throws ArgumentError instead.
const TransportDescriptor &transportOf(TransportKind kind);

/// Calls `prepare` of all transports that serve `space`. Collective.
void prepareTransports(CommunicatorContext &context, MemorySpace space);

/// Chooses for this rank and `peer`, for rows in `space`; both of them come to the same answer. Local, after
/// `prepareTransports`. `requested` comes from the caller; where it is Auto, DNDS_TRANSPORT counts, if it names a
/// transport that serves `space`. Throws ArgumentError when one of them names an unknown transport, or `requested`
/// one that does not serve `space`; StateError when the transport that was asked for cannot be used here.
TransportChoice chooseTransport(const CommunicatorContext &context, int peer, TransportKind requested,
                                MemorySpace space = MemorySpace::Host);

/// One transport for each plan, in the order in which they are to be started. Local. Throws as they do.
std::vector<std::unique_ptr<Transport>> makeTransports(std::map<TransportKind, TransportPlan> plans,
                                                       const TransportSetup &setup);

} // namespace DNDS
