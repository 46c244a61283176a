#include "DNDS/Mpi/RunMain.hpp"

#include "DNDS/Mpi/EndJob.hpp"

namespace DNDS::Detail {

int runMain(int &argc, char **&argv, const std::function<int(CommunicatorView)> &body, int threadLevel) {
    try {
        const MpiSession mpi(argc, argv, threadLevel);
        try {
            return body(MPI_COMM_WORLD);
        } catch (...) {
            endJob(std::current_exception()); // before the session's end, which no longer knows what was thrown
        }
    } catch (...) { // MPI did not start as it was asked to
        endJob(std::current_exception());
    }
}

} // namespace DNDS::Detail
