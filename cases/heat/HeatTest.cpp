// The heat case against a plain loop over the whole box, on the host and on the device, by every transport.

#include "Solver.hpp"
#include "Wave.hpp"

#include "DNDS/Exchange/DeviceCase.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

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

std::vector<real> ownPart(const Blocks &blocks, const std::vector<real> &box) {
    std::vector<real> part;
    for (index row = 0; row < blocks.rows(); ++row)
        part.push_back(box[placeOf(blocks.cells(), blocks.cellOf(row))]);
    return part;
}

void expectReference(const Placement &placement) {
    const DNDS::CommunicatorView comm(MPI_COMM_WORLD);
    // Boxes that do not divide evenly; one with ranks that own nothing; one with a single cell across.
    for (const Triple &cells : {Triple{9, 7, 5}, Triple{3, 1, 1}, Triple{1, 12, 2}}) {
        SCOPED_TRACE(testing::Message() << cells[0] << " x " << cells[1] << " x " << cells[2]);
        const Blocks blocks(comm, cells);
        Solver solver(comm, blocks, number, placement);
        const std::vector<real> box = randomBox(cells);
        solver.set(ownPart(blocks, box));
        solver.advance(7);
        EXPECT_EQ(solver.values(), ownPart(blocks, reference(cells, box, 7)));
        solver.advance(4);
        EXPECT_EQ(solver.values(), ownPart(blocks, reference(cells, box, 11)));
        solver.set(ownPart(blocks, box));
        solver.advance(1);
        EXPECT_EQ(solver.values(), ownPart(blocks, reference(cells, box, 1)));
    }
}

TEST(HeatBlocks, NumberEveryCellOnce) {
    const DNDS::CommunicatorView comm(MPI_COMM_WORLD);
    for (const Triple &cells : {Triple{9, 7, 5}, Triple{2, 1, 1}, Triple{64, 3, 2}}) {
        const Blocks blocks(comm, cells);
        const index total = cells[0] * cells[1] * cells[2];
        EXPECT_EQ(comm.allReduce(blocks.rows(), MPI_SUM), total);
        EXPECT_EQ(blocks.parts()[0] * blocks.parts()[1] * blocks.parts()[2], comm.size());
        index first = blocks.rows(); // becomes this rank's first global row
        MPI_Exscan(MPI_IN_PLACE, &first, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        if (comm.rank() == 0)
            first = 0;
        for (index row = 0; row < blocks.rows(); ++row) {
            const Triple cell = blocks.cellOf(row);
            ASSERT_EQ(blocks.globalRow(cell), first + row);
            ASSERT_EQ(blocks.globalRow({cell[0] - cells[0], cell[1] + cells[1], cell[2]}), first + row);
        }
    }
    EXPECT_THROW(Blocks(comm, {4, 0, 4}), DNDS::ArgumentError);
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
    const Blocks blocks(comm, cells);
    Solver solver(comm, blocks, number, {});
    const std::vector<real> start = wave(blocks);
    solver.set(start);
    solver.advance(10);
    const std::vector<real> values = solver.values();
    for (std::size_t row = 0; row < values.size(); ++row)
        EXPECT_NEAR(values[row], std::pow(decay(cells, number), 10) * start[row], 1e-14);
}

TEST(HeatCase, WithoutADeviceSaysSo) {
    if (DNDS::Device::available())
        GTEST_SKIP() << "there is a device";
    const DNDS::CommunicatorView comm(MPI_COMM_WORLD);
    const Blocks blocks(comm, {4, 4, 4});
    EXPECT_THROW(Solver(comm, blocks, number, {DNDS::MemorySpace::Device, DNDS::TransportKind::Auto}),
                 DNDS::NotBuiltError);
}

} // namespace
} // namespace Heat
