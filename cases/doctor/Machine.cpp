#include "Machine.hpp"

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/Reductions.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <numeric>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

namespace DNDS::Doctor {

namespace {

std::string firstLine(const std::filesystem::path &path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

std::vector<int> allowedProcessors() {
    std::vector<int> processors;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) == 0)
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
            if (CPU_ISSET(static_cast<std::size_t>(cpu), &set))
                processors.push_back(cpu);
    return processors;
}

/// The processors' worth of time that the control group grants; null where it has no limit.
Json quota() {
    std::ifstream unified("/sys/fs/cgroup/cpu.max");
    double granted = 0.0;
    double period = 0.0;
    if (unified >> granted >> period && period > 0.0) // "max" is no number
        return granted / period;
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> granted;
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> period;
    return granted > 0.0 && period > 0.0 ? Json(granted / period) : Json();
}

/// Bytes; null where there is no limit.
Json memoryOfGroup() {
    for (const char *path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
        double bytes = 0.0;
        if (std::ifstream(path) >> bytes && bytes < 1e18) // the older interface has a huge number for no limit
            return bytes;
    }
    return {};
}

Json limitOf(int resource) {
    ::rlimit limit{};
    if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return {};
    return limit.rlim_cur;
}

/// Bytes, by a name of /proc/meminfo; null for missing names.
Json memoryNamed(const std::string &name) {
    std::ifstream file("/proc/meminfo");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with(name + ":"))
            return 1024.0 * std::stod(line.substr(name.size() + 1));
    return {};
}

/// Runnable processes of the machine, on average over the last minute.
Json loadAverage() {
    double load = 0.0;
    return ::getloadavg(&load, 1) == 1 ? Json(load) : Json();
}

Json openDescriptors() {
    std::error_code error;
    const std::filesystem::directory_iterator list("/proc/self/fd", error);
    return error ? Json() : Json(std::distance(begin(list), end(list)));
}

/// Whether making a file failed since the folder is not there, or not for this user.
bool refusesFiles(int failure) {
    static constexpr std::array<int, 6> reasons{ENOENT, ENOTDIR, EACCES, EPERM, EROFS, ELOOP};
    return std::ranges::find(reasons, failure) != reasons.end();
}

/// The word in brackets: "always [madvise] never".
std::string chosen(const std::string &line) {
    const std::size_t begin = line.find('[');
    const std::size_t end = line.find(']');
    return begin == std::string::npos || end == std::string::npos ? line : line.substr(begin + 1, end - begin - 1);
}

} // namespace

Json lookAtMachine() {
    std::array<char, 256> host{};
    (void)::gethostname(host.data(), host.size() - 1);
    Json machine;
    machine["host"] = host.data();
    machine["process"] = ::getpid();
    machine["processors"] = allowedProcessors();
    machine["processors_online"] = ::sysconf(_SC_NPROCESSORS_ONLN);
    machine["processor_quota"] = quota();
    machine["load_average"] = loadAverage();
    machine["numa_nodes"] = firstLine("/sys/devices/system/node/online");
    machine["memory"] = memoryNamed("MemTotal");
    machine["memory_available"] = memoryNamed("MemAvailable");
    machine["memory_of_group"] = memoryOfGroup();
    machine["address_space_limit"] = limitOf(RLIMIT_AS);
    machine["locked_memory_limit"] = limitOf(RLIMIT_MEMLOCK);
    machine["descriptor_limit"] = limitOf(RLIMIT_NOFILE);
    machine["descriptors_open"] = openDescriptors();
    machine["huge_pages"] = chosen(firstLine("/sys/kernel/mm/transparent_hugepage/enabled"));
    machine["huge_pages_shared"] = chosen(firstLine("/sys/kernel/mm/transparent_hugepage/shmem_enabled"));
    machine["infiniband"] = std::filesystem::exists("/sys/class/infiniband");
    return machine;
}

std::vector<Json> gather(CommunicatorView comm, const Json &mine) {
    const std::string text = mine.dump(-1, ' ', false, Json::error_handler_t::replace);
    std::vector<index> words(1 + (text.size() + sizeof(index) - 1) / sizeof(index));
    words[0] = static_cast<index>(text.size());
    std::memcpy(words.data() + 1, text.data(), text.size());
    RankLists outgoing;
    outgoing.append(0, words);
    const RankLists arrived = sparseExchange(*CommunicatorContext::of(comm), outgoing);
    std::vector<Json> gathered;
    for (std::size_t k = 0; k < arrived.size(); ++k) {
        const auto list = arrived.list(k);
        const auto *const begin = reinterpret_cast<const char *>(list.data() + 1);
        gathered.push_back(Json::parse(begin, begin + list[0]));
    }
    return gathered;
}

Json tryFiles(const std::filesystem::path &folder, int rank, std::size_t bytes) {
    Json result;
    std::error_code error;
    const auto space = std::filesystem::space(folder, error);
    result["space"] = error ? Json() : Json(space.available);
    const std::filesystem::path path =
        folder / ("dnds-doctor." + std::to_string(::getpid()) + "." + std::to_string(rank));
    const std::vector<char> block(std::min<std::size_t>(bytes, std::size_t{1} << 20), 'd');
    const double begin = monotonicSeconds();
    int failure = 0;
    const int file = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (file < 0)
        failure = errno;
    else
        (void)::unlink(path.c_str()); // its space is freed however this process ends
    result["folder_usable"] = file >= 0 || !refusesFiles(failure);
    for (std::size_t written = 0; written < bytes && failure == 0;) {
        const ::ssize_t count = ::write(file, block.data(), std::min(block.size(), bytes - written));
        if (count <= 0)
            failure = count < 0 ? errno : ENOSPC;
        else
            written += static_cast<std::size_t>(count);
    }
    if (failure == 0 && ::fsync(file) != 0)
        failure = errno;
    if (file >= 0)
        (void)::close(file);
    result["bytes"] = bytes;
    result["seconds"] = monotonicSeconds() - begin;
    result["error"] = failure == 0 ? Json() : Json(std::generic_category().message(failure));
    return result;
}

} // namespace DNDS::Doctor
