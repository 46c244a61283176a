#include "DNDS/Base/Environment.hpp"

#include "DNDS/Base/Error.hpp"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace DNDS {

namespace {

std::string textOf(const char *name) {
    const char *value = std::getenv(name);
    return value != nullptr ? value : "";
}

template <class Number>
Number numberOf(const char *name, Number otherwise) {
    const std::string text = textOf(name);
    if (text.empty())
        return otherwise;
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    DNDS_CHECK(error == std::errc() && end == text.data() + text.size() && number >= Number{0}, ArgumentError,
               "the environment variable {} is '{}': give a number that is not negative", name, text);
    return number;
}

bool switchOf(const char *name) {
    const std::string text = textOf(name);
    DNDS_CHECK(text.empty() || text == "0" || text == "1", ArgumentError,
               "the environment variable {} is '{}': give 0 or 1", name, text);
    return text == "1";
}

} // namespace

Environment readEnvironment() {
    return {.transport = textOf("DNDS_TRANSPORT"),
            .ranksPerNode = numberOf("DNDS_RANKS_PER_NODE", 0),
            .waitTimeout = numberOf("DNDS_WAIT_TIMEOUT", 0.0),
            .forceHostStaging = switchOf("DNDS_FORCE_HOST_STAGING"),
            .disableGpuAwareMpi = switchOf("DNDS_DISABLE_GPU_AWARE_MPI")};
}

std::string mpiSwitchForDevices() {
    for (const char *name : {"MV2_USE_CUDA", "MPICH_GPU_SUPPORT_ENABLED", "I_MPI_OFFLOAD"})
        if (const std::string value = textOf(name); !value.empty() && value != "0")
            return name;
    return {};
}

int rankByLauncher() {
    for (const char *name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK",
                             "PALS_LOCAL_RANKID", "SLURM_LOCALID"})
        if (!textOf(name).empty())
            return numberOf(name, 0);
    return 0;
}

bool emulatedDevicePretends(const std::string &what) {
    return fmt::format(",{},", textOf("DNDS_EMULATED_DEVICE")).find(fmt::format(",{},", what)) != std::string::npos;
}

} // namespace DNDS
