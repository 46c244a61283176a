// Flows, and their bits on any number of ranks and on the device.

#include "TestSupport.hpp"

#include <gtest/gtest.h>

namespace Euler {
namespace {

struct Fill {
    const char *name;
    int dimension;
};
constexpr std::array<Fill, 4> fills{{{"mixed-surface", 2}, {"mixed-volume", 3}, {"tetrahedra", 3}, {"polyhedra", 3}}};

TEST(Solver, KeepsAFreeStream) {
    for (const auto &[fill, dimension] : fills) {
        json content = baseCase();
        content["mesh"]["box"] = {{"fill", fill}, {"cells", {6, 5, 4}}, {"jitter", 0.15}, {"shuffled", true}};
        setAllBoundaries(content, dimension, "far field");
        Simulation run = runOf(content);
        run(nullptr);
        const Primitive far = run.configuration().reference.state;
        const auto &state = run.solver().state();
        for (index cell = 0; cell < state.size(); cell++)
            EXPECT_LT(largestDifference(gas.conserved(Primitive::load(state[cell])), gas.conserved(far)), 1e-13)
                << fill;
    }
}

/// A polygon around a square, closed by a slit: it is its own neighbour there, as agglomerated cells may be.
TEST(Solver, KeepsAFreeStreamAroundASlit) {
    const DNDS::CommunicatorView comm(MPI_COMM_WORLD);
    Geom::SourceMesh source;
    source.origin = "a slit";
    source.cellDimension = source.physicalDimension = 2;
    source.globalNodes = 8;
    source.cells.globalSize = 2;
    if (comm.rank() == 0) {
        for (const real r : {2.0, 1.0})
            source.coordinates.insert(source.coordinates.end(), {{-r, -r, 0}, {r, -r, 0}, {r, r, 0}, {-r, r, 0}});
        source.cells.types = {Geom::ElementType::Polygon, Geom::ElementType::Quad4};
        source.cells.nodes = {0, 1, 2, 3, 0, 4, 7, 6, 5, 4, 4, 5, 6, 7};
        source.cells.starts = {0, 10, 14};
        source.cells.fileIds = {1, 2};
    } else {
        source.firstNode = source.globalNodes;
        source.cells.first = source.cells.globalSize;
    }
    Geom::UnstructuredMesh mesh = Geom::buildMesh(comm, std::move(source), {.ghostsBy = Geom::GhostNeighbours::Faces});
    Geom::MeshMetrics metrics = computeMetrics(mesh);
    const Primitive far{1, {0.7, 0.4, 0}, 1};
    Solver solver(mesh, metrics, gas, Scheme{},
                  std::vector<BoundaryCondition>(mesh.patches.size(), {BoundaryKind::SupersonicInflow, far}));
    solver.setState([&](Vector) { return far; });
    for (int step = 0; step < 20; step++)
        solver.advance(0.5, 1.0);
    for (index cell = 0; cell < mesh.cells.owned; cell++)
        EXPECT_LT(largestDifference(Conserved::load(solver.conserved()[cell]), gas.conserved(far)), 1e-13);

    // The inflow is given: a change that all cells have changes no rate.
    solver.prepareTrials();
    solver.ratesWith(0);
    DNDS::SparseMatrix<variables> matrix("Jacobian",
                                         DNDS::MatrixPattern::create("cells", mesh.cells.pattern, mesh.cellCells));
    solver.setJacobian(matrix);
    const auto starts = matrix.pattern().starts();
    for (index cell = 0; cell < mesh.cells.owned; cell++)
        for (int row = 0; row < variables; row++) {
            real sum = 0;
            for (LocalIndex at = starts[DNDS::toSize(cell)]; at < starts[DNDS::toSize(cell) + 1]; at++)
                sum += matrix.at(DNDS::toSize(at)).row(row).sum();
            EXPECT_NEAR(sum, 0, 1e-5) << "cell " << cell << ", row " << row;
        }
}

TEST(Solver, HasExactGradientsOfLinearFields) {
    for (const auto &[fill, dimension] : fills) {
        json content = baseCase();
        content["mesh"]["box"] = {{"fill", fill}, {"cells", {6, 5, 4}}, {"jitter", 0.15}};
        content["scheme"]["limiter"] = "none";
        content["time"]["end"] = 1e-9;
        setAllBoundaries(content, dimension, "supersonic outflow");
        Simulation run = runOf(content);
        run.solver().setState([d = dimension](Vector x) {
            return Primitive{3 + x.x - 0.5 * x.y, {x.y, 2 * x.x, d == 3 ? x.z - x.y : 0}, 5 + x.x + x.y};
        });
        run(nullptr);
        const auto &gradient = run.solver().gradient();
        const real z = dimension == 3 ? 1 : 0;
        const std::array<real, gradientWidth> exact{1, -0.5, 0, 0, 1, 0, 2, 0, 0, 0, -z, z, 1, 1, 0};
        for (index cell = 0; cell < gradient.size(); cell++) {
            const auto others = run.mesh().cellCells[cell];
            if (std::find(others.begin(), others.end(), Geom::noEntity) != others.end())
                continue; // where the boundary is a neighbour, this flow is not what the boundary makes it
            for (int k = 0; k < gradientWidth; k++)
                ASSERT_NEAR(gradient(cell, k), exact[static_cast<std::size_t>(k)], 1e-6) << fill << " " << k;
        }
    }
}

RunResult vortexRun(const std::string &fill, int cells, int fluxes) {
    json content = baseCase();
    content["mesh"]["box"] = {
        {"fill", fill}, {"cells", {cells, cells}}, {"lengths", {10, 10}}, {"periodic", {"x", "y"}}, {"jitter", 0.1}};
    content["reference"]["angleOfAttack"] = 45;
    content["initial"] = {{"kind", "vortex"}, {"centre", {5, 5}}};
    content["scheme"] = {{"limiter", "none"}, {"flux", fluxes == 0 ? "hllc" : "roe"}};
    content["time"] = {{"mode", "unsteady"}, {"end", 1.0}};
    return runOf(content)(nullptr);
}

TEST(Solver, IsOfSecondOrder) {
    for (const auto *fill : {"triangles", "quadrilaterals"})
        for (int flux = 0; flux < 2; flux++) {
            const RunResult coarse = vortexRun(fill, 24, flux);
            const RunResult fine = vortexRun(fill, 48, flux);
            EXPECT_GT(std::log2(coarse.squareError / fine.squareError), 1.9) << fill;
            EXPECT_GT(std::log2(coarse.meanError / fine.meanError), 1.9) << fill;
            EXPECT_LT(fine.squareError, 2e-3);
        }
}

TEST(Solver, ConservesInPeriodicBoxes) {
    json content = baseCase();
    content["mesh"]["box"] = {{"fill", "mixed-surface"}, {"cells", {12, 12}}, {"periodic", {"y"}}, {"jitter", 0.1}};
    content["boundaries"] = {{"x-", "wall"}, {"x+", "wall"}};
    content["initial"] = {{"kind", "shock tube"},
                          {"position", 0.5},
                          {"left", {{"density", 1}, {"velocity", {0, 0.4}}, {"pressure", 1}}},
                          {"right", {{"density", 0.125}, {"velocity", {0, 0}}, {"pressure", 0.1}}}};
    content["time"] = {{"mode", "unsteady"}, {"steps", 20}};
    Simulation run = runOf(content);
    const auto before = run.solver().total();
    const RunResult after = run(nullptr);
    for (const std::size_t k : {0U, 2U, 4U}) // along the tube, the ends push
        EXPECT_NEAR(after.total[k], before[k], 1e-13) << k;
    EXPECT_GT(std::abs(after.total[1]), 1e-3);
}

TEST(Solver, ComputesSodsTube) {
    json content = caseOf("sod.json");
    EXPECT_LT(runOf(content)(nullptr).meanError, 3e-3);
    content["mesh"]["box"]["cells"] = {100, 1};
    content["scheme"]["flux"] = "roe";
    content["scheme"]["limiter"] = "venkatakrishnan";
    content["scheme"]["limiterConstant"] = 0.3;
    EXPECT_LT(runOf(content)(nullptr).meanError, 6e-3);
}

TEST(Solver, ComputesTheSameBitsOnAnyNumberOfRanks) {
    for (const auto &[fill, dimension] : fills) {
        json content = baseCase();
        content["mesh"]["box"] = {{"fill", fill}, {"cells", {6, 5, 4}}, {"jitter", 0.15}, {"shuffled", true}};
        setAllBoundaries(content, dimension, "far field");
        content["boundaries"]["y-"] = "wall";
        content["boundaries"]["y+"] = {{"kind", "pressure outlet"}, {"pressure", 1.1}};
        content["reference"]["mach"] = 1.3;
        expectSameBits(content);
        content["scheme"] = {{"gradient", "green-gauss"}, {"overlap", false}};
        expectSameBits(content);
        content.erase("scheme");
        content["mesh"]["box"]["periodic"] = {"y"};
        content["boundaries"].erase("y-");
        content["boundaries"].erase("y+");
        content["initial"] = {{"kind", "vortex"}, {"centre", {0.4, 0.3}}, {"radius", 0.3}};
        content["time"] = {{"mode", "steady"}, {"steps", 5}};
        expectSameBits(content);
    }
}

TEST(Solver, ComputesTheSameBitsAcrossRotatingBoundaries) {
    const std::string file = sharedMesh("atb45_ngon_v42.cgns");
    if (file.empty())
        GTEST_SKIP() << "no " << DNDS_TEST_MESHES;
    json content = baseCase();
    content["mesh"] = {{"file", file}};
    content["boundaries"] = {{"wall", "wall"}, {"top", "wall"}, {"aval", "far field"}, {"amont", "far field"}};
    content["reference"]["angleOfAttack"] = 0; // along the axis
    expectSameBits(content);
    content["time"]["mode"] = "steady";
    content["scheme"] = {{"gradient", "green-gauss"}, {"overlap", false}};
    expectSameBits(content);
}

TEST(Solver, TurnsWhatComesAcrossRotatingBoundaries) {
    const std::string file = sharedMesh("atb45_ngon_v42.cgns");
    if (file.empty())
        GTEST_SKIP() << "no " << DNDS_TEST_MESHES;
    json content = baseCase();
    content["mesh"] = {{"file", file}};
    content["scheme"]["limiter"] = "none";
    for (const char *name : {"wall", "top", "aval", "amont"})
        content["boundaries"][name] = "supersonic outflow";
    content["time"]["end"] = 1e-9;
    Simulation run = runOf(content);
    // Rigid rotation about the axis, which is the same in all images.
    run.solver().setState([](Vector x) { return Primitive{1, {0.5, -x.z, x.y}, 1}; });
    run(nullptr);
    const std::array<real, gradientWidth> exact{0, 0, 0, 0, 0, 0, 0, 0, -1, 0, 1, 0, 0, 0, 0};
    const auto &gradient = run.solver().gradient();
    index inexact = 0; // cells with the gradient of Green and Gauss, which is far from exact in such cells
    for (index cell = 0; cell < gradient.size(); cell++) {
        real largest = 0;
        for (int k = 0; k < gradientWidth; k++)
            largest = std::max(largest, std::abs(gradient(cell, k) - exact[static_cast<std::size_t>(k)]));
        ASSERT_LT(largest, 1) << cell;
        inexact += largest < 1e-5 ? 0 : 1;
    }
    EXPECT_LE(run.mesh().comm.allReduce(inexact, MPI_SUM), 24); // of 460; turned wrongly, none would be exact
}

TEST(Solver, FindsTheObliqueShockOfARamp) {
    json content = caseOf("ramp.json");
    content["output"]["historyEvery"] = 280;
    content["mesh"]["box"]["cells"] = {45, 30};
    content["time"]["steps"] = 280;
    content["scheme"]["timeStepping"] = "ssp-rk2";
    const RunResult result = runOf(content)(nullptr);
    EXPECT_NEAR(result.drag, 0.04449603, 0.002 * 0.04449603);
    EXPECT_NEAR(result.lift, -0.25234950, 0.002 * 0.25234950);
}

TEST(Solver, PassesAStepWithTheSameBitsOnAllRanks) {
    json content = caseOf("forward_step.json");
    content["output"].erase("picture");
    content["mesh"]["box"]["cells"] = {45, 15};
    content["time"]["steps"] = 60;
    expectSameBits(content);
}

TEST(Solver, FindsTheObliqueShockOfAWedge) {
    const std::string file = sharedMesh("wedge_hdf5.cgns");
    if (file.empty())
        GTEST_SKIP() << "no " << DNDS_TEST_MESHES;
    if (DNDS::CommunicatorView(MPI_COMM_WORLD).size() > 2)
        GTEST_SKIP() << "long, and more ranks compute the same bits";
    json content = caseOf("wedge.json");
    content["mesh"]["file"] = file;
    content["output"]["historyEvery"] = 400;
    content["time"]["steps"] = 400;
    content["scheme"]["timeStepping"] = "ssp-rk2";
    const RunResult result = runOf(content)(nullptr);
    EXPECT_NEAR(result.drag, 0.04449603, 0.001 * 0.04449603);
    EXPECT_NEAR(result.lift, -0.25234950, 0.001 * 0.25234950);
}

TEST(Solver, SaysWhereAStateBecomesImpossible) {
    json content = baseCase();
    setAllBoundaries(content, 2, "far field");
    content["mesh"]["box"]["cells"] = {10, 10};
    content["initial"] = {{"kind", "shock tube"},
                          {"position", 0.5},
                          {"left", {{"density", 1}, {"velocity", {-30, 0}}, {"pressure", 1e-3}}},
                          {"right", {{"density", 1}, {"velocity", {30, 0}}, {"pressure", 1e-3}}}};
    content["time"] = {{"mode", "unsteady"}, {"steps", 50}, {"cfl", 5}};
    Simulation run = runOf(content);
    EXPECT_THROW(run(nullptr), DNDS::DataError);
}

} // namespace
} // namespace Euler
