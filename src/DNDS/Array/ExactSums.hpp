/// @file ExactSums.hpp
/// @brief Exact sums of rows in host or device memory.
#pragma once

#include "DNDS/Device/Executor.hpp"
#include "DNDS/Mpi/ExactSum.hpp"

#include <span>

namespace DNDS {

/// As `exactSums` of `Mpi/ExactSum.hpp`, for rows in the memory of the executor: [own rows x columns]; some hundred
/// bytes are copied to the host. The bits are those of the host. On the device it runs after the present work of the
/// stream, and waits for the stream. Collective. Throws also device errors of any rank, on all ranks.
void exactSums(CommunicatorView comm, const Executor &on, std::span<const real> rows, std::span<real> sums);

/// The same for columns, or products of columns, in the memory of the executor.
void exactSums(CommunicatorView comm, const Executor &on, const ExactColumns &columns, std::span<real> sums);

/// The same in a running call, by messages.
void exactSums(MessageReduction &messages, const Executor &on, const ExactColumns &columns, std::span<real> sums);

} // namespace DNDS
