// Walls of structured blocks, for docs/guides/blocks.md: a plate between a hot and a cold wall, until it is steady.
//
//   mpiexec -n 2 blocks_walls
//
// It ends with exit code 0 only if the temperature falls evenly from wall to wall.

#include "DNDS/Blocks/BlockBoundary.hpp"
#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/Mpi/RunMain.hpp"

#include <fmt/core.h>

#include <cmath>
#include <utility>

namespace {

using DNDS::BlockBoundary;
using DNDS::BlockField;
using DNDS::BlockGrid;
using DNDS::BlockPattern;
using DNDS::BoundaryGhost;
using DNDS::Box;
using DNDS::highFace;
using DNDS::Index;
using DNDS::IndexSpace;
using DNDS::lowFace;

double steady(Index cell) { return 1 - (static_cast<double>(cell) + 0.5) / 12; }

/// The temperature beyond the upper side of the plate.
struct Lid {
    double operator()(const BoundaryGhost &ghost) const { return steady(ghost.cell[0]); }
};

void changeOf(const BlockField<double> &temperature, BlockField<double> &change) {
    for (int b = 0; b < temperature.blocks(); ++b) {
        const auto u = temperature.view(b);
        const auto v = change.view(b);
        for (Index i = 0; i < u.extent(0); ++i)
            for (Index j = 0; j < u.extent(1); ++j)
                v(i, j) = u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1) - 4 * u(i, j);
    }
}

int run(DNDS::CommunicatorView world) {
    const IndexSpace plate{"plate", Box({0, 0}, {12, 8}), {}};
    const auto pattern = BlockPattern::make(world, BlockGrid::blocksOf(world, plate, {4, 4}), {1, 1});
    BlockField<double> temperature("temperature", world, pattern);
    BlockField<double> change("change", world, pattern);

    BlockBoundary walls(temperature, Lid{});
    walls.dirichlet(lowFace(0), 1); // 1 on the wall
    walls.dirichlet(highFace(0), 0);
    walls.nearest(lowFace(1));   // no heat flows
    walls.function(highFace(1)); // the ghosts are what Lid returns

    int steps = 0;
    double residual = 1;
    for (; residual > 1e-10; ++steps) {
        exchangeAndFill(temperature, walls);
        changeOf(temperature, change);
        axpy(temperature, 0.2, change);
        residual = normInf(change);
    }
    const double mean = sum(temperature, {.exact = true}) / 96;
    if (world.rank() == 0)
        fmt::print("steady after {} steps, mean temperature {:.6f}\n", steps, mean);

    double error = 0;
    for (int b = 0; b < temperature.blocks(); ++b) {
        const auto u = std::as_const(temperature).view(b);
        for (Index i = 0; i < u.extent(0); ++i)
            for (Index j = 0; j < u.extent(1); ++j)
                error = std::max(error, std::abs(u(i, j) - steady(u.global(i, 0))));
    }
    return world.allReduce(error, MPI_MAX) < 1e-8 ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) { return DNDS::runMain(argc, argv, run); }
