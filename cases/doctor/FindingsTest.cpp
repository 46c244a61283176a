#include "Findings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace DNDS::Doctor {
namespace {

Json healthyRank(int processor) {
    return {{"host", "node"},
            {"processors", {processor}},
            {"processors_online", 4},
            {"processor_quota", nullptr},
            {"load_average", 3.5},
            {"numa_nodes", "0"},
            {"memory_available", 8e9},
            {"memory_of_group", nullptr},
            {"address_space_limit", nullptr},
            {"locked_memory_limit", nullptr},
            {"descriptor_limit", 1024},
            {"descriptors_open", 40},
            {"huge_pages", "madvise"},
            {"huge_pages_shared", "never"},
            {"infiniband", false},
            {"map", nullptr}};
}

Json pairOf(int from, int to, double latency) {
    return {{"from", from}, {"to", to}, {"latency_us", latency}, {"megabytes_per_s", 1e4}, {"same_machine", true}};
}

/// Three ranks without a fault.
Json healthy() {
    Json report;
    report["mpi"] = {{"library", "MPI 1"}, {"thread_level", "multiple"}, {"launched", 3}};
    report["ranks_per_node"] = 0;
    report["folder"] = "work";
    for (int rank = 0; rank < 3; ++rank) {
        report["ranks"].push_back(healthyRank(rank));
        report["files"].push_back(
            {{"bytes", 1e9}, {"seconds", 1.0}, {"space", 1e12}, {"folder_usable", true}, {"error", nullptr}});
    }
    report["pairs"] = {pairOf(0, 1, 0.5), pairOf(0, 2, 0.6), pairOf(1, 2, 0.5)};
    report["pulls"] = {{{"transport", "packed"}, {"device", false}, {"wrong", 0}, {"error", nullptr}}};
    return report;
}

/// Fails the test unless one finding of that level says so, with a cure.
void expectFinding(const Json &report, Level level, const std::string &what) {
    const std::vector<Finding> findings = findingsOf(report);
    EXPECT_TRUE(std::ranges::any_of(findings, [&](const Finding &finding) {
        return finding.level == level && finding.what.find(what) != std::string::npos && !finding.cure.empty();
    })) << what;
    EXPECT_TRUE(std::ranges::is_sorted(findings, {}, &Finding::level));
}

TEST(Findings, AreFineForAHealthyJob) {
    for (const Finding &finding : findingsOf(healthy()))
        EXPECT_EQ(finding.level, Level::Fine) << finding.what;
}

TEST(Findings, ForeignLaunchersAndThreadLevels) {
    Json report = healthy();
    report["mpi"]["thread_level"] = "funneled";
    expectFinding(report, Level::Warning, "thread level funneled");
    report["ranks"].erase(2);
    report["ranks"].erase(1);
    expectFinding(report, Level::Error, "started 3 processes, but MPI sees one rank");
}

TEST(Findings, MachinesWithDifferentNumbersOfRanks) {
    Json report = healthy();
    report["ranks"][2]["host"] = "other";
    expectFinding(report, Level::Warning, "machines have from 1 to 2 ranks");
}

TEST(Findings, SharedProcessorsAndQuotas) {
    Json report = healthy();
    report["ranks"][2]["processors"] = {0};
    expectFinding(report, Level::Error, "ranks 0, 2 are bound to 1 processor (0) of 4");
    for (Json &rank : report["ranks"]) {
        rank["processors"] = {0, 1};
        rank["processors_online"] = 2;
    }
    expectFinding(report, Level::Warning, "3 ranks share 2 processors");
    report = healthy();
    report["ranks"][0]["processor_quota"] = 1.5;
    expectFinding(report, Level::Warning, "the time of 1.5 processors to 3 ranks");
    report = healthy();
    report["ranks"][0]["load_average"] = 4.2;
    expectFinding(report, Level::Warning, "4.2 programs ran at a time in the last minute, on 4 processors");
    report["ranks"][0]["load_average"] = nullptr;
    EXPECT_EQ(findingsOf(report).back().level, Level::Fine);
}

TEST(Findings, Descriptors) {
    Json report = healthy();
    report["ranks"][1]["descriptor_limit"] = 128;
    expectFinding(report, Level::Warning, "rank 1 may have 128 files and connections, and has 40 already");
    report["ranks"][1]["descriptor_limit"] = nullptr;
    EXPECT_EQ(findingsOf(report).back().level, Level::Fine);
}

TEST(Findings, CountOneAsOne) {
    Json report = healthy();
    report["mpi"]["launched"] = 1;
    report["ranks"].erase(2);
    report["ranks"].erase(1);
    report["pairs"] = Json::array();
    for (const Finding &finding : findingsOf(report))
        EXPECT_EQ(finding.what.find("1 ranks"), std::string::npos) << finding.what;
    EXPECT_EQ(findingsOf(report)[1].what, "1 rank on 1 machine");
}

TEST(Findings, Memory) {
    Json report = healthy();
    report["ranks"][0]["memory_of_group"] = 3e8;
    expectFinding(report, Level::Warning, "a rank has 95 MiB of memory");
    report = healthy();
    report["ranks"][1]["address_space_limit"] = 1048576000;
    expectFinding(report, Level::Warning, "the address space of rank 1 ends at 1000 MiB");
    report["ranks"][0]["infiniband"] = true;
    report["ranks"][0]["locked_memory_limit"] = 8388608;
    expectFinding(report, Level::Warning, "at most 8 MiB can be locked");
    report["ranks"][2]["map"] = "another user";
    expectFinding(report, Level::Error, "ranks cannot map each other's memory: another user");
}

TEST(Findings, SlowPairsAndWrongPulls) {
    Json report = healthy();
    report["pairs"][2]["latency_us"] = 100.0;
    expectFinding(report, Level::Warning, "from rank 1 to rank 2 take 100.0 us, 0.6 between others");
    report["pairs"] = {pairOf(0, 1, 8000.0)};
    expectFinding(report, Level::Warning, "messages within a machine take 8000 us (median)");
    report["pairs"] = {pairOf(0, 1, 49.0)};
    EXPECT_EQ(findingsOf(report).back().level, Level::Fine);
    report["pulls"][0]["wrong"] = 7;
    expectFinding(report, Level::Error, "'packed' brought 7 wrong values");
}

TEST(Findings, Files) {
    Json report = healthy();
    report["files"][0]["space"] = 1e8;
    expectFinding(report, Level::Warning, "work has 95 MiB left");
    report = healthy();
    report["files"][2]["seconds"] = 1e4;
    expectFinding(report, Level::Warning, "ranks together write 0 MiB/s");
    report["files"][1]["error"] = "No space left on device";
    expectFinding(report, Level::Error, "rank 1 cannot write 954 MiB into work: No space left on device");
    report["files"][0]["folder_usable"] = false;
    report["files"][0]["error"] = "Permission denied";
    expectFinding(report, Level::Error, "rank 0 cannot make a file in work: Permission denied");
}

} // namespace
} // namespace DNDS::Doctor
