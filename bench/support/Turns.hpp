/// @file Turns.hpp
/// @brief Long work, done in several ways that take turns: wall-clock time and processor time of each.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace DNDS::Bench {

/// One of the things that are compared. Ranks without a part in it do nothing, and sleep until the others are done.
struct Way {
    std::string name;
    std::function<void()> timed;
};

/// Times of turns, each of its slowest rank.
struct TurnTimes {
    std::vector<double> wall;      ///< seconds
    std::vector<double> processor; ///< seconds that a rank's core worked for it, waiting for others included

    double medianWall() const;
    double medianProcessor() const;
};

/// A turn of each way without timing, then `turns` of each, in an order that rotates. Collective; the results are the
/// same on all ranks.
std::vector<TurnTimes> takeTurns(CommunicatorView comm, std::span<const Way> ways, int turns);

} // namespace DNDS::Bench
