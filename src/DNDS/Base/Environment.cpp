#include "DNDS/Base/Environment.hpp"

#include "DNDS/Base/Error.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <utility>

namespace DNDS {

namespace {

/// Unset and empty variables mean the same throughout: the default.
std::string textOf(const char *name) {
    const char *value = std::getenv(name);
    return value != nullptr ? value : "";
}

/// None if the text is no number.
template <class Number>
std::optional<Number> parse(const std::string &text) {
    Number number{};
    // Independent of the locale, unlike strtod, and strict: a number followed by anything else is refused.
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

template <class Number>
Number numberOf(const char *name, Number otherwise) {
    const std::string text = textOf(name);
    const std::optional<Number> number = text.empty() ? otherwise : parse<Number>(text);
    DNDS_CHECK(number && *number >= Number{0}, ArgumentError, "the environment variable {} is '{}': give a number >= 0",
               name, text);
    return *number;
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
            .disableGpuAwareMpi = switchOf("DNDS_DISABLE_GPU_AWARE_MPI"),
            .oneSidedProxy = switchOf("DNDS_ONE_SIDED_PROXY"),
            .trace = traceFile(),
            .report = switchOf("DNDS_REPORT"),
            .rollCall = switchOf("DNDS_ROLL_CALL"),
            .warnings = warningPlace()};
}

std::array<std::pair<const char *, std::string>, 10> Environment::choices() const {
    // Normalised, so that ranks that give the default explicitly agree with ranks that leave a variable unset
    // (CommunicatorContext compares these texts).
    const auto number = [](auto value) { return value == 0 ? std::string() : fmt::format("{}", value); };
    const auto onOrOff = [](bool on) { return std::string(on ? "1" : ""); };
    return {{{"DNDS_TRANSPORT", transport == "auto" ? std::string() : transport},
             {"DNDS_RANKS_PER_NODE", number(ranksPerNode)},
             {"DNDS_WAIT_TIMEOUT", number(waitTimeout)},
             {"DNDS_FORCE_HOST_STAGING", onOrOff(forceHostStaging)},
             {"DNDS_DISABLE_GPU_AWARE_MPI", onOrOff(disableGpuAwareMpi)},
             {"DNDS_ONE_SIDED_PROXY", onOrOff(oneSidedProxy)},
             {"DNDS_TRACE", trace},
             {"DNDS_REPORT", onOrOff(report)},
             {"DNDS_ROLL_CALL", onOrOff(rollCall)},
             {"DNDS_WARNINGS", warnings == "stderr" ? std::string() : warnings}}};
}

std::string traceFile() { return textOf("DNDS_TRACE"); }

std::string warningPlace() { return textOf("DNDS_WARNINGS"); }

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

LauncherInfo launcherInfo() {
    static constexpr std::pair<const char *, const char *> launchers[] = {
        {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
        {"PMI_SIZE", "PMI_RANK"},
        {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"}};
    LauncherInfo info;
    // A launcher within a job of another one inherits the outer one's variables; the fewest processes are those of
    // the innermost launcher.
    const auto ask = [&](const char *size, const char *rank) {
        const int ranks = parse<int>(textOf(size)).value_or(0);
        if (ranks > 0 && (info.ranks == 0 || ranks < info.ranks))
            info = {size, ranks, std::max(parse<int>(textOf(rank)).value_or(0), 0)};
    };
    for (const auto &[size, rank] : launchers)
        ask(size, rank);
    if (info.ranks == 0) // set by srun only
        ask("SLURM_STEP_NUM_TASKS", "SLURM_PROCID");
    return info;
}

std::string mpsFolder() {
    const std::string chosen = textOf("CUDA_MPS_PIPE_DIRECTORY");
    return chosen.empty() ? "/tmp/nvidia-mps" : chosen;
}

bool emulatedDeviceOption(const std::string &what) {
    return fmt::format(",{},", textOf("DNDS_EMULATED_DEVICE")).find(fmt::format(",{},", what)) != std::string::npos;
}

} // namespace DNDS
