/// @file BroadcastList.hpp
/// @brief Broadcasts of rank 0's lists and strings, whose length the other ranks do not know.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <string>
#include <vector>

namespace DNDS {

/// Copies rank 0's list to all; any length. Collective; a broadcast, a reduction and a broadcast. Throws on all ranks
/// where one lacks memory for it.
template <class T>
void broadcastList(const CommunicatorView &comm, std::vector<T> &list) {
    std::size_t size = list.size();
    comm.broadcast(size);
    comm.guarded([&] { list.resize(size); });
    comm.broadcast(list.data(), size);
}

/// Copies rank 0's strings to all; any number and length. Collective. Errors as above.
void broadcastStrings(const CommunicatorView &comm, std::vector<std::string> &strings);

} // namespace DNDS
