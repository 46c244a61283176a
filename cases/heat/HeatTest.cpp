// The heat case against a plain loop over the whole box, on the host and on the device, by every transport.

#include "LineSolver.hpp"
#include "Solver.hpp"
#include "Wave.hpp"

#include "DNDS/Exchange/DeviceCase.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace Heat {
namespace {

constexpr real number = 0.15;

std::size_t placeOf(const Triple &cells, const Triple &cell) {
    return static_cast<std::size_t>(cell[0] + cells[0] * (cell[1] + cells[1] * cell[2]));
}

/// The same numbers on all ranks.
std::vector<real> randomBox(const Triple &cells) {
    std::mt19937_64 random(7);
    std::uniform_real_distribution<real> any(-1, 1);
    std::vector<real> box(static_cast<std::size_t>(cells[0] * cells[1] * cells[2]));
    for (real &value : box)
        value = any(random);
    return box;
}

/// Steps of the whole box without ranks, blocks and ghosts.
std::vector<real> reference(const Triple &cells, std::vector<real> box, int steps) {
    std::vector<real> next(box.size());
    for (int step = 0; step < steps; ++step) {
        Triple at{};
        for (at[2] = 0; at[2] < cells[2]; ++at[2])
            for (at[1] = 0; at[1] < cells[1]; ++at[1])
                for (at[0] = 0; at[0] < cells[0]; ++at[0]) {
                    const real here = box[placeOf(cells, at)];
                    real sum = 0;
                    for (std::size_t d = 0; d < 3; ++d)
                        for (const index side : {-1, 1}) {
                            Triple other = at;
                            other[d] = (other[d] + side + cells[d]) % cells[d];
                            sum += box[placeOf(cells, other)] - here;
                        }
                    next[placeOf(cells, at)] = here + number * sum;
                }
        box.swap(next);
    }
    return box;
}

template <class Solver>
std::vector<real> ownPart(const Solver &solver, const Triple &cells, const std::vector<real> &box) {
    std::vector<real> part;
    DNDS::forEachCell(solver.cells(), [&](const DNDS::IndexVector &cell) {
        part.push_back(box[placeOf(cells, {cell[2], cell[1], cell[0]})]);
    });
    return part;
}

void expectReference(const Placement &placement) {
    const DNDS::CommunicatorView comm(MPI_COMM_WORLD);
    // Boxes that do not divide evenly; one with ranks that own nothing; one with a single cell across.
    for (const Triple &cells : {Triple{9, 7, 5}, Triple{3, 1, 1}, Triple{1, 12, 2}}) {
        SCOPED_TRACE(testing::Message() << cells[0] << " x " << cells[1] << " x " << cells[2]);
        Solver solver(comm, cells, number, placement);
        EXPECT_EQ(comm.allReduce(solver.cells().size(), MPI_SUM), cells[0] * cells[1] * cells[2]);
        const std::vector<real> box = randomBox(cells);
        solver.set(ownPart(solver, cells, box));
        solver.advance(7);
        EXPECT_EQ(solver.values(), ownPart(solver, cells, reference(cells, box, 7)));
        solver.advance(4);
        EXPECT_EQ(solver.values(), ownPart(solver, cells, reference(cells, box, 11)));
        solver.set(ownPart(solver, cells, box));
        solver.advance(1);
        EXPECT_EQ(solver.values(), ownPart(solver, cells, reference(cells, box, 1)));
    }
}

TEST(HeatCase, HostEqualsAPlainLoop) { expectReference({}); }

TEST(HeatCase, DeviceEqualsAPlainLoopByEveryTransport) {
    if (!DNDS::Device::available())
        GTEST_SKIP() << DNDS::Device::unavailableReason();
    expectReference({DNDS::MemorySpace::Device, DNDS::TransportKind::Auto});
    for (const DNDS::TransportKind kind : DNDS::test::deviceTransports()) {
        SCOPED_TRACE(transportName(kind));
        expectReference({DNDS::MemorySpace::Device, kind});
    }
}

TEST(HeatCase, WavesDecayAsTheStencilSays) {
    const DNDS::CommunicatorView comm(MPI_COMM_WORLD);
    const Triple cells{12, 2, 1};
    Solver solver(comm, cells, number, {});
    const std::vector<real> start = wave(cells, solver.cells());
    solver.set(start);
    solver.advance(10);
    const std::vector<real> values = solver.values();
    for (std::size_t row = 0; row < values.size(); ++row)
        EXPECT_NEAR(values[row], std::pow(decay(cells, number), 10) * start[row], 1e-14);
}

/// The largest residual of a direction's systems, (1 + 2 r) x_i - r (x_(i-1) + x_(i+1)) - u_i.
real residual(const Triple &cells, std::size_t along, real r, const std::vector<real> &x, const std::vector<real> &u) {
    real largest = 0;
    Triple at{};
    for (at[2] = 0; at[2] < cells[2]; ++at[2])
        for (at[1] = 0; at[1] < cells[1]; ++at[1])
            for (at[0] = 0; at[0] < cells[0]; ++at[0]) {
                real sum = x[placeOf(cells, at)] - u[placeOf(cells, at)];
                for (const index side : {-1, 1}) {
                    Triple other = at;
                    other[along] = (other[along] + side + cells[along]) % cells[along];
                    sum -= r * (x[placeOf(cells, other)] - x[placeOf(cells, at)]);
                }
                largest = std::max(largest, std::abs(sum));
            }
    return largest;
}

/// All cells of the box on all ranks.
std::vector<real> gathered(LineSolver &solver, const Triple &cells) {
    std::vector<real> box(static_cast<std::size_t>(cells[0] * cells[1] * cells[2]));
    const std::vector<real> part = solver.values();
    std::size_t row = 0;
    DNDS::forEachCell(solver.cells(), [&](const DNDS::IndexVector &cell) {
        box[placeOf(cells, {cell[2], cell[1], cell[0]})] = part[row++];
    });
    MPI_Allreduce(MPI_IN_PLACE, box.data(), static_cast<int>(box.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return box;
}

TEST(HeatLines, SolveTheSystemsOfADirection) {
    const DNDS::CommunicatorView comm(MPI_COMM_WORLD);
    // The box has cells along one direction alone, so that a step is the solution of its systems.
    for (const index n : {2, 3, 17})
        for (std::size_t along = 0; along < 3; ++along) {
            SCOPED_TRACE(testing::Message() << n << " cells in direction " << along);
            Triple cells{1, 1, 1};
            cells[along] = n;
            LineSolver solver(comm, cells, 2.5, {});
            const std::vector<real> box = randomBox(cells);
            solver.set(ownPart(solver, cells, box));
            solver.advance(1);
            EXPECT_LT(residual(cells, along, 2.5, gathered(solver, cells), box), 1e-14);
        }
}

TEST(HeatLines, HaveTheBitsOfOneRankOnHostAndDevice) {
    const DNDS::CommunicatorView comm(MPI_COMM_WORLD);
    const Triple cells{9, 7, 5};
    const std::vector<real> box = randomBox(cells);
    LineSolver alone(DNDS::CommunicatorView(MPI_COMM_SELF), cells, number, {});
    alone.set(box);
    alone.advance(6);
    const std::vector<real> expected = alone.values();
    const auto check = [&](const Placement &placement) {
        LineSolver solver(comm, cells, number, placement);
        solver.set(ownPart(solver, cells, box));
        solver.advance(6);
        EXPECT_EQ(solver.values(), ownPart(solver, cells, expected));
    };
    check({});
    if (DNDS::Device::available())
        for (const DNDS::TransportKind kind : DNDS::test::deviceTransports())
            check({DNDS::MemorySpace::Device, kind});
}

TEST(HeatLines, WavesDecayAsTheirSystemsSay) {
    const DNDS::CommunicatorView comm(MPI_COMM_WORLD);
    const Triple cells{12, 8, 3};
    LineSolver solver(comm, cells, 20, {});
    const std::vector<real> start = wave(cells, solver.cells());
    solver.set(start);
    solver.advance(3);
    const std::vector<real> values = solver.values();
    for (std::size_t row = 0; row < values.size(); ++row)
        EXPECT_NEAR(values[row], std::pow(decayByLines(cells, 20), 3) * start[row], 1e-15);
}

TEST(HeatCase, BoxesWithoutCellsAreRefused) {
    EXPECT_THROW(Solver(DNDS::CommunicatorView(MPI_COMM_WORLD), {4, 0, 4}, number, {}), DNDS::ArgumentError);
}

TEST(HeatCase, WithoutADeviceSaysSo) {
    if (DNDS::Device::available())
        GTEST_SKIP() << "there is a device";
    const DNDS::CommunicatorView comm(MPI_COMM_WORLD);
    EXPECT_THROW(Solver(comm, {4, 4, 4}, number, {DNDS::MemorySpace::Device, DNDS::TransportKind::Auto}),
                 DNDS::NotBuiltError);
}

} // namespace
} // namespace Heat
