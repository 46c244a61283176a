// The program dnds-mesh as a function, so that tests can call it.
#pragma once

#include "Progress.hpp"

#include "DNDS/Mpi/Communicator.hpp"

#include <ostream>
#include <string>
#include <vector>

/// Exit codes of dnds-mesh.
enum ExitCode : int {
    fine = 0,
    warned = 1,    ///< `check` found something doubtful
    unreadable = 2 ///< a file cannot be read or written, or is no mesh; or the command line makes no sense
};

/// Runs one command: `arguments` are those of the command line, without the program's name. Collective; returns the
/// same on all ranks. Rank 0 writes results to `out`, errors (one line each) and progress to `err`. Throws nothing that
/// all ranks know of; what only this rank knows of leaves the function.
int runMeshTool(DNDS::CommunicatorView comm, std::vector<std::string> arguments, std::ostream &out, std::ostream &err,
                Progress::Style progress);
