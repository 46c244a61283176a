/// @file StopSignal.hpp
/// @brief Signals with which batch systems warn, agreed on by all ranks.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <csignal>
#include <memory>

namespace Euler {

/// While one lives, SIGTERM and SIGUSR1 are noted instead of ending the process. One at a time in a process.
class StopSignal {
  public:
    /// Local.
    explicit StopSignal(DNDS::CommunicatorView comm);
    StopSignal(const StopSignal &) = delete;
    StopSignal &operator=(const StopSignal &) = delete;
    ~StopSignal();

    /// A note of some rank.
    struct Notice {
        bool stop = false;    ///< a signal
        bool request = false; ///< `request` of rank 0
    };
    /// The ranks' answers to the last call; those to this one are reduced until the next. Collective.
    Notice exchange(bool request);

  private:
    struct Reduction;

    void wait();

    DNDS::CommunicatorView comm_;
    std::unique_ptr<Reduction> reduction_;
    struct sigaction terminate_ {};
    struct sigaction user_ {};
};

} // namespace Euler
