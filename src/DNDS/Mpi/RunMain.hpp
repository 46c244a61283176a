/// @file RunMain.hpp
/// @brief The main function of programs that use DNDS, and the detection of ranks started by another MPI's launcher,
/// each of which believes to be alone.
#pragma once

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <functional>
#include <string>
#include <type_traits>

namespace DNDS {

/// @cond
namespace Detail {
int runMain(int &argc, char **&argv, const std::function<int(CommunicatorView)> &body, int threadLevel);
} // namespace Detail
/// @endcond

/// Starts MPI, runs `body` with all ranks, ends MPI, and returns the result of `body` (0 if that is void):
///
///     int main(int argc, char **argv) {
///         return DNDS::runMain(argc, argv, [&](DNDS::CommunicatorView world) { ... });
///     }
///
/// An exception that leaves `body` on any rank is written to stderr with its rank, and ends all ranks by MPI_Abort with
/// exit code 1: no rank waits for one that has ended. Where all ranks fail for the same reason, it is written once.
/// Nothing is thrown. Collective over MPI_COMM_WORLD.
///
/// `threadLevel` is passed to MpiSession. Code that must run before MPI starts goes before the call.
template <class Body>
int runMain(int &argc, char **&argv, Body &&body, int threadLevel = MPI_THREAD_FUNNELED) {
    if constexpr (std::is_void_v<std::invoke_result_t<Body &, CommunicatorView>>)
        return Detail::runMain(
            argc, argv,
            [&body](CommunicatorView world) {
                body(world);
                return 0;
            },
            threadLevel);
    else
        return Detail::runMain(argc, argv, std::ref(body), threadLevel);
}

/// Warning for the case that `launcher` started several processes and MPI counts `ranks` of them; empty where these
/// agree, or another process warns: the launcher's first does. Local.
std::string foreignLauncherWarning(const LauncherInfo &launcher, int ranks, const std::string &mpiVersion);

/// Writes that warning to stderr, if there is one, for this process and its running MPI. Local.
void warnOfForeignLauncher();

} // namespace DNDS
