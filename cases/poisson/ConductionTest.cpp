#include "Conduction.hpp"

#include "DNDS/Mpi/ThrowsOnAll.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

namespace Poisson {
namespace {

using namespace DNDS;
using namespace DNDS::test;
namespace Geom = DNDS::Geom;

const KrylovOptions strict{.relative = 1e-12};

Geom::UnstructuredMesh boxOf(Geom::BoxCells fill, index bricks, CommunicatorView comm) {
    const Geom::BoxMeshOptions box{
        .fill = fill, .cells = {bricks, bricks, bricks}, .lengths = {2, 1, 1}, .jitter = 0.1, .shuffled = true};
    return Geom::buildMesh(comm, Geom::makeBoxMesh(box, comm));
}

std::map<std::string, Function> ends(real left, real right) {
    return {{"x-", [=](Position) { return left; }}, {"x+", [=](Position) { return right; }}};
}

constexpr std::array fills{Geom::BoxCells::Triangles,  Geom::BoxCells::Quadrilaterals, Geom::BoxCells::MixedSurface,
                           Geom::BoxCells::Tetrahedra, Geom::BoxCells::Hexahedra,      Geom::BoxCells::Prisms,
                           Geom::BoxCells::MixedVolume};

TEST(Conduction, LinearTemperaturesAreExactOnAllCells) {
    for (const Geom::BoxCells fill : fills) {
        const Geom::UnstructuredMesh mesh = boxOf(fill, 5, MPI_COMM_WORLD);
        Conduction body(mesh, {.conductivity = 3}, ends(300, 400));
        Temperature t = body.start();
        EXPECT_TRUE(body.solveSteady(t, strict).converged());
        EXPECT_LT(body.error(t, [](Position x) { return 300 + 50 * x[0]; }), 1e-8);
        const auto heat = body.heatEntering(t); // conductivity times area times gradient
        EXPECT_NEAR(heat.at("x+"), 150, 1e-6);
        EXPECT_NEAR(heat.at("x-"), -150, 1e-6);
    }
}

TEST(Conduction, BitsAreThoseOfOneRank) {
    for (const Geom::BoxCells fill : {Geom::BoxCells::MixedSurface, Geom::BoxCells::MixedVolume}) {
        const auto solve = [&](CommunicatorView comm) {
            const Geom::UnstructuredMesh mesh = boxOf(fill, 4, comm);
            Material material;
            material.source = [](Position x) { return 100 * x[0] * x[1]; };
            Conduction body(mesh, material, ends(300, 400));
            Temperature t = body.start();
            for (int step = 0; step < 3; ++step)
                EXPECT_TRUE(body.step(t, 0.01, strict).converged());
            std::vector<std::pair<index, real>> values;
            for (index node = 0; node < mesh.nodes.owned; ++node)
                values.emplace_back(mesh.nodes.fileNumbers[toSize(node)], (*t.father)(node, 0));
            return values;
        };
        const auto parts = solve(MPI_COMM_WORLD);
        auto whole = solve(MPI_COMM_SELF);
        std::ranges::sort(whole);
        for (const auto &[number, value] : parts)
            EXPECT_EQ(value, whole[toSize(number)].second) << "node " << number;
    }
}

TEST(Conduction, StepsComeToTheSteadyTemperature) {
    const Geom::UnstructuredMesh mesh = boxOf(Geom::BoxCells::Prisms, 4, MPI_COMM_WORLD);
    Conduction body(mesh, {.conductivity = 2, .capacity = 5}, ends(300, 400));
    Temperature steady = body.start(), t = body.start();
    EXPECT_TRUE(body.solveSteady(steady, strict).converged());
    real before = t.norm2(steady);
    for (int step = 0; step < 60; ++step) {
        EXPECT_TRUE(body.step(t, 1, strict).converged());
        const real now = t.norm2(steady);
        EXPECT_TRUE(now < before || now < 1e-6) << "step " << step;
        before = now;
    }
    EXPECT_LT(before, 1e-6 * steady.norm2());
}

TEST(Conduction, WhatCannotBeIsRefusedOnAllRanks) {
    const Geom::UnstructuredMesh mesh = boxOf(Geom::BoxCells::Hexahedra, 3, MPI_COMM_WORLD);
    expectContains(messageOnAll<ArgumentError>([&] {
                       Conduction(mesh, {}, {{"wall", [](Position) { return real(300); }}});
                   }),
                   "wall");
    const Geom::UnstructuredMesh polyhedra = boxOf(Geom::BoxCells::Polyhedra, 3, MPI_COMM_WORLD);
    expectContains(messageOnAll<ArgumentError>([&] { Conduction(polyhedra, {}, {}); }), "linear cells");
}

/// A part from a public CGNS file: heat that enters leaves.
TEST(Conduction, HeatIsConservedInAPartFromAFile) {
    const std::filesystem::path path = std::filesystem::path(DNDS_TEST_MESHES) / "cylinder3d_tets.cgns";
    if (!std::filesystem::exists(path))
        GTEST_SKIP() << "needs " << path;
    const Geom::UnstructuredMesh mesh = Geom::buildMesh(MPI_COMM_WORLD, Geom::readMesh(MPI_COMM_WORLD, path.string()));
    std::vector<std::string> patches;
    for (const Geom::MeshPatch &patch : mesh.patches)
        if (CommunicatorView(MPI_COMM_WORLD).allReduce(static_cast<int>(patch.ownFaces().size()), MPI_SUM) > 0)
            patches.push_back(patch.name);
    ASSERT_GE(patches.size(), 2U);
    Conduction body(
        mesh, {}, {{patches[0], [](Position) { return real(400); }}, {patches[1], [](Position) { return real(300); }}});
    Temperature t = body.start();
    const KrylovResult done = body.solveSteady(t, strict);
    EXPECT_TRUE(done.converged()) << done.text();
    const auto heat = body.heatEntering(t);
    EXPECT_GT(heat.at(patches[0]), 0);
    EXPECT_NEAR(heat.at(patches[0]), -heat.at(patches[1]), 1e-8 * heat.at(patches[0]));
    EXPECT_GE(t.min(), 300 - 1e-6);
    EXPECT_LE(t.max(), 400 + 1e-6);
}

} // namespace
} // namespace Poisson
