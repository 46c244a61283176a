/// @file Options.hpp
/// @brief The options that all benchmarks share, and parsing them on every rank with one rank speaking.
#pragma once

#include "Interleave.hpp"

#include "DNDS/Mpi/Communicator.hpp"

#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace DNDS::Bench {

/// --quick, --json FILE, --blocks N, --block-seconds S, --near-below NS, --no-pin.
struct CommonOptions {
    bool quick = false;
    bool pin = true; ///< for `pinToCore`
    std::string json;
    BlockPlan plan;

    /// Adds them to `app`. The object must outlive the parsing.
    void addTo(CLI::App &app);
};

/// Parses on every rank; rank 0 prints help and errors. Returns the exit code when the program should end. Collective
/// in the sense that all ranks return the same.
std::optional<int> parse(CLI::App &app, int argc, char **argv, CommunicatorView comm);

} // namespace DNDS::Bench
