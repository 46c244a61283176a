/// @file TestSupport.hpp
/// @brief Shared by the tests of this folder: a small case to change, and meshes of files.
#pragma once

#include "Simulation.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace Euler {

namespace Geom = DNDS::Geom;
using nlohmann::json;

inline const Gas gas;

inline json baseCase() {
    return json::parse(R"({
        "mesh": {"box": {"fill": "triangles", "cells": [6, 6, 6]}},
        "reference": {"pressure": 1, "density": 1, "mach": 0.7, "angleOfAttack": 20},
        "time": {"mode": "unsteady", "steps": 5},
        "output": {"folder": ""}
    })");
}

inline void setAllBoundaries(json &content, int dimension, const json &condition) {
    for (const char *name : {"x-", "x+", "y-", "y+", "z-", "z+"})
        if (dimension == 3 || name[0] != 'z')
            content["boundaries"][name] = condition;
}

inline Simulation runOf(const json &content, DNDS::CommunicatorView comm = MPI_COMM_WORLD) {
    return Simulation(comm, parseConfiguration(content.dump(), "test.json"));
}

/// The message of the exception of this type that `body` throws; "nothing" without one.
template <class ErrorType, class Body>
std::string complaint(Body &&body) {
    try {
        body();
    } catch (const ErrorType &error) {
        return error.message();
    }
    return "nothing";
}

/// A configuration of this folder that writes no files.
inline json caseOf(const std::string &name) {
    json content = json::parse(std::ifstream(EULER_FOLDER "/" + name), nullptr, true, true);
    content["output"]["folder"] = "";
    return content;
}

/// Its path, or "" where it is not there.
inline std::string sharedMesh(const std::string &name) {
    const std::string path = DNDS_TEST_MESHES "/" + name;
    return std::filesystem::exists(path) ? path : "";
}

inline real largestDifference(const Conserved &a, const Conserved &b) {
    const Vector m = a.momentum - b.momentum;
    return std::max(
        {std::abs(a.mass - b.mass), std::abs(m.x), std::abs(m.y), std::abs(m.z), std::abs(a.energy - b.energy)});
}

/// The same run on one rank and on all: states, residuals, forces.
inline void expectSameBits(const json &content) {
    json alone = content;
    alone["scheme"]["overlap"] = false;
    alone["scheme"]["device"] = "host";
    Simulation serial = runOf(alone, MPI_COMM_SELF);
    const RunResult expected = serial(nullptr);
    std::vector<index> cellOfNumber(static_cast<std::size_t>(serial.mesh().cells.owned));
    for (index cell = 0; cell < serial.mesh().cells.owned; cell++)
        cellOfNumber[static_cast<std::size_t>(serial.mesh().cells.fileNumbers[static_cast<std::size_t>(cell)])] = cell;
    Simulation run = runOf(content);
    const RunResult result = run(nullptr);
    EXPECT_EQ(result.residual, expected.residual);
    EXPECT_EQ(result.total, expected.total);
    EXPECT_EQ(result.time, expected.time);
    EXPECT_EQ(result.drag, expected.drag);
    EXPECT_EQ(result.lift, expected.lift);
    index different = 0;
    for (index cell = 0; cell < run.mesh().cells.owned; cell++) {
        const auto number = static_cast<std::size_t>(run.mesh().cells.fileNumbers[static_cast<std::size_t>(cell)]);
        for (int k = 0; run.kinetics() != nullptr && k < species; k++)
            different +=
                run.kinetics()->fractions()(cell, k) == serial.kinetics()->fractions()(cellOfNumber[number], k) ? 0 : 1;
        for (int k = 0; k < variables; k++)
            different +=
                run.solver().conserved()(cell, k) == serial.solver().conserved()(cellOfNumber[number], k) ? 0 : 1;
    }
    EXPECT_EQ(different, 0) << content.dump();
}

} // namespace Euler
