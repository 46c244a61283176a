/// @file MakeTransports.hpp
/// @brief The one place where transports are chosen.
#pragma once

#include "DNDS/Exchange/Transport.hpp"

#include <memory>
#include <string>
#include <vector>

namespace DNDS {

/// The transport for one peer, and why.
struct TransportChoice {
    TransportKind kind = TransportKind::Auto;
    std::string why;
};

/// Chooses for this rank and `peer`; both of them come to the same answer. Local. Throws ArgumentError when `options`
/// or the environment name a transport that there is not, StateError when the node-shared one is forced where memory
/// cannot be shared.
TransportChoice chooseTransport(const CommunicatorContext &context, int peer, const ExchangeOptions &options);

/// A transport of the given kind for the peers in `plan`. `round` is the context's number of this set-up. Local.
std::unique_ptr<Transport> makeTransport(TransportKind kind, TransportPlan plan, const CommunicatorContext &context,
                                         std::uint64_t round);

} // namespace DNDS
