/// @file CollectiveWatch.hpp
/// @brief Warns of collective MPI calls that last too long; MPI cannot cancel them.
#pragma once

#include <memory>

namespace DNDS {

class NodeArena;

namespace Detail {

/// From now on, a thread of this process warns, once a call, where a collective call has lasted `seconds`, with a roll
/// call; of ranks of a node with the same activity, only the lowest warns. 0: no longer. The call continues: some rank
/// may only be slow. Local; the thread ends with MPI.
void watchCollectives(double seconds);

/// Adds an arena through which the activities of other ranks can be read. Local, thread-safe.
void addWatchedArena(const std::shared_ptr<NodeArena> &arena);

} // namespace Detail
} // namespace DNDS
