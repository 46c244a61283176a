/// @file InOrder.hpp
/// @brief Sends the values of all ranks to rank 0, in order of rank and piece by piece. Part of CgnsWriter.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <cstddef>
#include <functional>
#include <span>

namespace DNDS::Geom::Detail {

/// Calls `take` on rank 0 with the bytes of rank 0, then of rank 1, ...; pieces have at most a few megabytes and are
/// multiples of `unit` bytes. Collective. If `take` throws, all ranks throw after all have sent theirs.
void streamToFirstRank(CommunicatorContext &context, std::span<const std::byte> mine, std::size_t unit,
                       const std::function<void(std::span<const std::byte>)> &take);

} // namespace DNDS::Geom::Detail
