// Implicit steps: their results, their bits, and what they refuse.

#include "TestSupport.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace Euler {
namespace {

using DNDS::ArgumentError;
using DNDS::DataError;

/// Mach 2 over a corner of 10 degrees.
json cornerCase(bool implicit) {
    json content = caseOf("ramp.json");
    content["mesh"]["box"]["cells"] = {18, 12};
    content["time"] = {{"mode", "steady"}, {"steps", 3000}, {"tolerance", 1e-8}};
    content["output"]["historyEvery"] = 1;
    if (implicit)
        content["implicit"] = {{"cfl", 10}};
    return content;
}

TEST(Implicit, ReachesTheSteadyFlowOfExplicitSteps) {
    Simulation byExplicit = runOf(cornerCase(false));
    Simulation byImplicit = runOf(cornerCase(true));
    const RunResult expected = byExplicit(nullptr);
    const RunResult result = byImplicit(nullptr);
    EXPECT_TRUE(expected.converged);
    EXPECT_TRUE(result.converged);
    EXPECT_LT(2 * result.steps, expected.steps);
    EXPECT_GE(result.implicit.iterations, result.steps);
    EXPECT_GT(result.implicit.cfl, 1000);
    EXPECT_EQ(result.implicit.unconverged, 0);
    EXPECT_NEAR(result.drag, expected.drag, 1e-7);
    EXPECT_NEAR(result.lift, expected.lift, 1e-7);
    for (index cell = 0; cell < byImplicit.mesh().cells.owned; cell++)
        for (const int k : {0, variables - 1})
            EXPECT_NEAR(byImplicit.solver().conserved()(cell, k) / byExplicit.solver().conserved()(cell, k), 1, 1e-6);
}

/// With the Jacobian of first order alone, and with differences of rates from the start.
TEST(Implicit, HasTheSameBitsOnAnyNumberOfRanks) {
    for (const real newtonBelow : {0.0, 0.1, 10.0}) {
        json content = cornerCase(true);
        content["mesh"]["box"]["fill"] = "mixed-surface";
        content["mesh"]["box"]["shuffled"] = true;
        content["time"]["steps"] = 5;
        content["mesh"]["box"]["cells"] = {12, 8};
        content["implicit"]["newtonBelow"] = newtonBelow;
        expectSameBits(content);
        content["reference"]["mach"] = 0.5;
        for (const char *side : {"x-", "x+", "y+"})
            content["boundaries"][side] = "far field";
        content["mesh"]["box"] = {{"fill", "tetrahedra"}, {"cells", {4, 3, 3}}, {"jitter", 0.1}, {"periodic", {"z"}}};
        expectSameBits(content);
    }
}

TEST(Implicit, GoesOnWhereGmresDoesNotConvergeAndSaysSo) {
    json content = cornerCase(true);
    content["time"]["steps"] = 8;
    content["implicit"]["krylovTolerance"] = 1e-12;
    content["implicit"]["krylovIterations"] = 1;
    std::ostringstream out;
    Simulation run = runOf(content);
    const RunResult result = run(&out, ProgressStyle::Lines);
    EXPECT_EQ(result.steps, 8);
    EXPECT_GE(result.implicit.unconverged, 8);
    EXPECT_NE(out.str().find("of 8 steps were left above implicit.krylovTolerance"), std::string::npos) << out.str();
    EXPECT_NE(out.str().find(" Krylov iterations"), std::string::npos) << out.str();
}

/// CFL numbers that are much too large are reduced until a step can be made.
TEST(Implicit, RecoversFromAnExcessiveCflNumber) {
    json content = cornerCase(true);
    content["implicit"]["cfl"] = 1e5;
    const RunResult result = runOf(content)(nullptr);
    EXPECT_TRUE(result.converged);
}

TEST(Implicit, NamesAnImpossibleCell) {
    Simulation run = runOf(cornerCase(true));
    const Primitive far = run.configuration().reference.state;
    run.solver().setState([&](Vector point) {
        Primitive w = far;
        if (point.x < 0.05 && point.y < 0.05)
            w.pressure = -1;
        return w;
    });
    const std::string said = complaint<DataError>([&] { run(nullptr); });
    EXPECT_NE(said.find("cell 0 (counted from 0) has lost its density or pressure"), std::string::npos) << said;
}

TEST(Implicit, RefusesWhatDoesNotFit) {
    const auto with = [](const char *pointer, const json &value) {
        json content = cornerCase(true);
        content["scheme"].erase("timeStepping");
        content[json::json_pointer(pointer)] = value;
        return complaint<ArgumentError>([&] { parseConfiguration(content.dump(), "test.json"); });
    };
    const auto expect = [](const std::string &message, const char *part) {
        EXPECT_NE(message.find(part), std::string::npos) << message;
    };
    expect(with("/time/steps", 9), "nothing");
    expect(with("/time", {{"mode", "unsteady"}, {"steps", 9}}), "implicit needs time.mode 'steady'");
    expect(with("/scheme/device", "cuda"), "set scheme.device to host, or remove implicit");
    expect(with("/kinetics", {{"centre", {0, 0}}, {"radius", 1}}), "remove kinetics or implicit");
    expect(with("/balance", json::object()), "remove balance or implicit");
    expect(with("/time/cfl", 2), "set implicit.cfl instead");
    expect(with("/scheme/timeStepping", "ssp-rk2"), "scheme.timeStepping is of explicit steps");
    expect(with("/implicit/cfl", 0), "implicit.cfl is 0: it must be positive");
    expect(with("/implicit/growth", 0.5), "implicit.growth is 0.5: it must be at least 1");
    expect(with("/implicit/cflMost", 5), "implicit.cflMost is 5: it must be at least that of the first step");
    expect(with("/implicit/newtonBelow", -1), "implicit.newtonBelow is -1: it must be at least 0");
    expect(with("/implicit/krylovTolerance", 1), "implicit.krylovTolerance is 1: it must be less than 1");
    expect(with("/implicit/krylovIterations", 0), "implicit.krylovIterations is 0: it must be from 1 to 1000");
    expect(with("/implicit/sweeps", 2000), "implicit.sweeps is 2000: it must be from 1 to 1000");
    expect(with("/implicit/sweep", 2), "implicit.sweep is unknown; implicit has: cfl, growth");
}

} // namespace
} // namespace Euler
