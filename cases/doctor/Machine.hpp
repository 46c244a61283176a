/// @file Machine.hpp
/// @brief Facts about its machine that one rank can find without asking other ranks.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <filesystem>
#include <vector>

namespace DNDS::Doctor {

using Json = nlohmann::ordered_json;

/// Host, processors that this rank may use, load, quotas and limits, memory, NUMA nodes, huge pages. What the system
/// does not tell is null. Local.
Json lookAtMachine();

/// On rank 0 the objects of all ranks, in order of rank; empty on the others. Collective.
std::vector<Json> gather(CommunicatorView comm, const Json &mine);

/// Writes a hidden file of `bytes` bytes for each rank into `folder`, all at once: seconds, remaining space, the reason
/// for a failure, and whether files can be made there. Local; to be called on all ranks at once.
Json tryFiles(const std::filesystem::path &folder, int rank, std::size_t bytes);

} // namespace DNDS::Doctor
