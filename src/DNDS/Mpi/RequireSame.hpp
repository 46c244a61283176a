/// @file RequireSame.hpp
/// @brief Checks that all ranks pass the same settings, names or types.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/BroadcastList.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace DNDS {

/// Whether all ranks pass the same key, a hash for example. Collective; one reduction.
bool isSameOnAll(const CommunicatorView &comm, std::uint64_t key);

/// The same for a list of texts.
bool isSameOnAll(const CommunicatorView &comm, std::span<const std::string> texts);

/// Throws on all ranks if their lists of texts differ, and does nothing otherwise. Collective; without differences one
/// reduction, and no allocation.
///
/// On each rank whose list differs from rank 0's, `complain(k, first)` is called and throws: entry `k` is the first
/// that differs, `first` points to rank 0's entry, or is null if rank 0's list is shorter; this rank's own list
/// ends at `k` if that one is shorter. All ranks throw the complaint of the lowest rank with one.
template <class Complain>
void requireSame(const CommunicatorView &comm, std::span<const std::string> mine, Complain &&complain) {
    // By hash, so the usual case costs 16 bytes a rank; texts travel only to explain a difference. Different texts
    // with the same 64-bit hash would pass.
    if (isSameOnAll(comm, mine)) [[likely]]
        return;
    std::vector<std::string> first;
    comm.guarded([&] { first.assign(mine.begin(), mine.end()); });
    broadcastStrings(comm, first);
    comm.guarded([&] {
        for (std::size_t k = 0; k < std::max(mine.size(), first.size()); ++k)
            if (k >= mine.size() || k >= first.size() || mine[k] != first[k])
                complain(k, k < first.size() ? &first[k] : nullptr);
    });
}

/// The same for settings, as "name = value": throws ArgumentError on all ranks that names `call` and the first setting
/// that differs. `describe` makes the list, on each rank the same names in the same order.
template <class Describe>
void requireSameSettings(const CommunicatorView &comm, const char *call, Describe &&describe) {
    std::vector<std::string> mine;
    comm.guarded([&] { mine = describe(); });
    requireSame(comm, mine, [&](std::size_t k, const std::string *first) {
        throw ArgumentError(fmt::format("{}: options differ between ranks: {} on rank {}, {} on rank 0", call, mine[k],
                                        comm.rank(), *first));
    });
}

} // namespace DNDS
