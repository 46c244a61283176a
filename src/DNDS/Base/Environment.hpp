/// @file Environment.hpp
/// @brief The one place where environment variables are read.
#pragma once

#include <array>
#include <string>
#include <utility>

namespace DNDS {

/// What users can choose without changing a program.
struct Environment {
    /// DNDS_TRANSPORT: the transport of exchanges that do not force one: auto, datatype, packed, node-shared, or for
    /// rows of device memory staged, direct, peer. Empty: not set.
    std::string transport;
    /// DNDS_RANKS_PER_NODE: divides each machine into virtual nodes of so many ranks, to try multi-node paths on one
    /// machine. 0: not set.
    int ranksPerNode = 0;
    /// DNDS_WAIT_TIMEOUT: seconds after which a rank that waits for a peer gives up with an error. 0: waits as long as
    /// the peer's process lives, which can be seen on this node only.
    double waitTimeout = 0.0;
    /// DNDS_FORCE_HOST_STAGING=1: rows of device memory go by way of the host, whatever else could reach the peer.
    bool forceHostStaging = false;
    /// DNDS_DISABLE_GPU_AWARE_MPI=1: device memory is never given to MPI, nor tried.
    bool disableGpuAwareMpi = false;

    /// The variables and their values as text, which is empty where a value means the same as none. Equal texts are
    /// equal choices. Local.
    std::array<std::pair<const char *, std::string>, 5> choices() const;
};

/// Reads the process's environment. Local. Throws ArgumentError that names the variable for values that are no numbers,
/// or neither 0 nor 1 where that is the choice. Whether ranks agree is checked when a communicator is first used
/// (`CommunicatorContext::of`).
Environment readEnvironment();

/// The variable, if one is set, by which users switch on device memory in MPI libraries that have no query (MVAPICH2,
/// Intel MPI); empty otherwise. Local.
std::string mpiSwitchForDevices();

/// This process's number on its machine, as mpiexec or srun tell it: known before MPI has started, when some MPI
/// libraries want to find a device in use. 0 where nobody says. Local.
int rankByLauncher();

/// How many processes the launcher has started, and which of them this is.
struct LauncherSays {
    std::string variable; ///< the one that tells how many; empty where nobody says
    int ranks = 0;        ///< 0 where nobody says
    int rank = 0;
};

/// What mpiexec or srun say: known whatever MPI the program has. Variables of mpiexec count before Slurm's, whose tasks
/// may be those that started mpiexec; of several launchers, one within the other, the one with the fewest processes
/// counts. Allocations (SLURM_NTASKS) do not: programs may run in them by themselves. What is no number is passed over.
/// Local.
LauncherSays launcherSays();

/// DNDS_EMULATED_DEVICE: what the emulated device is to pretend, for tests: words such as "gpu-aware-mpi", separated by
/// commas. Local.
bool emulatedDevicePretends(const std::string &what);

} // namespace DNDS
