/// @file Environment.hpp
/// @brief The only place that reads environment variables.
#pragma once

#include <array>
#include <string>
#include <utility>

namespace DNDS {

/// What users can choose without changing a program.
struct Environment {
    /// DNDS_TRANSPORT: the transport of exchanges that force none: auto, datatype, packed, node-shared; for rows in
    /// device memory staged, direct, peer. Empty: not set.
    std::string transport;
    /// DNDS_RANKS_PER_NODE: divides each machine into virtual nodes of this many ranks, to test multi-node paths on one
    /// machine. 0: not set.
    int ranksPerNode = 0;
    /// DNDS_WAIT_TIMEOUT: seconds after which a rank that waits for a peer throws. 0: it waits while the peer's process
    /// lives, which is known for ranks of this node only.
    double waitTimeout = 0.0;
    /// DNDS_FORCE_HOST_STAGING=1: rows in device memory always go through the host.
    bool forceHostStaging = false;
    /// DNDS_DISABLE_GPU_AWARE_MPI=1: device memory is never passed to MPI.
    bool disableGpuAwareMpi = false;
    /// DNDS_ONE_SIDED_PROXY=1: kernels reach all other ranks through the proxy, also where loads and stores would do.
    bool oneSidedProxy = false;
    /// DNDS_TRACE: the file in which ranks record what they do when (`Task::Trace`). Empty: not set.
    std::string trace;
    /// DNDS_REPORT=1: exchanges are counted, and reported when the program ends (`report`).
    bool report = false;
    /// DNDS_ROLL_CALL=1: on SIGUSR1 each rank writes to stderr what it is doing.
    bool rollCall = false;

    /// The variables and their values as text; empty where the value is the default. Local.
    std::array<std::pair<const char *, std::string>, 9> choices() const;
};

/// Reads the process's environment. Local. Throws ArgumentError with the variable's name for values that are no numbers
/// or, for switches, neither 0 nor 1. Whether ranks agree is checked when a communicator is first used
/// (`CommunicatorContext::of`).
Environment readEnvironment();

/// DNDS_TRACE alone, which is needed before MPI starts. Local.
std::string traceFile();

/// The variable, if set, that enables device memory in MPI libraries without a query for it (MVAPICH2, Intel MPI); else
/// empty. Local.
std::string mpiSwitchForDevices();

/// This process's number on its machine, as mpiexec or srun set it: known before MPI_Init, when some MPI libraries
/// expect the device to be chosen. 0 if the launcher does not set it. Local.
int rankByLauncher();

/// How many processes the launcher started, and which of them this is.
struct LauncherSays {
    std::string variable; ///< that holds the number of ranks; empty if none is set
    int ranks = 0;        ///< 0 if unknown
    int rank = 0;
};

/// What mpiexec or srun set, whichever MPI the program uses. Variables of mpiexec take precedence over Slurm's, since
/// mpiexec may itself run in a Slurm task; of nested launchers, the one with the fewest processes counts. Variables of
/// allocations (SLURM_NTASKS) are ignored: a program in an allocation may run alone. Values that are no numbers are
/// ignored. Local.
LauncherSays launcherSays();

/// CUDA_MPS_PIPE_DIRECTORY: where NVIDIA's MPS talks with programs; its default where it is not set. Local.
std::string mpsFolder();

/// Whether DNDS_EMULATED_DEVICE contains `what`. It lists what the emulated device pretends, for tests: words such as
/// "gpu-aware-mpi", separated by commas. Local.
bool emulatedDevicePretends(const std::string &what);

} // namespace DNDS
