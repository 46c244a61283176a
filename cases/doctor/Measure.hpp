/// @file Measure.hpp
/// @brief Speed of communication between ranks.
#pragma once

#include "Machine.hpp"

namespace DNDS::Doctor {

/// Latency and bandwidth of messages between all pairs of ranks of this rank's machine, and between the first ranks of
/// machines that follow each other: a list of `from`, `to`, `latency_us`, `megabytes_per_s`, `same_machine`, the same
/// on all ranks. One pair of a machine at a time. Collective.
Json measurePairs(CommunicatorView world);

/// Pulls of a field whose ranks are a ring, by each available transport, checked: a list of `transport`,
/// `microseconds` (median of the slowest rank; null where it was not used), `paths` (transports really used), `wrong`
/// (ghosts), `error`; and for rows on the host `by_hand_microseconds`, of the same by persistent messages, in turns.
/// Collective.
Json measurePulls(CommunicatorView world);

} // namespace DNDS::Doctor
