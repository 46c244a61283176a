// Runs that are stopped and go on.
#include "Simulation.hpp"

#include "DNDS/Serialize/Checkpoint.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

namespace Euler {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const DNDS::CommunicatorView &world() {
    static const DNDS::CommunicatorView comm(MPI_COMM_WORLD);
    return comm;
}

/// A folder that goes with its object.
class Folder {
  public:
    Folder() {
        static int number = 0;
        const int process = world().allReduce(world().rank() == 0 ? static_cast<int>(::getpid()) : 0, MPI_MAX);
        path_ = fs::temp_directory_path() / fmt::format("euler_restart_{}_{}", process, number++);
        world().barrier();
    }
    Folder(const Folder &) = delete;
    Folder &operator=(const Folder &) = delete;
    ~Folder() {
        world().barrier();
        std::error_code ignored;
        if (world().rank() == 0)
            fs::remove_all(path_, ignored);
    }
    std::string path(const std::string &name = "") const {
        return name.empty() ? path_.string() : (path_ / name).string();
    }
    std::string content(const std::string &name) const {
        std::ifstream file(path_ / name, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    std::vector<std::string> checkpoints() const {
        std::vector<std::string> names;
        for (const auto &entry : fs::directory_iterator(path_))
            if (entry.path().extension() == ".h5" || entry.path().extension() == ".part")
                names.push_back(entry.path().filename().string());
        std::sort(names.begin(), names.end());
        return names;
    }

  private:
    fs::path path_;
};

json caseIn(const Folder &folder, bool steady) {
    json content = json::parse(R"({
        "mesh": {"box": {"fill": "mixed-surface", "cells": [9, 7], "jitter": 0.15, "shuffled": true}},
        "reference": {"pressure": 1, "density": 1, "mach": 0.7, "angleOfAttack": 20},
        "boundaries": {"x-": "far field", "x+": "far field", "y-": "wall", "y+": "far field"},
        "time": {"steps": 9},
        "output": {"historyEvery": 2, "fields": false, "checkpointEvery": 4, "keep": 5}
    })");
    content["time"]["mode"] = steady ? "steady" : "unsteady";
    content["output"]["folder"] = folder.path();
    return content;
}

Simulation runOf(const json &content, DNDS::CommunicatorView comm) {
    return Simulation(comm, parseConfiguration(content.dump(), "test.json"));
}

/// The state of all cells in the order of the file, as one number.
index stateOf(Simulation &run) {
    std::uint64_t sum = 0;
    for (index cell = 0; cell < run.mesh().cells.owned; cell++) {
        DNDS::ContentHash hash;
        hash.add(static_cast<std::uint64_t>(run.mesh().cells.fileNumbers[static_cast<std::size_t>(cell)]));
        hash.addBytes(run.solver().conserved()[cell], variables * sizeof(real));
        hash.addBytes(run.solver().state()[cell], variables * sizeof(real));
        sum += hash.value();
    }
    return static_cast<index>(run.mesh().comm.allReduce(sum, MPI_SUM));
}

void expectEqual(const RunResult &a, const RunResult &b) {
    EXPECT_EQ(a.steps, b.steps);
    EXPECT_EQ(a.time, b.time);
    EXPECT_EQ(a.residual, b.residual);
    EXPECT_EQ(a.drag, b.drag);
    EXPECT_EQ(a.lift, b.lift);
    EXPECT_EQ(a.total, b.total);
}

template <class ErrorType, class Body>
std::string complaint(Body &&body) {
    try {
        body();
    } catch (const ErrorType &error) {
        return error.message();
    }
    return "nothing";
}
#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(Restart, GoesOnToTheSameBitsOnAnyNumberOfRanks) {
    for (const bool steady : {false, true}) {
        const Folder folder;
        const json content = caseIn(folder, steady);
        Simulation whole = runOf(content, world());
        const RunResult expected = whole(nullptr);
        const index state = stateOf(whole);
        world().barrier();
        const std::string history = folder.content("history.csv");
        EXPECT_EQ(std::count(history.begin(), history.end(), '\n'), 7); // heading, 1, 2, 4, 6, 8, 9
        EXPECT_EQ(folder.checkpoints(), (std::vector<std::string>{"checkpoint-00000004.h5", "checkpoint-00000008.h5",
                                                                  "checkpoint-00000009.h5"}));
        for (int ranks = 1; ranks <= world().size(); ranks++) {
            const DNDS::Communicator some =
                DNDS::Communicator::split(world(), world().rank() < ranks ? 0 : MPI_UNDEFINED, 0);
            if (some.valid()) {
                json other = content;
                other["scheme"]["overlap"] = ranks % 2 == 0;
                other["mesh"]["partitioner"] = "curve";
                Simulation run = runOf(other, some.view());
                run.restart(folder.path(ranks % 2 == 1 ? "checkpoint-00000004.h5" : "checkpoint-00000008.h5"), false,
                            nullptr);
                expectEqual(run(nullptr), expected);
                EXPECT_EQ(stateOf(run), state);
            }
            world().barrier();
            EXPECT_EQ(folder.content("history.csv"), history) << ranks;
            world().barrier();
        }
    }
}

/// Raises a signal when something is printed.
class Trigger : public std::stringbuf {
  public:
    Trigger(int signal, int count) : signal_(signal), left_(count) {}
    int sync() override {
        if (--left_ == 0)
            std::raise(signal_);
        return 0;
    }

  private:
    int signal_;
    int left_;
};

TEST(Restart, SignalsStopARunBehindACheckpoint) {
    for (const int signal : {SIGTERM, SIGUSR1}) {
        const Folder folder, other;
        json content = caseIn(folder, true);
        content["output"]["checkpointEvery"] = 0;
        content["time"]["steps"] = 20;
        Trigger trigger(signal, 1); // the first step is shown
        std::ostream alarm(&trigger);
        Simulation first = runOf(content, world());
        const bool last = world().rank() == world().size() - 1;
        const RunResult stopped = first(last ? &alarm : nullptr); // one rank alone has the signal
        EXPECT_EQ(stopped.steps, 2);                              // ranks agree during the second step
        if (last) {
            EXPECT_SAYS(trigger.str(), fmt::format("stopped by a signal after step {}", stopped.steps));
        }
        std::ostringstream report;
        Simulation second = runOf(content, world());
        second.restart("latest", false, &report);
        EXPECT_SAYS(report.str(), fmt::format("step {}", stopped.steps));
        const RunResult result = second(nullptr);
        json uninterrupted = content;
        uninterrupted["output"]["folder"] = other.path();
        expectEqual(result, runOf(uninterrupted, world())(nullptr));
        world().barrier();
        EXPECT_EQ(folder.content("history.csv"), other.content("history.csv"));
        EXPECT_TRUE(other.checkpoints().empty()); // none configured
    }
}

TEST(Restart, KeepsTheNewestAndTakesTheLastWholeOne) {
    const Folder folder;
    json content = caseIn(folder, true);
    content["output"]["checkpointEvery"] = 1;
    content["output"]["keep"] = 3;
    runOf(content, world())(nullptr);
    world().barrier();
    EXPECT_EQ(folder.checkpoints(),
              (std::vector<std::string>{"checkpoint-00000007.h5", "checkpoint-00000008.h5", "checkpoint-00000009.h5"}));
    world().barrier();
    if (world().rank() == 0) {
        std::string bytes = folder.content("checkpoint-00000009.h5");
        for (std::size_t byte = 5000; byte < bytes.size(); byte += 37)
            bytes[byte] = static_cast<char>(bytes[byte] ^ 4);
        std::ofstream(folder.path("checkpoint-00000009.h5"), std::ios::binary) << bytes;
        std::ofstream(folder.path("checkpoint-00000010.h5.part")) << "half";
        std::ofstream(folder.path("checkpoint-last.h5")) << "foreign";
    }
    world().barrier();
    std::ostringstream report;
    Simulation run = runOf(content, world());
    run.restart("latest", false, &report);
    EXPECT_SAYS(report.str(), "NOT USED: " + folder.path("checkpoint-00000009.h5"));
    EXPECT_SAYS(report.str(), "goes on from " + folder.path("checkpoint-00000008.h5"));
    EXPECT_EQ(run(nullptr).steps, 9);
    // The end was reached: nothing is computed, and no file is touched.
    std::ostringstream again;
    Simulation finished = runOf(content, world());
    finished.restart("latest", false, nullptr);
    EXPECT_EQ(finished(&again).steps, 9);
    EXPECT_SAYS(again.str(), "nothing is left to compute");
}

TEST(Restart, ByTime) {
    const Folder folder;
    json content = caseIn(folder, true);
    content["output"].erase("checkpointEvery");
    content["output"]["checkpointMinutes"] = 1e-9;
    runOf(content, world())(nullptr);
    world().barrier();
    EXPECT_GE(folder.checkpoints().size(), 3U); // each is agreed on a step before
}

TEST(Restart, SaysWhatDoesNotFit) {
    const Folder folder, empty;
    const json content = caseIn(folder, false);
    runOf(content, world())(nullptr);
    const auto restarting = [&](const json &other, const std::string &path = "latest", bool allow = false) {
        return complaint<DNDS::ArgumentError>([&] { runOf(other, world()).restart(path, allow, nullptr); });
    };
    const auto with = [&](const char *pointer, const json &value) {
        json other = content;
        other[json::json_pointer(pointer)] = value;
        return other;
    };
    EXPECT_EQ(restarting(content), "nothing");
    EXPECT_EQ(restarting(with("/time/steps", 100)), "nothing");
    EXPECT_EQ(restarting(with("/output/historyEvery", 1)), "nothing");
    EXPECT_EQ(restarting(with("/scheme/flux", "hllc")), "nothing"); // the default
    const json roe = with("/scheme/flux", "roe");
    EXPECT_SAYS(restarting(roe), "scheme.flux was \"hllc\", and is \"roe\"");
    EXPECT_SAYS(restarting(roe), "--allow-changes");
    EXPECT_EQ(restarting(roe, "latest", true), "nothing");
    EXPECT_SAYS(restarting(with("/gas/gamma", 1.3)), "gas.gamma was 1.4, and is 1.3");
    EXPECT_SAYS(restarting(with("/boundaries/y-", "far field")), "boundaries.y-.kind was \"wall\"");
    EXPECT_SAYS(restarting(with("/mesh/box/cells", {9, 8})), "needs the same mesh");
    EXPECT_SAYS(restarting(with("/mesh/box/jitter", 0.1), "latest", true), "is for another mesh");
    EXPECT_SAYS(restarting(with("/output/folder", empty.path())), "there is no checkpoint in the folder");
    EXPECT_SAYS(restarting(with("/output/keep", 0)), "output.keep is 0");
    EXPECT_SAYS(complaint<DNDS::DataError>([&] { runOf(content, world()).restart("/nowhere.h5", false, nullptr); }),
                "/nowhere.h5 cannot be opened: No such file or directory");
}

} // namespace
} // namespace Euler
