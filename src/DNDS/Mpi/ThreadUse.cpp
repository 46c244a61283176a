#include "DNDS/Mpi/CommunicatorContext.hpp"

namespace DNDS {

// Out of line: the check itself is inlined into every call. `process`: the use counter of the whole process, for MPI
// below MPI_THREAD_MULTIPLE; else that of one object.
void ThreadUse::throwUsed(bool process, const std::string &what, SourceLocation where) {
    if (process)
        throw StateError(
            fmt::format("{} while another thread is in a call of DNDS, but MPI was not started for several "
                        "threads: ask for MPI_THREAD_MULTIPLE (DNDS::MpiSession mpi(argc, argv, "
                        "MPI_THREAD_MULTIPLE)), or let one thread at a time call DNDS",
                        what),
            where);
    throw StateError(
        fmt::format("{} is in use by another thread: start and wait for it on one thread at a time, or set up one "
                    "exchange for each thread",
                    what),
        where);
}

} // namespace DNDS
