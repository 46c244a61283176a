/// @file Interleave.hpp
/// @brief Times several ways of doing one thing in turns, so that all of them meet the same state of the machine.
#pragma once

#include "NodeSync.hpp"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace DNDS::Bench {

/// One of the things that are compared. Each repetition runs `prepare`, lines the ranks up, times `timed`, and runs
/// `finish`.
struct Contestant {
    std::string name;
    std::function<void()> prepare; ///< untimed; may be empty
    std::function<void()> timed;
    std::function<void()> finish; ///< untimed; may be empty
};

/// Amount of measurement.
struct BlockPlan {
    int blocks = 16;               ///< each contestant's turns
    double secondsPerBlock = 0.02; ///< timed parts in one turn; it sets the number of repetitions
    int minRepetitions = 5;
    int maxRepetitions = 200;
    int warmUps = 2;          ///< untimed repetitions at the start of a turn
    double nearBelow = 120.0; ///< one-way nanoseconds that divide near from far
};

/// One turn of one contestant.
struct Block {
    double microseconds = 0.0; ///< median over repetitions of the maximum over ranks
    double latency = 0.0;      ///< between ranks 0 and 1, one way in nanoseconds, at the start of the turn
    Regime regime = Regime::Unknown;
    std::vector<double> times; ///< microseconds of each repetition, the maximum over ranks
};

/// The blocks of one contestant in one regime, taken together.
struct Summary {
    double microseconds; ///< median over blocks, or NotMeasured
    double latency;      ///< median over blocks
    int blocks = 0;
    std::vector<double> times; ///< times of all repetitions, ascending
};

/// Runs all contestants in turns, in an order that rotates from round to round. Collective; the results, one list of
/// blocks a contestant, are the same on all ranks. A timed part takes from a rank's leaving the barrier to the end of
/// `timed` on that rank; no barrier and no bookkeeping is inside.
std::vector<std::vector<Block>> interleave(CommunicatorView comm, NodeSync &sync,
                                           std::span<const Contestant> contestants, const BlockPlan &plan);

/// Local.
Summary summarize(std::span<const Block> blocks, Regime regime);

} // namespace DNDS::Bench
