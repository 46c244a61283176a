/// @file RequireSame.hpp
/// @brief Checks that all ranks pass the same: settings, names, types.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace DNDS {

/// Whether all ranks pass the same key, a hash for example. Collective; one reduction.
bool isSameOnAll(const CommunicatorView &comm, std::uint64_t key);

/// Throws on all ranks where their lists of texts differ, and does nothing otherwise. Collective; one reduction where
/// all is well.
///
/// On each rank whose list differs from rank 0's, `complain(k, first)` is called and throws: entry `k` is the first
/// that differs, `first` is what rank 0 has there, or null where its list is shorter; this rank's own list ends at `k`
/// where that is shorter. All ranks throw the complaint of the lowest rank that has one.
void requireSame(const CommunicatorView &comm, std::span<const std::string> mine,
                 const std::function<void(std::size_t k, const std::string *first)> &complain);

} // namespace DNDS
