/// @file ExactSums.hpp
/// @brief Exact sums of rows where they lie: on the host or on the device.
#pragma once

#include "DNDS/Device/Executor.hpp"
#include "DNDS/Mpi/ExactSum.hpp"

#include <span>

namespace DNDS {

/// As `exactSums` of `Mpi/ExactSum.hpp`, of rows in the memory of the executor: [own rows x columns]; some hundred
/// bytes come to the host. The bits are those of the host. On the device it runs after what the stream holds, and the
/// stream was waited for on return. Collective. Throws also what the device reports on some rank, on all ranks.
void exactSums(CommunicatorView comm, const Executor &on, std::span<const real> rows, std::span<real> sums);

/// The same of columns, or of products of columns, in the memory of the executor.
void exactSums(CommunicatorView comm, const Executor &on, const ExactColumns &columns, std::span<real> sums);

/// The same in a running call, by messages.
void exactSums(MessageReduction &messages, const Executor &on, const ExactColumns &columns, std::span<real> sums);

} // namespace DNDS
