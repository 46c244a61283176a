// dnds-mesh: looks at mesh files, checks, converts, refines, generates and partitions them. See README.md.

#include "MeshTool.hpp"

#include "DNDS/Mpi/RunMain.hpp"

#include <exception>
#include <iostream>

#include <unistd.h>

namespace {

int run(DNDS::CommunicatorView world, int argc, char **argv) {
    try {
        const int code = runMeshTool(world, {argv + 1, argv + argc}, std::cout, std::cerr,
                                     ::isatty(STDERR_FILENO) == 1 ? Progress::Style::Line : Progress::Style::Lines);
        std::cout.flush();
        return code;
    } catch (const std::exception &error) {
        // Other ranks may not know, and wait.
        std::cerr << "dnds-mesh: " << error.what() << std::endl;
        MPI_Abort(MPI_COMM_WORLD, unreadable);
        return unreadable;
    }
}

} // namespace

int main(int argc, char **argv) {
    return DNDS::runMain(argc, argv, [&](DNDS::CommunicatorView world) { return run(world, argc, argv); });
}
