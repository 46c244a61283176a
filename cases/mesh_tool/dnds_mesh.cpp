// dnds-mesh: looks at mesh files, checks, converts, generates and partitions them. See README.md.

#include "MeshTool.hpp"

#include <exception>
#include <iostream>

#include <unistd.h>

int main(int argc, char **argv) {
    const DNDS::MpiSession mpi(argc, argv);
    const DNDS::CommunicatorView world(MPI_COMM_WORLD);
    try {
        const int code =
            runMeshTool(world, {argv + 1, argv + argc}, std::cout, std::cerr, ::isatty(STDERR_FILENO) == 1);
        std::cout.flush();
        return code;
    } catch (const std::exception &error) {
        // Other ranks may not know, and wait.
        std::cerr << "dnds-mesh: " << error.what() << std::endl;
        MPI_Abort(MPI_COMM_WORLD, unreadable);
        return unreadable;
    }
}
