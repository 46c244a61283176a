#include "DNDS/Mpi/NodeMemory.hpp"

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/NodeArena.hpp"

#include <algorithm>
#include <fstream>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace DNDS {

namespace {

/// The number after `key` in a file of keys and numbers; `otherwise` if it is missing.
std::uint64_t numberIn(const std::string &file, std::string_view key, std::uint64_t otherwise) {
    std::ifstream in(file);
    for (std::string word; in >> word;)
        if (std::uint64_t number = 0; word == key && in >> number)
            return number;
    return otherwise;
}

/// The contents of a file that is one number; `otherwise` for any other contents ("max").
std::uint64_t numberOf(const std::string &file, std::uint64_t otherwise) {
    std::ifstream in(file);
    std::uint64_t number = 0;
    return in >> number ? number : otherwise;
}

/// Names of files and of counters of control groups, which versions 1 and 2 of Linux's control groups call
/// differently.
struct GroupFiles {
    const char *limit;
    const char *used;
    const char *activeCache;
    const char *inactiveCache;
};
/// "memory" hierarchy of version 1, unified hierarchy of version 2.
constexpr GroupFiles version1{"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_active_file",
                              "total_inactive_file"};
constexpr GroupFiles version2{"/memory.max", "/memory.current", "active_file", "inactive_file"};

/// Applies the limit of one group.
/// Room is the limit less the memory in use, where reclaimable file cache counts as free. The group with the least
/// room decides.
void lookAt(AvailableMemory &left, const std::string &folder, const GroupFiles &files) {
    const std::uint64_t limit = numberOf(folder + files.limit, AvailableMemory::unlimited);
    const std::uint64_t used = numberOf(folder + files.used, AvailableMemory::unlimited);
    if (limit == AvailableMemory::unlimited || used == AvailableMemory::unlimited)
        return;
    const std::string kinds = folder + "/memory.stat";
    const std::uint64_t cached = numberIn(kinds, files.activeCache, 0) + numberIn(kinds, files.inactiveCache, 0);
    // Pages of files are dropped by the system when memory is short, before any process is killed.
    const std::uint64_t taken = used - std::min(used, cached);
    const std::uint64_t room = limit - std::min(limit, taken);
    if (room >= left.group)
        return;
    left.group = room;
    left.groupName = folder;
}

/// A rank's request, sent to the others of its node.
struct MemoryRequest {
    std::uint64_t bytes = 0;
    std::uint64_t group = 0; ///< the control group that limits the rank
};

/// The sum of the requests for which `counts(rank)`, without overflow.
/// Saturates at `unlimited`: a rank may ask for any number of bytes.
template <class Counts>
std::uint64_t sumOf(std::span<const MemoryRequest> requests, Counts &&counts) {
    std::uint64_t sum = 0;
    for (std::size_t rank = 0; rank < requests.size(); ++rank)
        if (counts(static_cast<int>(rank)))
            sum = requests[rank].bytes > AvailableMemory::unlimited - sum ? AvailableMemory::unlimited
                                                                          : sum + requests[rank].bytes;
    return sum;
}

} // namespace

// Reads Linux's /proc and /sys at `root` ("" outside of tests). Control groups v2: kernel documentation, "Control Group
// v2", memory controller; v1: "Memory Resource Controller". Files that are missing impose no limit.
AvailableMemory availableMemory(const std::string &root) {
    AvailableMemory left;
    const std::uint64_t kilobytes = numberIn(root + "/proc/meminfo", "MemAvailable:", AvailableMemory::unlimited);
    if (kilobytes != AvailableMemory::unlimited)
        left.machine = kilobytes * 1024;
    std::ifstream groups(root + "/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) { // "0::/path", or "5:memory:/path"
        const std::size_t first = line.find(':');
        const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos)
            continue;
        const std::string kind = line.substr(first + 1, second - first - 1);
        if (!kind.empty() && kind != "memory")
            continue;
        std::string path = line.substr(second + 1);
        const std::string top = root + "/sys/fs/cgroup" + (kind.empty() ? "" : "/memory");
        // All groups from this process's own up to the root: each limits what is below it.
        for (; !path.empty() && path != "/"; path.resize(path.rfind('/')))
            lookAt(left, top + path, kind.empty() ? version2 : version1);
        lookAt(left, top, kind.empty() ? version2 : version1); // within a container, its own
    }
    return left;
}

// Collective; one gather. Asked before large allocations in shared memory: there the system would kill a process
// instead of refusing the allocation.
// Each rank adds up the requests of its own node, O(ranks), so verdicts differ between nodes; `guarded` makes all
// ranks throw if one node lacks memory.
void requireNodeMemory(const CommunicatorContext &context, std::size_t bytes, const std::string &name) {
    const CommunicatorView &comm = context.comm();
    const NodeTopology &node = context.node();
    AvailableMemory left;
    MemoryRequest mine;
    bool oneMachine = false; // of virtual nodes
    comm.guarded([&] {
        left = availableMemory();
        oneMachine = readEnvironment().ranksPerNode > 0;
        // Memory that the arena holds without using it needs no new one.
        const std::size_t held = node.arena ? node.arena->bytesHeld() : 0;
        const std::size_t used = node.arena ? node.arena->bytesInUse() : 0;
        const std::size_t unused = held - std::min(held, used);
        mine = {bytes - std::min(bytes, unused), std::hash<std::string>{}(left.groupName)};
    });
    const std::vector<MemoryRequest> requests = comm.allGatherV(std::span<const MemoryRequest>(&mine, 1));
    // Ranks on this machine; of these, ranks whose strictest group is the same one share its limit. Groups are
    // compared by hash: a collision could only make the check stricter.
    const auto here = [&](int rank) { return oneMachine || rank == comm.rank() || node.sameNode(rank); };
    const auto alike = [&](int rank) {
        return here(rank) && requests[static_cast<std::size_t>(rank)].group == mine.group;
    };
    const std::uint64_t onMachine = sumOf(requests, here);
    const std::uint64_t inGroup = sumOf(requests, alike);
    comm.guarded([&] {
        DNDS_CHECK(onMachine <= left.machine, MemoryError,
                   "{}: no room for {} bytes: with what the other ranks of the node ask for, {} more bytes are "
                   "needed, and {} are available there",
                   name, bytes, onMachine, left.machine);
        DNDS_CHECK(inGroup <= left.group, MemoryError,
                   "{}: no room for {} bytes: with what the other ranks of the node ask for, {} more bytes are "
                   "needed, and {} are available within the limit of the container or job ({})",
                   name, bytes, inGroup, left.group, left.groupName);
    });
}

} // namespace DNDS
