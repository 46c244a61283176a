#include "DNDS/Mpi/RunMain.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/EndJob.hpp"

namespace DNDS::Detail {

// An exception ends the whole job, since other ranks may wait for this one; a return value ends this rank alone, in
// MPI_Finalize with the others.
int runMain(int &argc, char **&argv, const std::function<int(CommunicatorView)> &body, int threadLevel) {
    int code = 0;
    const std::exception_ptr failure = attempt([&] { // MPI may refuse the requested start
        const MpiSession mpi(argc, argv, threadLevel);
        if (const std::exception_ptr thrown = attempt([&] { code = body(MPI_COMM_WORLD); }))
            endJob(thrown); // before the session ends and loses the exception
    });
    if (failure)
        endJob(failure);
    return code;
}

} // namespace DNDS::Detail
