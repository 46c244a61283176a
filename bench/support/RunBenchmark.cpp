#include "RunBenchmark.hpp"

#include <cstdio>
#include <exception>

namespace DNDS::Bench {

int runBenchmark(const char *name, int argc, char **argv, int (*run)(int argc, char **argv, CommunicatorView comm),
                 void (*beforeMpi)()) {
    try {
        if (beforeMpi != nullptr)
            beforeMpi();
        // When an exception passes the session it ends the job: what happened is printed before.
        const MpiSession mpi(argc, argv);
        try {
            return run(argc, argv, MPI_COMM_WORLD);
        } catch (const std::exception &error) {
            std::fprintf(stderr, "%s: %s\n", name, error.what());
            throw;
        }
    } catch (const std::exception &) {
        return 1;
    }
}

} // namespace DNDS::Bench
