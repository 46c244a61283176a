// euler: compressible flow on unstructured meshes. See README.md.
//
//   mpiexec -n 4 euler wedge.json --set time.steps=100

#include "Simulation.hpp"

#include <CLI/CLI.hpp>

#include <iostream>

namespace {

struct Arguments {
    std::string file;
    std::vector<std::string> changes;
    bool check = false;
};

/// Parses; a number is the code to end with.
std::optional<int> parse(DNDS::CommunicatorView comm, int argc, char **argv, Arguments &arguments) {
    CLI::App app("Solves the Euler equations of compressible flow on unstructured meshes, on any number of ranks.",
                 "euler");
    app.add_option("FILE", arguments.file, "the configuration: JSON with comments, see README.md")->required();
    app.add_option("--set", arguments.changes, "changes the configuration: key.key=value; more than once if need be")
        ->allow_extra_args(false);
    app.add_flag("--check", arguments.check, "reads configuration and mesh, says what would be computed, and ends");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &error) {
        return comm.rank() == 0 ? app.exit(error) : error.get_exit_code();
    }
    return std::nullopt;
}

} // namespace

int main(int argc, char **argv) {
    const DNDS::MpiSession mpi(argc, argv);
    const DNDS::CommunicatorView world(MPI_COMM_WORLD);
    Arguments arguments;
    if (const auto code = parse(world, argc, argv, arguments))
        return *code;
    try {
        Euler::Simulation run(world, Euler::readConfiguration(world, arguments.file, arguments.changes));
        const std::string description = run.describe();
        if (world.rank() == 0)
            std::cout << description << std::flush;
        if (!arguments.check)
            run(world.rank() == 0 ? &std::cout : nullptr);
        return 0;
    } catch (const DNDS::Error &error) {
        if (error.kind() == DNDS::ErrorKind::Mpi || error.kind() == DNDS::ErrorKind::Peer)
            throw; // other ranks may not know
        if (world.rank() == 0)
            std::cerr << "euler: " << error.message() << std::endl;
        return 2;
    }
}
