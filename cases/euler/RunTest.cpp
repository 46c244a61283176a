// Configurations, progress, plans and files of a run.

#include "TestSupport.hpp"

#include "DNDS/Geom/Vtk/VtkHdfWriter.hpp"
#include "support/TemporaryFolder.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace Euler {
namespace {

std::string complaintAbout(const json &content) {
    try {
        runOf(content);
    } catch (const DNDS::ArgumentError &error) {
        return error.message();
    }
    return "nothing";
}

TEST(Configuration, SaysWhatIsWrong) {
    json good = baseCase();
    setAllBoundaries(good, 2, "far field");
    EXPECT_EQ(complaintAbout(good), "nothing");
    const auto with = [&](const char *pointer, const json &value) {
        json content = good;
        content[json::json_pointer(pointer)] = value;
        return complaintAbout(content);
    };
    const auto expect = [](const std::string &message, const char *part) {
        EXPECT_NE(message.find(part), std::string::npos) << message;
    };
    expect(with("/scheme/fluxx", "roe"), "scheme.fluxx is unknown; scheme has: flux, entropyFix");
    expect(with("/scheme/flux", "ausm"), "scheme.flux is 'ausm'; there are: hllc, roe");
    expect(with("/scheme/flux", 3), "scheme.flux must be a text");
    expect(with("/scheme/gradient", "weno"), "scheme.gradient is 'weno'; there are: least-squares, green-gauss");
    expect(with("/scheme/reproducible", "yes"), "scheme.reproducible must be true or false");
    expect(with("/time/cfl", "big"), "time.cfl must be a number");
    expect(with("/time/cfl", 0), "time.cfl is 0: it must be positive");
    expect(with("/time/steps", 2.5), "time.steps must be an integer");
    expect(with("/boundaries/airfoil", "wall"),
           "'airfoil' of boundaries is not a patch of the mesh, which has: x-, x+");
    expect(with("/boundaries/x-", "wal"), "boundaries.x-.kind is 'wal'; there are: wall, symmetry");
    expect(with("/output/forces", {"wing"}), "'wing' of output.forces is not a patch of the mesh, which has: x-");
    expect(with("/output/forces", {"x-"}), "'x-' of output.forces is neither a wall nor a symmetry");
    expect(with("/mesh/file", "a"), "mesh needs either a file or a box");
    expect(with("/mesh/box/fill", "foam"), "foam");
    expect(with("/mesh/box/floor", {{"kind", "hill"}}), "mesh.box.floor.kind is 'hill'; there are: flat, ramp, step");
    expect(with("/mesh/box/ceiling", {{"kind", "step"}}), "mesh.box.ceiling.kind is 'step'; there are: flat, ramp");
    expect(with("/mesh/box/floor", {{"kind", "step"}, {"start", 0.5}}), "mesh.box.floor.height is missing");
    expect(with("/mesh/box/floor", {{"kind", "ramp"}, {"start", 0.5}}), "mesh.box.floor.angle is missing");
    expect(with("/mesh/box/ceiling", {{"kind", "ramp"}, {"start", 0.4}, {"angle", 10}}), "corner of a ramp at x = 0.4");
    json lacking = good;
    lacking["boundaries"].erase("y+");
    expect(complaintAbout(lacking), "boundaries lacks the patch 'y+' with 6 faces");
    lacking.erase("time");
    expect(complaintAbout(lacking), "time.mode is missing");
    EXPECT_THROW(parseConfiguration("{", "test.json"), DNDS::ArgumentError);
    EXPECT_THROW(readConfiguration(MPI_COMM_WORLD, "/nowhere.json"), DNDS::ArgumentError);
}

TEST(Configuration, TakesChanges) {
    json content = baseCase();
    const Configuration changed =
        parseConfiguration(content.dump(), "test.json", {"time.steps=7", "scheme.flux=roe", "scheme.overlap=false"});
    EXPECT_EQ(changed.time.steps, 7);
    EXPECT_EQ(changed.scheme.flux, FluxScheme::Roe);
    EXPECT_FALSE(changed.scheme.overlap);
    EXPECT_THROW(parseConfiguration(content.dump(), "test.json", {"time"}), DNDS::ArgumentError);
    EXPECT_THROW(parseConfiguration(content.dump(), "test.json", {"time.steps.x=1"}), DNDS::ArgumentError);
}

/// Properties of objects of the schema, by path; "" is the file.
TEST(Configuration, HasTheKeysOfItsSchema) {
    const json schema = json::parse(std::ifstream(EULER_FOLDER "/euler.schema.json"));
    for (const char *object :
         {"", "mesh", "gas", "reference", "initial", "scheme", "time", "output", "implicit", "kinetics", "balance"}) {
        json content = baseCase();
        content["kinetics"] = {{"centre", {0, 0}}, {"radius", 1}};
        content["initial"] = {{"kind", "reference"}};
        json::json_pointer place(*object != '\0' ? "/" + std::string(object) : "");
        content[place]["?"] = 1;
        std::string message;
        try {
            parseConfiguration(content.dump(), "test.json");
        } catch (const DNDS::ArgumentError &error) {
            message = error.message();
        }
        const json &described = *object != '\0' ? schema["properties"][object] : schema;
        EXPECT_EQ(described["additionalProperties"], false) << object;
        for (const auto &property : described["properties"].items()) {
            const bool ofOtherKinds = std::string(object) == "initial" && property.key() != "kind";
            EXPECT_NE(ofOtherKinds, message.find(property.key()) != std::string::npos)
                << property.key() << ": " << message;
        }
        const auto known = static_cast<std::size_t>(std::count(message.begin(), message.end(), ',')) + 1;
        if (std::string(object) != "initial") {
            EXPECT_EQ(described["properties"].size(), known) << message;
        }
    }
}

TEST(Progress, SaysHowFarARunIs) {
    const ProgressGoal goal{.cells = 1000000, .lastStep = 2000, .tolerance = 1e-6};
    const auto line = [](const ProgressGoal &to, const ProgressNow &now) {
        return Progress(nullptr, ProgressStyle::None, to).text(now);
    };
    EXPECT_EQ(line(goal, {.step = 1, .residual = 1, .seconds = 0.5, .cfl = 0.8}),
              "step 1/2000  residual 1.0e+00 of first  CFL 0.8  2.00 Mcells/s  16:40 min left");
    // By the residual, half of the run is done.
    EXPECT_EQ(line(goal, {.step = 100, .residual = 1e-3, .seconds = 20, .cfl = 1234.56, .krylovIterations = 345}),
              "step 100/2000  residual 1.0e-03 of first  CFL 1235  345 Krylov iterations  5.00 Mcells/s  20 s left");
    const ProgressGoal timed{
        .cells = 100, .firstStep = 50, .lastStep = std::numeric_limits<int>::max(), .begin = 1, .end = 3};
    EXPECT_EQ(line(timed, {.step = 150, .time = 1.5, .seconds = 1200}),
              "step 150  time 1.5/3  residual 0.0e+00 of first  CFL 0  0.00 Mcells/s  1:00:00 h left");
    EXPECT_EQ(durationOf(-1), "0 s");
    EXPECT_EQ(durationOf(59.6), "1:00 min");
}

TEST(Progress, IsShownWhenItIsDue) {
    const auto shown = [](ProgressStyle style, const char *what) {
        std::ostringstream out;
        {
            Progress progress(&out, style, {.lastStep = 100});
            for (index step = 1; step <= 100; step++) // a tenth of a second each
                progress({.step = step, .seconds = 0.1 * static_cast<double>(step)}, step == 100);
        }
        const std::string text = out.str();
        index count = 0;
        for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
            count++;
        return count;
    };
    EXPECT_EQ(shown(ProgressStyle::Lines, "\n"), 3); // after 0.1, 5.1 and 10 seconds
    EXPECT_EQ(shown(ProgressStyle::Lines, "\r"), 0);
    EXPECT_GT(shown(ProgressStyle::Line, "\r"), 40);
    EXPECT_EQ(shown(ProgressStyle::Line, "\n"), 1);
    EXPECT_EQ(shown(ProgressStyle::None, "step"), 0);
    // Output after a line on a terminal starts on the next one, also if the run ends early.
    std::ostringstream out;
    { Progress(&out, ProgressStyle::Line, {})({.step = 3}); }
    EXPECT_EQ(out.str().back(), '\n');
}

TEST(Simulation, PlansWhatItWouldTake) {
    const DNDS::CommunicatorView comm(MPI_COMM_WORLD);
    json content = baseCase();
    setAllBoundaries(content, 2, "far field");
    const DNDS::test::TemporaryFolder temporary;
    const std::string folder = temporary.file("folder/deeper");
    content["output"]["folder"] = folder;
    const Simulation run = runOf(content);
    const std::string plan = run.plan();
    EXPECT_FALSE(std::filesystem::exists(folder));
    // A title of three lines, a line for each rank and, if there are more, the least, mean and most of them.
    EXPECT_EQ(std::count(plan.begin(), plan.end(), '\n'), 3 + comm.size() + (comm.size() > 1 ? 3 : 0)) << plan;
    std::size_t received = 0;
    for (const DNDS::PeerPath &path : run.solver().pullPaths())
        received += path.bytesReceived;
    EXPECT_EQ(received, sizeof(real) * static_cast<std::size_t>(run.mesh().cells.ghosts) * (variables + gradientWidth));
    content["output"]["folder"] = "/dev/null/results";
    EXPECT_THROW(runOf(content).plan(), DNDS::DataError);
}

/// A hot region that crosses the mesh.
json unevenCase() {
    json content = baseCase();
    content["mesh"]["box"]["cells"] = {24, 24, 1};
    content["time"]["steps"] = 30;
    setAllBoundaries(content, 2, "far field");
    content["boundaries"]["y-"] = "wall";
    content["kinetics"] = {{"centre", {0, 0}}, {"velocity", {1, 1}}, {"radius", 0.3}, {"substeps", 60}};
    return content;
}

TEST(Balance, ChangesNoBits) {
    const DNDS::CommunicatorView comm(MPI_COMM_WORLD);
    for (const char *partitioner : {"curve", "graph"}) {
        json content = unevenCase();
        content["balance"] = {{"threshold", 0}, {"partitioner", partitioner}};
        expectSameBits(content);
        Simulation balanced = runOf(content);
        std::ostringstream out;
        (void)balanced(&out, ProgressStyle::None);
        EXPECT_EQ(balanced.balance().moves > 0, comm.size() > 1);
        EXPECT_EQ(out.str().find("balance after step 1: ") != std::string::npos, comm.size() > 1) << out.str();
        EXPECT_NE(out.str().find("cells moved; the slowest rank of each step"), std::string::npos) << out.str();
    }
}

TEST(Kinetics, AreRobertsonsProblem) {
    Fractions now = {1, 0, 0};
    for (int second = 0; second < 40; second++)
        now = react(now, 50);
    // As cvRoberts prints them, an example of CVODE (SUNDIALS).
    EXPECT_NEAR(now[0], 0.7158, 2e-3);
    EXPECT_NEAR(now[1], 9.185e-6, 5e-8);
    EXPECT_NEAR(now[2], 0.2842, 2e-3);
    EXPECT_NEAR(now[0] + now[1] + now[2], 1, 1e-14);
}

TEST(Simulation, WritesHistoriesFieldsAndSurfaces) {
    const DNDS::CommunicatorView comm(MPI_COMM_WORLD);
    json content = baseCase();
    setAllBoundaries(content, 2, "far field");
    content["boundaries"]["y-"] = "wall";
    const DNDS::test::TemporaryFolder temporary;
    const std::filesystem::path folder = temporary.file("folder");
    content["output"] = {{"folder", folder.string()}, {"historyEvery", 2}, {"fields", Geom::VtkHdfWriter::built()}};
    std::ostringstream report;
    Simulation run = runOf(content);
    const RunResult result = run(&report);
    const index ghosts = comm.allReduce(run.mesh().cells.ghosts, MPI_SUM);
    if (comm.rank() == 0) {
        std::ifstream history(folder / "history.csv");
        const std::vector<std::string> lines{std::istream_iterator<std::string>(history), {}};
        EXPECT_EQ(lines.size(), 5U); // the heading, and steps 1, 2, 4, 5
        std::ifstream surface(folder / "surface.csv");
        EXPECT_EQ(std::count(std::istreambuf_iterator<char>(surface), {}, '\n'), 7);
        EXPECT_EQ(std::filesystem::exists(folder / "fields.vtkhdf"), Geom::VtkHdfWriter::built());
        EXPECT_NE(report.str().find("million cells a second a core"), std::string::npos);
        const json summary = json::parse(std::ifstream(folder / "run.json"));
        EXPECT_EQ(summary["cells"], 72);
        EXPECT_EQ(summary["ranks"], comm.size());
        EXPECT_EQ(summary["steps"], 5);
        EXPECT_EQ(summary["converged"], false);
        EXPECT_EQ(summary["drag"], result.drag);
        EXPECT_EQ(summary["residual"].size(), variables);
        const json &costs = summary["costs"];
        const double seconds = costs["seconds"];
        EXPECT_GT(costs["computing"], 0);
        EXPECT_LE(costs["computing"], costs["computing, slowest rank"]);
        EXPECT_LE(costs["pulls"], costs["pulls, slowest rank"]);
        EXPECT_NEAR(costs["pulls"], costs["starting pulls"].get<double>() + costs["waiting"].get<double>(), 1e-9);
        // Time outside the measured parts is included, too; clocks may differ by a little.
        EXPECT_GT(costs["rest"], -0.01 * seconds);
        EXPECT_NEAR(seconds,
                    costs["computing"].get<double>() + costs["pulls"].get<double>() + costs["rest"].get<double>(),
                    1e-9);
        EXPECT_NEAR(costs["cells a second a rank"], 72 * 5 / seconds / comm.size(), 1e-6 * 72 * 5 / seconds);
        EXPECT_GE(costs["hidden share of pulls"], 0);
        EXPECT_LE(costs["hidden share of pulls"], 1);
        // Two pulls in each of the three stages, of states and gradients: each ghost's row once, and nothing else. None
        // if no rank has ghosts.
        EXPECT_EQ(costs["pulls of each rank"], ghosts > 0 ? 5 * 3 * 2 : 0);
        EXPECT_EQ(costs["bytes pulled"],
                  5 * 3 * ghosts * static_cast<index>(sizeof(real)) * (variables + gradientWidth));
        EXPECT_EQ(costs["bytes sent"], costs["bytes pulled"]);
    }
}

} // namespace
} // namespace Euler
