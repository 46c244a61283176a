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

/// Chooses for the pair of `rank` and `peer`; both of them come to the same answer. Local. Throws ArgumentError when `options` or
/// the environment name a transport that there is not.
TransportChoice chooseTransport(int rank, int peer, const ExchangeOptions &options);

/// A transport of the given kind for the peers in `plan`. Local.
std::unique_ptr<Transport> makeTransport(TransportKind kind, TransportPlan plan);

} // namespace DNDS
