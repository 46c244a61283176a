#include "Comm.hpp"

#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/RollCall.hpp"
#include "DNDS/Mpi/RunMain.hpp"

#include <nanobind/stl/string.h>

#include <array>
#include <string>

namespace DNDS::Python {

namespace nb = nanobind;

namespace {

std::string libraryVersion() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    checkMpi(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
    return {text.data(), static_cast<std::size_t>(length)};
}

/// mpi4py.MPI, once it is known to use the same MPI library: handles of another one would be invalid here.
nb::module_ checkedMpi4py() {
    nb::module_ mpi = nb::module_::import_("mpi4py.MPI");
    static bool checked = false;
    if (!checked) {
        const auto theirs = nb::cast<std::string>(mpi.attr("Get_library_version")());
        const std::string ours = libraryVersion();
        // MPI may pad its text with zeros and blanks.
        if (theirs.substr(0, theirs.find_last_not_of(" \n") + 1) != ours.substr(0, ours.find_last_not_of(" \n") + 1))
            throw nb::import_error(("dnds was built with another MPI than mpi4py.\n  dnds:   " + ours +
                                    "\n  mpi4py: " + theirs + "\nInstall mpi4py for the MPI of dnds, or build dnds " +
                                    "with -DMPI_CXX_COMPILER= the compiler of mpi4py's MPI.")
                                       .c_str());
        checked = true;
    }
    return mpi;
}

} // namespace

CommPtr commOf(nb::handle comm) {
    const nb::module_ mpi = checkedMpi4py();
    const nb::object given = comm.is_none() ? nb::object(mpi.attr("COMM_WORLD")) : nb::borrow(comm);
    if (!nb::isinstance(given, mpi.attr("Comm"))) {
        const std::string type = nb::cast<std::string>(nb::str(given.type()));
        throw nb::type_error(("comm must be a communicator of mpi4py, not " + type).c_str());
    }
    const MPI_Comm handle = MPI_Comm_f2c(nb::cast<MPI_Fint>(given.attr("py2f")()));
    return std::make_shared<const Comm>(Comm{given, CommunicatorView(handle)});
}

void bindComm(nb::module_ &module) {
    module.def("mpi_library_version", &libraryVersion, "The version text of the MPI library that dnds uses. Local.");
    module.def(
        "recover",
        [](nb::handle comm) {
            const CommPtr mine = commOf(comm);
            const nb::gil_scoped_release others;
            recover(mine->view);
        },
        nb::arg("comm").none() = nb::none(), nb::sig("def recover(comm: mpi4py.MPI.Comm | None = None) -> None"),
        R"(Makes a communicator and all that uses it usable again, after a failure on any rank.

Owned rows keep their values; ghosts are stale; plans, fields and exchanges go on without being made again. On all ranks,
each outside of other calls. Raises PeerError where a rank does not come. Collective.)");
    module.def(
        "revoke", [](nb::handle comm, const std::string &why) { revoke(commOf(comm)->view, why); },
        nb::arg("comm").none(), nb::arg("why"), nb::sig("def revoke(comm: mpi4py.MPI.Comm | None, why: str) -> None"),
        R"(Stops all ranks: they raise RevokedError, which names this rank and says why, where they wait or in their next call.

Does nothing where a rank has failed before, or there is only one. What raises in a call of dnds does so itself. Local.)");
    module.def(
        "is_revoked", [](nb::handle comm) { return isRevoked(commOf(comm)->view); },
        nb::arg("comm").none() = nb::none(), nb::sig("def is_revoked(comm: mpi4py.MPI.Comm | None = None) -> bool"),
        "Whether a rank has failed, as far as this one knows. Local.");
    module.def(
        "_check_mpi",
        [] {
            (void)checkedMpi4py();
            warnOfForeignLauncher();
            Detail::prepareRollCall();
        },
        "Throws ImportError unless mpi4py uses the same MPI. Warns on stderr if the launcher does not. Prepares the "
        "roll call. Local.");
}

} // namespace DNDS::Python
