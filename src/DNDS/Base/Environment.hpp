/// @file Environment.hpp
/// @brief The only place that reads environment variables.
#pragma once

#include <array>
#include <string>
#include <utility>

namespace DNDS {

/// Choices of users without changing a program. docs/reference/settings.md lists them: scripts/settings.py reads the
/// comments.
struct Environment {
    /// DNDS_TRANSPORT=auto|packed|datatype|node-shared|staged|direct|peer: the transport of exchanges whose
    /// `ExchangeOptions` leave it at `Auto`; the last three are for rows in device memory
    /// (docs/reference/gpu-transports.md), the others for rows in host memory. Unset or `auto`: DNDS chooses for each
    /// peer.
    std::string transport; ///< empty: not set
    /// DNDS_RANKS_PER_NODE=NUMBER: divides each machine into virtual nodes of this many ranks, to test multi-node paths
    /// on one machine.
    int ranksPerNode = 0; ///< 0: not set
    /// DNDS_WAIT_TIMEOUT=SECONDS: how long a rank waits for a peer, on its node or another one, before it throws
    /// `PeerError`. Unset or 0: as long as the peer's process lives; on other nodes, for ever. It bounds pulls and
    /// pushes in flight, reductions of plans and waits of one-sided access. Collective calls of MPI, as in set-up,
    /// cannot be cancelled: DNDS warns of calls that take longer, with the activities of the node's ranks.
    double waitTimeout = 0.0;
    /// DNDS_FORCE_HOST_STAGING=0|1: 1: rows in device memory always go through the host.
    bool forceHostStaging = false;
    /// DNDS_DISABLE_GPU_AWARE_MPI=0|1: 1: device memory is never passed to MPI, not even for a trial.
    bool disableGpuAwareMpi = false;
    /// DNDS_ONE_SIDED_PROXY=0|1: 1: kernels reach all other ranks through the proxy
    /// (`docs/guides/one_sided.md#the-proxy-of-kernels`), also ranks that loads and stores would reach; heaps and
    /// windows for which a proxy is impossible throw. Unset or 0: the proxy is used where it is needed and possible.
    bool oneSidedProxy = false;
    /// DNDS_TRACE=FILE: ranks record when they computed, pulled and waited, into this file (docs/guides/tracing.md). It
    /// is read when the program starts.
    std::string trace; ///< empty: not set
    /// DNDS_REPORT=0|1: 1: exchanges are counted, and rank 0 prints a report (docs/guides/diagnosis.md) on stderr when
    /// the program ends.
    bool report = false;
    /// DNDS_ROLL_CALL=0|1: 1: on SIGUSR1 each rank writes its activity to stderr
    /// (`docs/guides/diagnosis.md#roll-call`).
    bool rollCall = false;
    /// DNDS_WARNINGS=stderr|rank0|none|FILE: where warnings go that the program does not take (`setWarningSink`): to
    /// stderr, as where it is not set; to stderr by rank 0 alone; nowhere; or to the end of a file, in whose name `%r`
    /// stands for the rank (`docs/reference/errors.md#warnings`). Failures that end the job go to stderr always.
    std::string warnings; ///< empty: not set

    /// The variables and their values as text; empty where the value is the default. Local.
    std::array<std::pair<const char *, std::string>, 10> choices() const;
};

/// Reads the process's environment. Local. Throws ArgumentError with the variable's name for values that are no numbers
/// or, for switches, neither 0 nor 1. Whether ranks agree is checked when a communicator is first used
/// (`CommunicatorContext::of`).
Environment readEnvironment();

/// DNDS_TRACE alone, which is needed before MPI starts. Local.
std::string traceFile();

/// DNDS_WARNINGS alone, which is needed before MPI starts, too. Local.
std::string warningPlace();

/// The variable, if set, that enables device memory in MPI libraries without a query for it; else empty. Local.
///
/// MV2_USE_CUDA, MPICH_GPU_SUPPORT_ENABLED, I_MPI_OFFLOAD: set for MVAPICH2, Cray MPICH and Intel MPI. Where one is
/// neither empty nor `0`, MPI is assumed to accept device memory if the library has no query for it. DNDS then tries
/// it, and may use `direct` (docs/reference/gpu-transports.md).
std::string mpiSwitchForDevices();

/// This process's number on its machine, as mpiexec or srun set it: known before MPI_Init, when some MPI libraries
/// expect the device to be chosen. 0 if the launcher does not set it. Local.
///
/// OMPI_COMM_WORLD_LOCAL_RANK, MPI_LOCALRANKID, MV2_COMM_WORLD_LOCAL_RANK, PALS_LOCAL_RANKID, SLURM_LOCALID: set by
/// launchers: the number of the rank on its machine, from the first of these that is set, else 0 (`rankByLauncher`).
int rankByLauncher();

/// The number of processes that the launcher started, and this process's number.
struct LauncherInfo {
    std::string variable; ///< name of the one that holds the number of ranks; empty if none is set
    int ranks = 0;        ///< 0 if unknown
    int rank = 0;
};

/// The settings of mpiexec or srun, for any MPI of the program. Variables of mpiexec take precedence over Slurm's, as
/// mpiexec may itself run in a Slurm task; of nested launchers, the one with the fewest processes counts. Variables of
/// allocations (SLURM_NTASKS) are ignored: a program in an allocation may run alone. Values that are no numbers are
/// ignored. Local.
///
/// OMPI_COMM_WORLD_SIZE, OMPI_COMM_WORLD_RANK, PMI_SIZE, PMI_RANK, MV2_COMM_WORLD_SIZE, MV2_COMM_WORLD_RANK,
/// SLURM_STEP_NUM_TASKS, SLURM_PROCID: set by launchers: the number of processes, and this process's number. If
/// there are several but MPI sees one rank, the launcher belongs to another MPI, and the first process warns.
LauncherInfo launcherInfo();

/// The folder by which NVIDIA's MPS talks with programs; its default where the variable is not set. Local.
///
/// CUDA_MPS_PIPE_DIRECTORY=FOLDER: tells daemons of NVIDIA's MPS apart (`/tmp/nvidia-mps` where it is not set) when
/// ranks that share a GPU want kernels to wait (`docs/guides/one_sided.md#kernels-that-wait`).
std::string mpsFolder();

/// Whether DNDS_EMULATED_DEVICE contains the word `what`. Local.
///
/// DNDS_EMULATED_DEVICE=WORDS: what the emulated device pretends, for tests: words of `gpu-aware-mpi`, `lying-mpi`,
/// `crashing-mpi`, `no-sharing`, `no-graphs`, `no-kernels`, `no-room`, `no-peer-atomics`, `takes-turns`,
/// `loads-lazily`, `lost`, separated by commas. Ranks may differ in it.
bool emulatedDeviceOption(const std::string &what);

} // namespace DNDS
