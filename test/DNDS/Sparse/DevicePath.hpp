/// @file DevicePath.hpp
/// @brief Whether messages between devices can take a certain way.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Transport/DeviceTopology.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace DNDS::test {

/// Why "direct" or "peer" is impossible between some ranks. The same on all ranks. Collective.
inline std::optional<std::string> whyNotBy(std::string_view way, const CommunicatorView &comm) {
    const auto context = CommunicatorContext::of(comm);
    const DeviceTopology &devices = DeviceTopology::of(*context);
    if (way == "direct" && !devices.mpiTakesDeviceMemory())
        return devices.aboutMpi();
    int reaches = 1;
    for (int rank = 0; rank < comm.size() && way == "peer"; ++rank)
        if (context->node().sameNode(rank) && !devices.reaches(rank))
            reaches = 0;
    if (comm.allReduce(reaches, MPI_MIN) == 0)
        return "ranks of a node do not reach each other's devices";
    return {};
}

} // namespace DNDS::test
