// Steps from task graphs beside the same steps orchestrated by hand: the same bits.

#include "HandWrittenSolver.hpp"
#include "TestSupport.hpp"

#include <limits>

namespace Euler {
namespace {

/// Some steps of a disturbed flow by both, of one time step for all cells and of local ones.
void expectSameSteps(const MeshChoice &choice, const Scheme &scheme) {
    Geom::UnstructuredMesh mesh = buildMeshOf(MPI_COMM_WORLD, choice);
    Geom::MeshMetrics metrics = computeMetrics(mesh);
    const Primitive far{1, {0.9, 0.4, 0}, 1};
    std::vector<BoundaryCondition> conditions(mesh.patches.size(), {BoundaryKind::SupersonicInflow, far});
    if (!conditions.empty())
        conditions[0] = {BoundaryKind::Wall, far};
    Solver solver(mesh, metrics, gas, scheme, conditions);
    HandWritten::Solver byHand(mesh, metrics, gas, scheme, conditions);
    solver.setState([&](Vector x) {
        const real bump = 0.2 * std::sin(3 * x.x + 5 * x.y + 7 * x.z);
        return Primitive{far.density + bump, far.velocity + bump * Vector{0.3, -0.5, 0}, far.pressure + bump * bump};
    });
    const ParArray<real, variables> begin = solver.conserved();
    solver.setConserved(begin);
    byHand.setConserved(begin);
    const auto compare = [&](const char *when) {
        index different = 0;
        for (index cell = 0; cell < mesh.cells.owned; cell++)
            for (int k = 0; k < variables; k++)
                different += solver.conserved()(cell, k) == byHand.conserved()(cell, k) ? 0 : 1;
        EXPECT_EQ(different, 0) << mesh.origin << " " << when;
    };
    for (int step = 0; step < 4; step++) {
        const real length = solver.advance(0.4, std::numeric_limits<real>::infinity());
        EXPECT_EQ(length, byHand.advance(0.4, std::numeric_limits<real>::infinity()));
    }
    compare("after steps of one length");
    for (int step = 0; step < 3; step++) {
        solver.advanceLocally(0.3);
        byHand.advanceLocally(0.3);
    }
    compare("after local steps");
    // The last one reads what the host has written.
    solver.setConserved(solver.conserved());
    byHand.setConserved(byHand.conserved());
    EXPECT_EQ(solver.advance(0.4, 1e-3), byHand.advance(0.4, 1e-3));
    compare("after the host set the state");
}

void expectSameStepsOnMeshes(const Scheme &scheme) {
    Geom::BoxMeshOptions box;
    box.jitter = 0.15;
    box.cells = {9, 8, 4};
    box.fill = Geom::BoxCells::Triangles;
    expectSameSteps({.file = "", .cgns = {}, .box = box}, scheme);
    box.fill = Geom::BoxCells::Tetrahedra;
    box.periodic = {true, false, false};
    expectSameSteps({.file = "", .cgns = {}, .box = box}, scheme);
    const std::string rotating = sharedMesh("atb45_ngon_v42.cgns");
    if (!rotating.empty())
        expectSameSteps({.file = rotating, .cgns = {}, .box = {}}, scheme);
}

TEST(TaskGraphs, ComputeTheBitsOfStepsByHand) {
    Scheme scheme;
    expectSameStepsOnMeshes(scheme);
    scheme.overlap = false;
    scheme.time = TimeScheme::SspRk2;
    expectSameStepsOnMeshes(scheme);
}

TEST(TaskGraphs, ComputeTheSameBitsInThreads) {
    Scheme scheme;
    scheme.threads = 2;
    expectSameStepsOnMeshes(scheme);
}

TEST(SolverOnDevice, ComputesTheBitsOfStepsByHand) {
    if (!DNDS::Device::available())
        GTEST_SKIP() << DNDS::Device::unavailableReason();
    Scheme scheme;
    scheme.device = true;
    expectSameStepsOnMeshes(scheme);
    scheme.overlap = false;
    scheme.graphs = false;
    expectSameStepsOnMeshes(scheme);
}

} // namespace
} // namespace Euler
