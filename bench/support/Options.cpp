#include "Options.hpp"

#include <CLI/CLI.hpp>

#include <sstream>

namespace DNDS::Bench {

void CommonOptions::addTo(CLI::App &app) {
    app.add_flag("--quick", quick, "small sizes and few repetitions: does it run, not how fast");
    app.add_option("--json", json, "write the records to this file");
    app.add_option("--blocks", plan.blocks, "turns of each method")->capture_default_str()->check(CLI::PositiveNumber);
    app.add_option("--block-seconds", plan.secondsPerBlock, "timed seconds in one turn")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    app.add_option("--near-below", plan.nearBelow, "core-to-core nanoseconds, one way, that divide near from far")
        ->capture_default_str();
    app.add_flag("!--no-pin", pin, "leave ranks where the launcher and the kernel put them");
    // A quick run changes defaults only: what is asked for explicitly stays.
    app.parse_complete_callback([this, &app] {
        if (!quick)
            return;
        if (app.count("--blocks") == 0)
            plan.blocks = 4;
        if (app.count("--block-seconds") == 0)
            plan.secondsPerBlock = 0.003;
        plan.maxRepetitions = 50;
        plan.minRepetitions = 3;
    });
}

std::optional<int> parse(CLI::App &app, int argc, char **argv, CommunicatorView comm) {
    try {
        app.parse(argc, argv);
        return std::nullopt;
    } catch (const CLI::ParseError &error) {
        std::ostringstream silence;
        return comm.rank() == 0 ? app.exit(error) : app.exit(error, silence, silence);
    }
}

} // namespace DNDS::Bench
