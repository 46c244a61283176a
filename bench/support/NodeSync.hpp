/// @file NodeSync.hpp
/// @brief Lines ranks up before a timed part, and measures how far apart the cores of two ranks are.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <exception>
#include <string_view>

namespace DNDS::Bench {

/// Whether the cores of ranks 0 and 1 are neighbours. A virtual machine's cores move about, and the time of any
/// exchange changes several-fold with that, so that only numbers of one regime can be compared.
enum class Regime : unsigned char {
    Near,
    Far,
    SharedCore, ///< ranks 0 and 1 take turns on one core
    Mixed,      ///< changed while measuring: not reported
    Unknown     ///< ranks 0 and 1 share no memory, or there is one rank only
};

/// "near", "far", "shared core", "mixed", "unknown".
std::string_view regimeName(Regime regime);
/// The regime of a stretch of time from the latencies at both of its ends, in nanoseconds. Microseconds mean a shared
/// core.
Regime regimeOf(double before, double after, double nearBelow);

/// Binds each rank to one of the cores that its node allows it, in turn, as launchers of production jobs do: the kernel
/// would else move ranks about and now and then put two of them on one core. Returns the core, or -1 where that is not
/// possible. Collective.
int pinToCore(CommunicatorView comm);

/// A barrier and a latency probe in a few shared cache lines. Unlike MPI's barrier it neither moves messages nor, where
/// ranks outnumber cores, waits for milliseconds. Falls back to MPI_Barrier when the ranks span several nodes.
class NodeSync {
  public:
    /// Collective.
    explicit NodeSync(CommunicatorView comm);
    NodeSync(const NodeSync &) = delete;
    NodeSync &operator=(const NodeSync &) = delete;
    /// Collective.
    ~NodeSync();

    /// Collective. Returns within about one core-to-core latency on all ranks.
    void barrier();

    /// The median time in nanoseconds that a flag takes one way between ranks 0 and 1, NotMeasured where they share no
    /// memory. Collective; some 50 microseconds; the other ranks yield their cores meanwhile.
    double probe();

  private:
    struct Lines;

    CommunicatorView comm_;
    MPI_Win window_ = MPI_WIN_NULL;
    Lines *lines_ = nullptr;
    unsigned round_ = 0;
    int exceptions_ = std::uncaught_exceptions();
};

} // namespace DNDS::Bench
