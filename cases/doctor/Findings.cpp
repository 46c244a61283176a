#include "Findings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace DNDS::Doctor {

namespace {

constexpr double mebi = 1024.0 * 1024.0;

using Findings = std::vector<Finding>;
using Hosts = std::map<std::string, std::vector<int>>;

std::string counted(std::size_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

Hosts hostsOf(const Json &ranks) {
    Hosts hosts;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
        hosts[ranks[rank]["host"].get<std::string>()].push_back(static_cast<int>(rank));
    return hosts;
}

void judgeMpi(const Json &report, const Hosts &hosts, Findings &findings) {
    const Json &mpi = report["mpi"];
    const auto launched = mpi["launched"].get<int>();
    if (launched > 1 && report["ranks"].size() == 1)
        findings.push_back({Level::Error,
                            fmt::format("the launcher started {} processes, but MPI sees one rank", launched),
                            "start the program with the mpiexec of the MPI that it was built with"});
    const std::string level = mpi["thread_level"];
    if (level == "multiple")
        findings.push_back(
            {Level::Fine, fmt::format("{}, thread level multiple", mpi["library"].get<std::string>()), ""});
    else
        findings.push_back({Level::Warning, fmt::format("MPI grants the thread level {} only", level),
                            "use an MPI built with threads, if the program needs the proxy of one-sided access"});
    std::set<std::size_t> sizes;
    for (const auto &[host, ranks] : hosts)
        sizes.insert(ranks.size());
    if (sizes.size() > 1)
        findings.push_back({Level::Warning,
                            fmt::format("machines have from {} to {} ranks", *sizes.begin(), *sizes.rbegin()),
                            "ask for the same number of ranks on each machine (--ntasks-per-node, ppr:N:node)"});
    else
        findings.push_back(
            {Level::Fine, counted(report["ranks"].size(), "rank") + " on " + counted(hosts.size(), "machine"), ""});
}

/// Ranks of one host that may use the same processors, of which there are fewer than ranks.
void judgeProcessors(const Json &all, const std::string &host, const std::vector<int> &ranks, Findings &findings) {
    std::map<std::vector<int>, std::vector<int>> byMask;
    std::set<int> together;
    for (const int rank : ranks) {
        const auto mask = all[static_cast<std::size_t>(rank)]["processors"].get<std::vector<int>>();
        byMask[mask].push_back(rank);
        together.insert(mask.begin(), mask.end());
    }
    const Json &first = all[static_cast<std::size_t>(ranks.front())];
    const auto online = first["processors_online"].get<std::size_t>();
    bool fine = true;
    for (const auto &[mask, sharing] : byMask)
        if (sharing.size() > mask.size() && mask.size() < online) {
            fine = false;
            findings.push_back({Level::Error,
                                fmt::format("{}: ranks {} are bound to {} ({}) of {}", host, fmt::join(sharing, ", "),
                                            counted(mask.size(), "processor"), fmt::join(mask, ", "), online),
                                "bind each rank to processors of its own (mpiexec --bind-to core, srun "
                                "--cpu-bind=cores), or none (--bind-to none)"});
        }
    if (fine && ranks.size() > together.size()) {
        fine = false;
        findings.push_back(
            {Level::Warning,
             fmt::format("{}: {} share {}", host, counted(ranks.size(), "rank"), counted(together.size(), "processor")),
             "start fewer ranks a machine, or ask for more processors (--cpus-per-task)"});
    }
    if (const Json &quota = first["processor_quota"];
        !quota.is_null() && quota.get<double>() + 0.01 < static_cast<double>(ranks.size())) {
        fine = false;
        findings.push_back({Level::Warning,
                            fmt::format("{}: the control group grants the time of {:.2g} processors to {}", host,
                                        quota.get<double>(), counted(ranks.size(), "rank")),
                            "raise the container's or job's limit (docker --cpus, cpu.max)"});
    }
    if (fine)
        findings.push_back(
            {Level::Fine,
             fmt::format("{}: {}, {} of {}, NUMA nodes {}", host, counted(ranks.size(), "rank"),
                         counted(together.size(), "processor"), online, first["numa_nodes"].get<std::string>()),
             ""});
}

void judgeLoad(const Json &machine, const std::string &host, Findings &findings) {
    const Json &load = machine["load_average"];
    const auto online = machine["processors_online"].get<std::size_t>();
    if (!load.is_null() && load.get<double>() > static_cast<double>(online))
        findings.push_back({Level::Warning,
                            fmt::format("{}: {:.1f} programs ran at a time in the last minute, on {}", host,
                                        load.get<double>(), counted(online, "processor")),
                            "look for other programs (top), or ask for whole machines (--exclusive)"});
}

/// Arrays, files and connections of MPI need some.
void judgeDescriptors(const Json &all, const std::string &host, const std::vector<int> &ranks, Findings &findings) {
    constexpr long needed = 128;
    for (const int rank : ranks) {
        const Json &limit = all[static_cast<std::size_t>(rank)]["descriptor_limit"];
        const Json &open = all[static_cast<std::size_t>(rank)]["descriptors_open"];
        if (limit.is_null() || open.is_null() || limit.get<long>() - open.get<long>() >= needed)
            continue;
        findings.push_back({Level::Warning,
                            fmt::format("{}: rank {} may have {} files and connections, and has {} already (ulimit -n)",
                                        host, rank, limit.get<long>(), open.get<long>()),
                            "ulimit -n 1024, or more"});
        return;
    }
}

void judgeMemory(const Json &all, const std::string &host, const std::vector<int> &ranks, Findings &findings) {
    const Json &first = all[static_cast<std::size_t>(ranks.front())];
    double room = first["memory_available"].is_null() ? 0.0 : first["memory_available"].get<double>();
    if (const Json &group = first["memory_of_group"]; !group.is_null())
        room = std::min(room, group.get<double>());
    const double each = room / static_cast<double>(ranks.size());
    bool fine = each >= 256.0 * mebi;
    if (!fine)
        findings.push_back({Level::Warning, fmt::format("{}: a rank has {:.0f} MiB of memory", host, each / mebi),
                            "ask the scheduler for more memory (--mem), or start fewer ranks a machine"});
    for (const int rank : ranks)
        if (const Json &limit = all[static_cast<std::size_t>(rank)]["address_space_limit"]; !limit.is_null()) {
            fine = false;
            findings.push_back(
                {Level::Warning,
                 fmt::format("{}: the address space of rank {} ends at {:.0f} MiB (ulimit -v); ranks map "
                             "each other's memory, which counts",
                             host, rank, limit.get<double>() / mebi),
                 "ulimit -v unlimited, and bound memory by the job's control group"});
            break;
        }
    if (const Json &locked = first["locked_memory_limit"]; first["infiniband"].get<bool>() && !locked.is_null()) {
        fine = false;
        findings.push_back({Level::Warning,
                            fmt::format("{}: at most {:.0f} MiB can be locked, as Infiniband needs it", host,
                                        locked.get<double>() / mebi),
                            "ulimit -l unlimited, in limits.conf or the scheduler's unit"});
    }
    if (fine)
        findings.push_back(
            {Level::Fine,
             fmt::format("{}: {:.0f} MiB of memory a rank; huge pages: {}, shared memory: {}", host, each / mebi,
                         first["huge_pages"].get<std::string>(), first["huge_pages_shared"].get<std::string>()),
             ""});
}

void judgeSharing(const Json &report, const std::string &host, const std::vector<int> &ranks, Findings &findings) {
    const int virtualRanks = report["ranks_per_node"];
    if (virtualRanks > 0) {
        findings.push_back({Level::Warning,
                            fmt::format("{}: DNDS_RANKS_PER_NODE={} cuts the machine into virtual nodes: ranks send "
                                        "messages where they could share memory",
                                        host, virtualRanks),
                            "unset DNDS_RANKS_PER_NODE; it is for tests"});
        return;
    }
    if (ranks.size() < 2)
        return;
    for (const int rank : ranks)
        if (const Json &why = report["ranks"][static_cast<std::size_t>(rank)]["map"]; !why.is_null()) {
            findings.push_back(
                {Level::Error,
                 fmt::format("{}: ranks cannot map each other's memory: {}", host, why.get<std::string>()),
                 "run all ranks of a machine as one user, in one container or process namespace "
                 "(--pid=host), with room in their address space"});
            return;
        }
    findings.push_back({Level::Fine, fmt::format("{}: ranks map each other's memory", host), ""});
}

void judgePairs(const Json &pairs, Findings &findings) {
    std::vector<double> latencies;
    for (const Json &pair : pairs)
        if (pair["same_machine"])
            latencies.push_back(pair["latency_us"]);
    if (latencies.empty())
        return;
    std::ranges::sort(latencies);
    const double median = latencies[latencies.size() / 2];
    constexpr double slow = 50.0;
    bool fine = median <= slow;
    if (!fine)
        findings.push_back(
            {Level::Warning,
             fmt::format("messages within a machine take {:.0f} us (median), which should be a few", median),
             "start no more ranks than there are free processors, and let MPI use shared memory within "
             "a machine (unset what chooses transports, such as OMPI_MCA_btl)"});
    for (const Json &pair : pairs)
        if (pair["same_machine"] && pair["latency_us"].get<double>() > std::max(20.0, 8.0 * median)) {
            fine = false;
            findings.push_back(
                {Level::Warning,
                 fmt::format("messages from rank {} to rank {} take {:.1f} us, {:.1f} between others",
                             pair["from"].get<int>(), pair["to"].get<int>(), pair["latency_us"].get<double>(), median),
                 "look for other programs on these processors, and at the binding of both ranks"});
        }
    if (fine)
        findings.push_back(
            {Level::Fine,
             fmt::format("messages within a machine take {:.2f} to {:.2f} us", latencies.front(), latencies.back()),
             ""});
}

void judgePulls(const Json &pulls, Findings &findings) {
    for (const Json &pull : pulls) {
        const std::string name = pull["transport"];
        if (pull["wrong"].get<long>() > 0)
            findings.push_back({Level::Error,
                                fmt::format("a pull by '{}' brought {} wrong values", name, pull["wrong"].get<long>()),
                                fmt::format("do not use it (DNDS_TRANSPORT), and report it; for 'direct', "
                                            "DNDS_DISABLE_GPU_AWARE_MPI=1")});
        else if (!pull["error"].is_null())
            findings.push_back({pull["device"] ? Level::Fine : Level::Warning,
                                fmt::format("'{}' cannot be used: {}", name, pull["error"].get<std::string>()), ""});
    }
}

void judgeFiles(const Json &report, Findings &findings) {
    const Json &files = report["files"];
    double bytes = 0.0;
    double seconds = 0.0;
    for (std::size_t rank = 0; rank < files.size(); ++rank) {
        if (!files[rank]["folder_usable"].get<bool>()) {
            findings.push_back(
                {Level::Error,
                 fmt::format("rank {} cannot make a file in {}: {}", rank, report["folder"].get<std::string>(),
                             files[rank]["error"].get<std::string>()),
                 "give a folder that all machines have and that you may write to (--folder)"});
            return;
        }
        if (!files[rank]["error"].is_null()) {
            findings.push_back(
                {Level::Error,
                 fmt::format("rank {} cannot write {:.0f} MiB into {}: {}", rank,
                             files[rank]["bytes"].get<double>() / mebi, report["folder"].get<std::string>(),
                             files[rank]["error"].get<std::string>()),
                 "free space or raise the quota or limit (df, quota, ulimit -f), or work in another "
                 "folder"});
            return;
        }
        bytes += files[rank]["bytes"].get<double>();
        seconds = std::max(seconds, files[rank]["seconds"].get<double>());
    }
    const double rate = bytes / std::max(seconds, 1e-9) / mebi;
    const double space = files[0]["space"].is_null() ? 0.0 : files[0]["space"].get<double>() / mebi;
    if (space < 1024.0)
        findings.push_back({Level::Warning,
                            fmt::format("{} has {:.0f} MiB left", report["folder"].get<std::string>(), space),
                            "free space, or work in another folder"});
    else
        findings.push_back({rate < 5.0 ? Level::Warning : Level::Fine,
                            fmt::format("ranks together write {:.0f} MiB/s; {:.0f} GiB are left", rate, space / 1024.0),
                            rate < 5.0 ? "work in a folder on a parallel or local file system" : ""});
}

} // namespace

std::vector<Finding> findingsOf(const Json &report) {
    Findings findings;
    const Hosts hosts = hostsOf(report["ranks"]);
    judgeMpi(report, hosts, findings);
    for (const auto &[host, ranks] : hosts) {
        judgeProcessors(report["ranks"], host, ranks, findings);
        judgeLoad(report["ranks"][static_cast<std::size_t>(ranks.front())], host, findings);
        judgeMemory(report["ranks"], host, ranks, findings);
        judgeDescriptors(report["ranks"], host, ranks, findings);
        judgeSharing(report, host, ranks, findings);
    }
    judgePairs(report["pairs"], findings);
    judgePulls(report["pulls"], findings);
    judgeFiles(report, findings);
    std::ranges::stable_sort(findings, {}, [](const Finding &finding) { return static_cast<int>(finding.level); });
    return findings;
}

} // namespace DNDS::Doctor
