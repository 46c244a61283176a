/// @file NodeMemory.hpp
/// @brief The free memory of a node, and whether it suffices for the requests of its ranks together.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace DNDS {

/// Memory that a process may still take without pushing out others.
struct AvailableMemory {
    static constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

    std::uint64_t machine = unlimited; ///< bytes; unlimited if unknown
    std::uint64_t group = unlimited;   ///< room of the control group (container, batch job) with the least
    std::string groupName;             ///< its folder; empty without limits
};

/// Reads MemAvailable and the limits of this process's control groups (versions 1 and 2), where file caches do not
/// count as used. `root` is the parent of /proc and /sys, for tests. Local; a few files.
AvailableMemory availableMemory(const std::string &root = "");

/// Whether the node has room for `bytes` on this rank and the requests of the other ranks of its node, less the unused
/// memory of this rank's arena; `name` is for messages. Swap is not counted. Throws MemoryError on all ranks if a node
/// lacks memory. Collective; a small gather, O(ranks).
void requireNodeMemory(const CommunicatorContext &context, std::size_t bytes, const std::string &name);

} // namespace DNDS
