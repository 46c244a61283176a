#include "Solver.hpp"

#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

namespace DgVortex {
namespace {

constexpr Geom::BoxCells fills[] = {Geom::BoxCells::Quadrilaterals, Geom::BoxCells::Triangles};

/// Rows of own cells with their numbers in the file, after some steps.
std::vector<std::pair<index, State>> rowsAfter(DNDS::CommunicatorView comm, const Options &options, int steps) {
    Solver solver(comm, options);
    solver.advance(solver.timeStep(0.9), steps);
    std::vector<std::pair<index, State>> rows;
    const auto &state = solver.state();
    for (index cell = 0; cell < solver.mesh().cells.owned; cell++)
        for (int n = 0; n < maxNodes; n++) {
            State at;
            std::copy_n(state[cell] + variables * n, variables, at.begin());
            rows.emplace_back(solver.mesh().cells.fileNumbers[DNDS::toSize(cell)] * maxNodes + n, at);
        }
    std::ranges::sort(rows, {}, &std::pair<index, State>::first);
    return rows;
}

TEST(DgVortex, HasThirdOrderOnCurvedCells) {
    if (DNDS::CommunicatorView(MPI_COMM_WORLD).size() > 2)
        GTEST_SKIP() << "more ranks compute the same bits, as the test below shows";
    for (const auto fill : fills) {
        real last = 0;
        real order = 0;
        for (const index cells : {16, 32}) {
            Solver solver(MPI_COMM_WORLD, {.fill = fill, .cells = cells});
            EXPECT_EQ(solver.metrics().invertedCells, 0);
            const Integrals before = solver.integrals(0);
            EXPECT_NEAR(before.area, 14 * 14, 1e-11);
            const real time = 0.5;
            const int steps = static_cast<int>(std::ceil(time / solver.timeStep(0.9)));
            solver.advance(time / steps, steps);
            const Integrals after = solver.integrals(time);
            EXPECT_NEAR(after.mass, before.mass, 1e-13 * before.mass);
            order = std::log2(last / after.error);
            last = after.error;
        }
        EXPECT_GE(order, 2.7) << "error " << last;
    }
}

TEST(DgVortex, UniformFlowsStay) {
    for (const auto fill : fills) {
        Options options{.fill = fill, .cells = 6, .bend = 0.5};
        options.vortex.strength = 0;
        for (const auto &[number, state] : rowsAfter(MPI_COMM_WORLD, options, 20)) {
            if (number % maxNodes >= (fill == Geom::BoxCells::Triangles ? 6 : 9))
                continue;
            const State uniform = options.vortex.at(0, 0, 0);
            for (std::size_t k = 0; k < variables; k++)
                EXPECT_NEAR(state[k], uniform[k], 1e-12) << "node " << number;
        }
    }
}

TEST(DgVortex, BitsAreThoseOfOneRank) {
    for (const auto fill : fills) {
        const Options options{.fill = fill, .cells = 6, .shuffled = true};
        const auto whole = rowsAfter(MPI_COMM_SELF, options, 10);
        for (const auto &[number, state] : rowsAfter(MPI_COMM_WORLD, options, 10))
            EXPECT_EQ(state, whole[DNDS::toSize(number)].second) << "node " << number;
    }
}

TEST(DgVortex, DeviceComputesTheSameBits) {
    if (!DNDS::Device::available())
        GTEST_SKIP() << DNDS::Device::unavailableReason();
    for (const auto fill : fills) {
        Options options{.fill = fill, .cells = 6};
        const auto onHost = rowsAfter(MPI_COMM_WORLD, options, 10);
        options.device = true;
        EXPECT_EQ(rowsAfter(MPI_COMM_WORLD, options, 10), onHost);
    }
}

TEST(DgVortex, NoTimeStepAfterStepsThatWereTooLong) {
    Solver solver(MPI_COMM_WORLD, {.cells = 6});
    solver.advance(solver.timeStep(9), 100);
    EXPECT_FALSE(std::isfinite(solver.integrals(0).mass));
    EXPECT_THROW((void)solver.timeStep(0.9), DNDS::DataError);
}

TEST(DgVortex, CellsOfOtherKindsAreRefused) {
    EXPECT_THROW(Solver(MPI_COMM_WORLD, {.fill = Geom::BoxCells::MixedSurface}), DNDS::ArgumentError);
    if (!DNDS::Device::available()) {
        EXPECT_THROW(Solver(MPI_COMM_WORLD, {.device = true}), DNDS::NotBuiltError);
    }
}

} // namespace
} // namespace DgVortex
