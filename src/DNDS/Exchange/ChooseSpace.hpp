/// @file ChooseSpace.hpp
/// @brief Whether an exchange moves the host's or the device's copies.
#pragma once

#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/Transport/TransportTable.hpp"

#include <span>

namespace DNDS {

/// The space that this rank asks for, be it by the transport: a transport serves one only. Local.
ExchangeSpace spaceAskedFor(const TransportTable &transports, const ExchangeOptions &options);

/// Which copies an exchange moves: the same answer on all ranks. Collective; one reduction where there may be devices.
/// Throws ArgumentError on all ranks where some ask for one space and some for the other.
MemorySpace agreeOnSpace(const CommunicatorView &comm, std::span<const ExchangeMember> members, ExchangeSpace wish);

} // namespace DNDS
