// Runs that are stopped and continued.
#include "Output.hpp"
#include "TestSupport.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Serialize/Checkpoint.hpp"
#include "support/TemporaryFolder.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <sstream>

#include <sys/syscall.h>
#include <unistd.h>

namespace {

/// Files of this process that were brought to the disk, by the names they had then.
std::vector<std::string> &flushed() {
    static std::vector<std::string> names;
    return names;
}

} // namespace

/// Stands in for the C library's, and does the same.
extern "C" int fsync(int descriptor) {
    std::error_code ignored;
    flushed().push_back(std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", descriptor), ignored).string());
    return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

namespace Euler {
namespace {

namespace fs = std::filesystem;
using DNDS::test::world;

class Folder : public DNDS::test::TemporaryFolder {
  public:
    std::vector<std::string> checkpoints() const {
        std::vector<std::string> found = names();
        std::erase_if(found,
                      [](const std::string &name) { return !name.ends_with(".h5") && !name.ends_with(".part"); });
        return found;
    }
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

/// The state of all cells in the order of the file, as one number.
index stateOf(Simulation &run) {
    std::uint64_t sum = 0;
    for (index cell = 0; cell < run.mesh().cells.owned; cell++) {
        DNDS::ContentHash hash;
        hash.add(static_cast<std::uint64_t>(run.mesh().cells.fileNumbers[static_cast<std::size_t>(cell)]));
        hash.addBytes(run.solver().conserved()[cell], variables * sizeof(real));
        hash.addBytes(run.solver().state()[cell], variables * sizeof(real));
        if (run.kinetics() != nullptr)
            hash.addBytes(run.kinetics()->fractions()[cell], species * sizeof(real));
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
    EXPECT_EQ(a.implicit.cfl, b.implicit.cfl);
    EXPECT_EQ(a.implicit.iterations, b.implicit.iterations);
}

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(Restart, GoesOnToTheSameBitsOnAnyNumberOfRanks) {
    for (const char *what : {"unsteady", "steady", "implicit", "periodic", "kinetics"}) {
        const Folder folder;
        const bool implicit = what == std::string("implicit");
        json content = caseIn(folder, implicit || what == std::string("steady"));
        if (implicit)
            content["implicit"] = {{"cfl", 5}, {"newtonBelow", 0.3}}; // both operators
        if (what == std::string("periodic")) {
            content["mesh"]["box"] = {{"fill", "tetrahedra"},
                                      {"cells", {4, 3, 3}},
                                      {"jitter", 0.1},
                                      {"shuffled", true},
                                      {"periodic", {"x", "y", "z"}}};
            content.erase("boundaries");
            content["initial"] = {{"kind", "vortex"}, {"centre", {0.4, 0.5}}, {"radius", 0.2}};
        }
        if (what == std::string("kinetics")) {
            content["kinetics"] = {{"centre", {0, 0}}, {"velocity", {1, 0}}, {"radius", 0.4}};
            content["balance"] = {{"threshold", 0}};
        }
        Simulation whole = runOf(content);
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
                run.restart(folder.file(ranks % 2 == 1 ? "checkpoint-00000004.h5" : "checkpoint-00000008.h5"), {},
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
        Simulation first = runOf(content);
        const bool last = world().rank() == world().size() - 1;
        const RunResult stopped = first(last ? &alarm : nullptr); // one rank alone has the signal
        EXPECT_EQ(stopped.steps, 2);                              // ranks agree during the second step
        if (last) {
            EXPECT_SAYS(trigger.str(), fmt::format("stopped by a signal after step {}", stopped.steps));
        }
        std::ostringstream report;
        Simulation second = runOf(content);
        second.restart("latest", {}, &report);
        EXPECT_SAYS(report.str(), fmt::format("step {}", stopped.steps));
        const RunResult result = second(nullptr);
        json uninterrupted = content;
        uninterrupted["output"]["folder"] = other.path();
        expectEqual(result, runOf(uninterrupted)(nullptr));
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
    runOf(content)(nullptr);
    world().barrier();
    EXPECT_EQ(folder.checkpoints(),
              (std::vector<std::string>{"checkpoint-00000007.h5", "checkpoint-00000008.h5", "checkpoint-00000009.h5"}));
    world().barrier();
    if (world().rank() == 0) {
        std::string bytes = folder.content("checkpoint-00000009.h5");
        for (std::size_t byte = 5000; byte < bytes.size(); byte += 37)
            bytes[byte] = static_cast<char>(bytes[byte] ^ 4);
        std::ofstream(folder.file("checkpoint-00000009.h5"), std::ios::binary) << bytes;
        std::ofstream(folder.file("checkpoint-00000010.h5.part")) << "half";
        std::ofstream(folder.file("checkpoint-last.h5")) << "foreign";
    }
    world().barrier();
    std::ostringstream report;
    Simulation run = runOf(content);
    run.restart("latest", {}, &report);
    EXPECT_SAYS(report.str(), "NOT USED: " + folder.file("checkpoint-00000009.h5"));
    EXPECT_SAYS(report.str(), "continues from " + folder.file("checkpoint-00000008.h5"));
    EXPECT_EQ(run(nullptr).steps, 9);
    // The end was reached: nothing is computed, and no file is touched.
    std::ostringstream again;
    Simulation finished = runOf(content);
    finished.restart("latest", {}, nullptr);
    EXPECT_EQ(finished(&again).steps, 9);
    EXPECT_SAYS(again.str(), "nothing is left to compute");
}

TEST(Restart, KnowsThatARunHasConverged) {
    const Folder folder;
    json content = caseIn(folder, true);
    content["boundaries"]["y-"] = "far field"; // what is inside at first leaves
    content["initial"] = {{"kind", "vortex"}, {"centre", {0.4, 0.5}}, {"radius", 0.2}};
    content["time"]["steps"] = 1000;
    content["time"]["tolerance"] = 0.2;
    content["output"]["checkpointEvery"] = 1000; // at the end alone
    const RunResult converged = runOf(content)(nullptr);
    EXPECT_TRUE(converged.converged);
    EXPECT_LT(converged.steps, 1000);
    world().barrier();
    const std::string history = folder.content("history.csv");
    std::ostringstream report;
    Simulation again = runOf(content);
    again.restart("latest", {}, nullptr);
    const RunResult same = again(&report);
    expectEqual(same, converged);
    EXPECT_TRUE(same.converged);
    EXPECT_SAYS(report.str(), "nothing is left to compute (converged");
    world().barrier();
    EXPECT_EQ(folder.content("history.csv"), history);
    world().barrier();
    content["time"]["tolerance"] = 0.1; // now it is not enough
    Simulation on = runOf(content);
    on.restart("latest", {}, nullptr);
    EXPECT_GT(on(nullptr).steps, converged.steps);
}

TEST(Restart, HasItsResultsWhereTheLastCheckpointIs) {
    const Folder folder;
    json content = caseIn(folder, true);
    Simulation run = runOf(content);
    run(nullptr);
    world().barrier();
    for (const char *result : {"history.csv", "surface.csv", "run.json"})
        EXPECT_LE(fs::last_write_time(folder.file(result)), fs::last_write_time(folder.file("checkpoint-00000009.h5")))
            << result;
}

TEST(Restart, ByTime) {
    const Folder folder;
    json content = caseIn(folder, true);
    content["output"].erase("checkpointEvery");
    content["output"]["checkpointMinutes"] = 1e-9;
    content["output"]["keep"] = 100;
    runOf(content)(nullptr);
    world().barrier();
    EXPECT_EQ(folder.checkpoints().size(), 8U); // each is agreed on a step before: from 2 on, and the last
}

TEST(Restart, OldLinesOfAHistoryAreOnTheDiskBeforeTheyTakeItsName) {
    const Folder folder;
    runOf(caseIn(folder, true), world())(nullptr);
    flushed().clear();
    const History history(world(), folder.file("history.csv"), 4);
    if (world().rank() == 0) {
        const fs::path place = fs::canonical(folder.path());
        EXPECT_EQ(flushed(), (std::vector<std::string>{place / "history.csv.part", place}));
    } else {
        EXPECT_TRUE(flushed().empty());
    }
}

TEST(Restart, AnIntervalOfTimeHasOneCheckpoint) {
    const auto stepsOf = [](index every) {
        const Folder folder;
        json content = caseIn(folder, true);
        content["output"]["checkpointEvery"] = every;
        content["output"]["checkpointMinutes"] = 1;
        content["output"]["keep"] = 100;
        Simulation run = runOf(content);
        double now = 1e9;
        Checkpoints checkpoints(run.mesh(), run.configuration(), [&] { return now; });
        for (index step = 1; step <= 26; step++) {
            now += 10; // seconds
            RunPoint point;
            point.now.steps = step;
            checkpoints.afterStep(run.solver(), nullptr, point, false);
        }
        world().barrier();
        return folder.checkpoints();
    };
    EXPECT_EQ(stepsOf(0),
              (std::vector<std::string>{"checkpoint-00000007.h5", "checkpoint-00000014.h5", "checkpoint-00000021.h5"}));
    // Those by steps begin an interval, too.
    EXPECT_EQ(stepsOf(12), (std::vector<std::string>{"checkpoint-00000007.h5", "checkpoint-00000012.h5",
                                                     "checkpoint-00000019.h5", "checkpoint-00000024.h5"}));
    EXPECT_EQ(stepsOf(6), (std::vector<std::string>{"checkpoint-00000006.h5", "checkpoint-00000012.h5",
                                                    "checkpoint-00000018.h5", "checkpoint-00000024.h5"}));
}

TEST(Restart, SaysWhatDoesNotFit) {
    const Folder folder, empty;
    const json content = caseIn(folder, false);
    runOf(content)(nullptr);
    const auto restarting = [&](const json &other, const std::string &path = "latest", bool allow = false,
                                bool otherMesh = false) {
        return complaint<DNDS::ArgumentError>([&] { runOf(other).restart(path, {allow, otherMesh}, nullptr); });
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
    EXPECT_SAYS(restarting(roe), "scheme.flux was \"hllc\" and is now \"roe\"");
    EXPECT_SAYS(restarting(roe), "--allow-changes");
    EXPECT_EQ(restarting(roe, "latest", true), "nothing");
    EXPECT_SAYS(restarting(with("/gas/gamma", 1.3)), "gas.gamma was 1.4 and is now 1.3");
    EXPECT_SAYS(restarting(with("/boundaries/y-", "far field")), "boundaries.y-.kind was \"wall\"");
    EXPECT_SAYS(restarting(with("/mesh/box/cells", {9, 8})), "needs the same mesh");
    EXPECT_SAYS(restarting(with("/mesh/box/jitter", 0.1), "latest", true), "is for another mesh");
    EXPECT_SAYS(restarting(with("/mesh/box/jitter", 0.1), "latest", true), "--restart-from-other-mesh");
    EXPECT_EQ(restarting(with("/mesh/box/jitter", 0.1), "latest", true, true), "nothing");
    EXPECT_SAYS(restarting(with("/output/folder", empty.path())), "there is no checkpoint in the folder");
    EXPECT_SAYS(restarting(with("/output/keep", 0)), "output.keep is 0");
    EXPECT_SAYS(complaint<DNDS::DataError>([&] { runOf(content).restart("/nowhere.h5", {}, nullptr); }),
                "/nowhere.h5 cannot be opened: No such file or directory");
}

} // namespace
} // namespace Euler
