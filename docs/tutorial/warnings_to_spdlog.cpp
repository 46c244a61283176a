// Gives the library's warnings to spdlog, and checks that they arrive. Usage: spdlog FOLDER

#include "DNDS/DNDS.hpp"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

/// The library's warnings in the file of this rank; those of rank 0 on the terminal, too.
void logWarnings(int rank) {
    std::vector<spdlog::sink_ptr> sinks{
        std::make_shared<spdlog::sinks::basic_file_sink_mt>(fmt::format("warnings-{}.log", rank))};
    if (rank == 0)
        sinks.push_back(std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    auto logger = std::make_shared<spdlog::logger>("DNDS", sinks.begin(), sinks.end());
    DNDS::setWarningSink([logger](std::string_view text) { logger->warn("{}", text); });
}

} // namespace

int main(int argc, char **argv) {
    return DNDS::runMain(argc, argv, [&](DNDS::CommunicatorView world) {
        if (argc > 1)
            std::filesystem::current_path(argv[1]);
        const std::string name = fmt::format("warnings-{}.log", world.rank());
        std::filesystem::remove(name);
        logWarnings(world.rank());
        DNDS::warn("rank {} tries it", world.rank());
        DNDS::setWarningSink({}); // the logger ends, and with it its file
        std::ifstream file(name);
        const std::string log{std::istreambuf_iterator<char>(file), {}};
        const bool arrived =
            log.find(fmt::format("[DNDS] [warning] rank {} tries it", world.rank())) != std::string::npos;
        return arrived ? 0 : 1;
    });
}
