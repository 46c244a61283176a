#include "DNDS/Mpi/RunMain.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <array>
#include <string_view>

namespace DNDS {

// Apart from MPI, so that it can be tested: `ranks` is what MPI counts, `launcher` what the environment says.
std::string foreignLauncherWarning(const LauncherInfo &launcher, int ranks, const std::string &mpiVersion) {
    // A rank of an MPI that its launcher does not know is a job of one rank. Of all these "jobs" the one started
    // first speaks.
    if (ranks != 1 || launcher.ranks <= 1 || launcher.rank > 0)
        return {};
    return fmt::format("{} processes were started ({}={}), but MPI sees one rank: each of them computes "
                       "everything alone. The launcher (mpiexec, srun) belongs to another MPI than the program, "
                       "which has {}: start it with that one's.",
                       launcher.ranks, launcher.variable, launcher.ranks,
                       mpiVersion.substr(0, mpiVersion.find_first_of(",\n")));
}

void warnOfForeignLauncher() {
    // A job of several ranks needs no further look: its launcher and its MPI know each other.
    int ranks = 0;
    checkMpi(MPI_Comm_size(MPI_COMM_WORLD, &ranks), "MPI_Comm_size");
    if (ranks != 1)
        return;
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> version{};
    int length = 0;
    checkMpi(MPI_Get_library_version(version.data(), &length), "MPI_Get_library_version");
    const std::string warning = foreignLauncherWarning(launcherInfo(), ranks, version.data());
    if (!warning.empty())
        warn(std::string_view(warning));
}

} // namespace DNDS
