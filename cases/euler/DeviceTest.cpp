// Steps on the device: the host's bits, replayed from graphs, and fields that stay there.

#include "TestSupport.hpp"

#include "DNDS/Device/DeviceMemory.hpp"

#include <cstdlib>
#include <sstream>

namespace Euler {
namespace {

TEST(SolverOnDevice, ComputesTheSameBits) {
    json content = baseCase();
    content["mesh"]["box"] = {{"fill", "tetrahedra"}, {"cells", {5, 4, 4}}, {"jitter", 0.15}, {"shuffled", true}};
    setAllBoundaries(content, 3, "far field");
    content["boundaries"]["y-"] = "wall";
    content["reference"]["mach"] = 1.3;
    content["scheme"]["device"] = "cuda";
    if (!DNDS::Device::available()) {
        try {
            runOf(content);
            FAIL() << "computed on a device that is not there";
        } catch (const DNDS::NotBuiltError &error) {
            EXPECT_NE(error.message().find(DNDS::Device::unavailableReason()), std::string::npos) << error.message();
        }
        GTEST_SKIP() << DNDS::Device::unavailableReason();
    }
    if (DNDS::Device::name() != "emulated")
        GTEST_SKIP() << "the far field calls pow(), which rounds differently on a GPU";
    expectSameBits(content);
    content["scheme"]["overlap"] = false;
    content["time"]["mode"] = "steady";
    expectSameBits(content);
    content["scheme"]["graphs"] = false;
    expectSameBits(content);
}

/// On the device; periodic, so that a rank alone pulls from itself.
json deviceCase() {
    json content = baseCase();
    content["mesh"]["box"] = {{"fill", "triangles"}, {"cells", {12, 12}}, {"periodic", {"x", "y"}}, {"jitter", 0.1}};
    content["initial"] = {{"kind", "vortex"}, {"centre", {0.4, 0.3}}, {"radius", 0.3}};
    content["scheme"] = {{"device", "cuda"}};
    content["time"] = {{"mode", "unsteady"}, {"steps", 8}};
    return content;
}

TEST(SolverOnDevice, ReplaysStepsFromGraphs) {
    if (!DNDS::Device::available())
        GTEST_SKIP() << DNDS::Device::unavailableReason();
    const DNDS::CommunicatorView comm(MPI_COMM_WORLD);
    Simulation run = runOf(deviceCase());
    run(nullptr);
    const DNDS::Task::PlanGraphs use = *run.solver().graphUse();
    EXPECT_EQ(use.whyNot, "");
    EXPECT_EQ(use.wholeRuns, comm.size() == 1);
    // The time steps, and stages: all at once, or at least four in each, captured when met again.
    if (comm.size() == 1) {
        EXPECT_EQ(use.graphs, 2);
    } else {
        EXPECT_GE(use.graphs, 1 + 3 * 4);
        EXPECT_LE(use.graphs, 1 + 3 * 6);
    }
    EXPECT_GE(use.launches, 7 * use.graphs);
    run.solver().advance(0.5, 1.0);
    EXPECT_EQ(run.solver().graphUse()->graphs, use.graphs);
    EXPECT_EQ(run.solver().graphUse()->launches, use.launches + use.graphs);
    expectSameBits(deviceCase());
}

TEST(SolverOnDevice, SaysWhyItUsesNoGraphs) {
    if (DNDS::Device::name() != "emulated")
        GTEST_SKIP() << "a real device captures graphs";
    const json content = deviceCase();
    ::setenv("DNDS_EMULATED_DEVICE", "no-graphs", 1);
    Simulation run = runOf(content);
    std::ostringstream report;
    run(&report);
    expectSameBits(content);
    ::unsetenv("DNDS_EMULATED_DEVICE");
    EXPECT_EQ(run.solver().graphUse()->graphs, 0);
    EXPECT_NE(run.solver().graphUse()->whyNot.find("capturing work is refused"), std::string::npos);
    EXPECT_NE(report.str().find("0 of "), std::string::npos) << report.str();
    EXPECT_NE(report.str().find("one by one"), std::string::npos) << report.str();
    EXPECT_NE(report.str().find("capturing work is refused"), std::string::npos) << report.str();
}

/// Bytes that come to the host in some steps with all that histories ask for.
std::size_t bytesThatLeaveTheDevice(json content, int cells) {
    content["mesh"]["box"]["cells"] = {cells, cells};
    content["mesh"]["box"]["periodic"] = {"x"};
    content["boundaries"] = {{"y-", "wall"}, {"y+", "wall"}};
    Simulation run = runOf(content);
    Solver &solver = run.solver();
    const std::size_t before = DNDS::Device::transfers().bytesToHost;
    for (int step = 0; step < 5; step++) {
        solver.advance(0.5, 1.0);
        solver.advanceLocally(0.5);
        solver.checkState();
        solver.residual();
        solver.force({0, 1}, 1.0);
        solver.total();
    }
    const std::size_t bytes = DNDS::Device::transfers().bytesToHost - before;
    const std::size_t state = sizeof(real) * variables * static_cast<std::size_t>(run.mesh().cells.owned);
    (void)solver.state();
    EXPECT_EQ(DNDS::Device::transfers().bytesToHost - before, bytes + state); // what counting sees if fields do leave
    return bytes;
}

TEST(SolverOnDevice, KeepsFieldsOnTheDevice) {
    if (DNDS::Device::name() != "emulated")
        GTEST_SKIP() << "copies in graphs are counted on the emulated device only";
    const std::size_t few = bytesThatLeaveTheDevice(deviceCase(), 8);
    EXPECT_GT(few, 0U);
    EXPECT_LE(few, 5 * 1024U); // time steps and sums
    EXPECT_EQ(bytesThatLeaveTheDevice(deviceCase(), 24), few);
}

} // namespace
} // namespace Euler
