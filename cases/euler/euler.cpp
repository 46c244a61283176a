// euler: compressible flow on unstructured meshes. See README.md.
//
//   mpiexec -n 4 euler wedge.json --set time.steps=100

#include "Simulation.hpp"

#include "DNDS/Mpi/RunMain.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <thread>

namespace {

struct Arguments {
    std::string file;
    std::vector<std::string> changes;
    bool dryRun = false;
    Euler::ProgressStyle progress = Euler::ProgressStyle::Auto;
    std::string restart;
    Euler::RestartChoice allowed;
};

/// Parses; a number is the code to end with.
std::optional<int> parse(DNDS::CommunicatorView comm, int argc, char **argv, Arguments &arguments) {
    CLI::App app("Solves the Euler equations of compressible flow on unstructured meshes, on any number of ranks.",
                 "euler");
    app.add_option("FILE", arguments.file, "the configuration: JSON with comments, see README.md")->required();
    app.add_option("--set", arguments.changes, "changes the configuration; more than once if need be")
        ->type_name("KEY.KEY=VALUE")
        ->allow_extra_args(false);
    app.add_option("--restart", arguments.restart, "continues from a checkpoint: a file, or 'latest' of output.folder");
    app.add_flag("--allow-changes", arguments.allowed.allowChanges,
                 "goes on although the checkpoint has other settings");
    app.add_flag("--restart-from-other-mesh", arguments.allowed.otherMesh,
                 "goes on although the checkpoint is for another mesh of as many cells");
    app.add_flag("--dry-run,--check", arguments.dryRun,
                 "checks everything, prints memory and messages of each rank, and ends");
    const std::map<std::string, Euler::ProgressStyle> styles{{"auto", Euler::ProgressStyle::Auto},
                                                             {"line", Euler::ProgressStyle::Line},
                                                             {"lines", Euler::ProgressStyle::Lines},
                                                             {"none", Euler::ProgressStyle::None}};
    app.add_option("--progress", arguments.progress,
                   "how to show it: a line that is rewritten, for terminals, or lines every five seconds")
        ->transform(CLI::Transformer(styles).description(""))
        ->type_name("auto|line|lines|none");
    app.footer("Keys are those of the configuration, for instance time.steps=100 or mesh.box.cells=[60,40].\n"
               "Files go to the folder output.folder. Ends with 0 if all is well, with 2 and a message where\n"
               "configuration, mesh or flow are wrong, with 1 where a rank fails alone.");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &error) {
        return comm.rank() == 0 ? app.exit(error) : error.get_exit_code();
    }
    return std::nullopt;
}

/// Whether all ranks come here before some seconds are over. Over a communicator of its own, since others may be in any
/// other call.
bool allCome(DNDS::CommunicatorView comm) {
    constexpr double timeout = 5;
    MPI_Request request = MPI_REQUEST_NULL;
    if (MPI_Ibarrier(comm.handle(), &request) != MPI_SUCCESS)
        return false;
    int done = 0;
    for (const double end = MPI_Wtime() + timeout; done == 0 && MPI_Wtime() < end;) {
        if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return done != 0;
}

int run(DNDS::CommunicatorView world, int argc, char **argv) {
    const DNDS::Communicator failures = DNDS::Communicator::duplicate(world);
    Arguments arguments;
    if (const auto code = parse(world, argc, argv, arguments))
        return *code;
    try {
        Euler::Simulation simulation(world, Euler::readConfiguration(world, arguments.file, arguments.changes));
        const std::string description = simulation.describe();
        if (world.rank() == 0)
            std::cout << description << std::flush;
        if (!arguments.restart.empty())
            simulation.restart(arguments.restart, arguments.allowed, world.rank() == 0 ? &std::cout : nullptr);
        if (arguments.dryRun) {
            const std::string plan = simulation.plan();
            if (world.rank() == 0)
                std::cout << plan << std::flush;
            return 0;
        }
        simulation(world.rank() == 0 ? &std::cout : nullptr, arguments.progress);
        return 0;
    } catch (const DNDS::Error &error) {
        // Errors of the input are thrown by all ranks. A rank that fails alone (its device, say) must not leave others
        // waiting.
        if (!allCome(failures.view())) {
            std::cerr << fmt::format("euler: rank {} fails alone and ends the job: {}\n", world.rank(), error.what())
                      << std::flush; // in one piece: its peers may fail, too
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        if (world.rank() == 0)
            std::cerr << "euler: " << error.message() << std::endl;
        return 2;
    }
}

} // namespace

int main(int argc, char **argv) {
    return DNDS::runMain(argc, argv, [&](DNDS::CommunicatorView world) { return run(world, argc, argv); });
}
