#include "DNDS/Mpi/NodeMemory.hpp"

#include "ThrowsOnAll.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace DNDS {
namespace {

using test::expectContains;
using test::messageOnAll;

/// Files of a system that is not there.
class PretendedSystem {
  public:
    PretendedSystem()
        : root_(std::filesystem::temp_directory_path() / fmt::format("dnds-memory-left-{}", test::worldRank())) {
        std::filesystem::remove_all(root_);
        write("/proc/meminfo", "MemTotal: 9000 kB\nMemFree: 1 kB\nMemAvailable: 5000 kB\nBuffers: 3 kB\n");
    }
    PretendedSystem(const PretendedSystem &) = delete;
    PretendedSystem &operator=(const PretendedSystem &) = delete;
    ~PretendedSystem() {
        std::error_code ignored;
        std::filesystem::remove_all(root_, ignored);
    }
    void write(const std::string &file, const std::string &text) const {
        const std::filesystem::path path = root_.string() + file;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
    }
    AvailableMemory left() const { return availableMemory(root_.string()); }

  private:
    std::filesystem::path root_;
};

TEST(AvailableMemory, WithoutGroupsIsThatOfTheMachine) {
    const PretendedSystem system;
    EXPECT_EQ(system.left().machine, 5000U * 1024);
    EXPECT_EQ(system.left().group, AvailableMemory::unlimited);
    EXPECT_EQ(availableMemory("/there/is/no/such/folder").machine, AvailableMemory::unlimited);
}

TEST(AvailableMemory, IsTheLeastOfTheGroupAndThoseAroundIt) {
    const PretendedSystem system;
    system.write("/proc/self/cgroup", "0::/jobs/7/task\n");
    system.write("/sys/fs/cgroup/jobs/7/task/memory.max", "max\n");
    system.write("/sys/fs/cgroup/jobs/7/task/memory.current", "70\n");
    system.write("/sys/fs/cgroup/jobs/7/memory.max", "1000\n");
    system.write("/sys/fs/cgroup/jobs/7/memory.current", "400\n");
    system.write("/sys/fs/cgroup/jobs/7/memory.stat", "anon 300\ninactive_file 60\nactive_file 30\n");
    system.write("/sys/fs/cgroup/jobs/memory.max", "5000\n");
    system.write("/sys/fs/cgroup/jobs/memory.current", "500\n");
    EXPECT_EQ(system.left().group, 690U) << "file caches can go";
    expectContains(system.left().groupName, "/jobs/7");
}

TEST(AvailableMemory, KnowsVersionOneAndContainers) {
    const PretendedSystem system;
    system.write("/proc/self/cgroup", "12:cpu:/elsewhere\n5:memory:/docker/abc\n0::/\n");
    system.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "800\n"); // the container's own is at the top
    system.write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "900\n");
    system.write("/sys/fs/cgroup/memory/memory.stat", "total_inactive_file 150\n");
    EXPECT_EQ(system.left().group, 50U);
}

TEST(NodeMemory, OfAllRanksTogetherIsAskedFor) {
    const auto context = CommunicatorContext::of(MPI_COMM_WORLD);
    requireNodeMemory(*context, 1000, "a little");
    const AvailableMemory left = availableMemory();
    if (left.machine == AvailableMemory::unlimited)
        GTEST_SKIP() << "the system does not say what it has";
    const std::string text =
        messageOnAll<MemoryError>([&] { requireNodeMemory(*context, std::size_t{1} << 50U, "too much"); });
    expectContains(text, "too much: no room for 1125899906842624 bytes");
    expectContains(text, " are available ");
    if (test::worldSize() > 1) { // fits for each, not for all
        const std::uint64_t most = std::min(left.machine, left.group);
        const auto each = static_cast<std::size_t>(static_cast<double>(most) * 0.9);
        messageOnAll<MemoryError>([&] { requireNodeMemory(*context, each, "too much"); });
    }
}

} // namespace
} // namespace DNDS
