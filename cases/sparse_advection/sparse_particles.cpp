// A puff of particles drifts through a periodic plane. Their mass is deposited on a sparse grid, cloud in cell: the
// part beyond a block's faces by a push. All ranks move all particles; each deposits those in its blocks.
//
//   mpiexec -n 4 sparse_particles
//
// It ends with exit code 0 only if the mass on the grid, and what was dropped, is that of all particles in each step.

#include "DNDS/Mpi/RunMain.hpp"
#include "DNDS/Sparse/SparseField.hpp"
#include "DNDS/Sparse/SparseReductions.hpp"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <random>
#include <vector>

namespace {

using DNDS::index;
using DNDS::real;
using Point = std::array<real, 2>; ///< in cells

constexpr index width = 256;
constexpr index height = 128;

/// Adds mass 1 at a point of a block to the four cells whose centres are nearest, of which some are ghosts.
void deposit(const Point &point, const DNDS::BlockView<real> &mass) {
    std::array<index, 2> first{};
    std::array<real, 2> share{}; // of the second cell in each direction
    for (int d = 0; d < 2; ++d) {
        const real fromCentres = point[DNDS::toSize(d)] - 0.5;
        const auto cell = static_cast<index>(std::floor(point[DNDS::toSize(d)]));
        const auto lower = static_cast<index>(std::floor(fromCentres));
        first[DNDS::toSize(d)] = mass.local(cell, d) + lower - cell;
        share[DNDS::toSize(d)] = fromCentres - static_cast<real>(lower);
    }
    const auto [i, j] = first;
    const auto [x, y] = share;
    mass(i, j) += (1 - x) * (1 - y);
    mass(i + 1, j) += x * (1 - y);
    mass(i, j + 1) += (1 - x) * y;
    mass(i + 1, j + 1) += x * y;
}

std::vector<Point> puff(int particles) {
    std::mt19937_64 engine(1);
    const auto between = [&](real low, real high) { // the same with all standard libraries
        return low + (high - low) * static_cast<real>(engine() >> 11U) / 9007199254740992.0;
    };
    std::vector<Point> points;
    for (int k = 0; k < particles; ++k)
        points.push_back({between(20, 60), between(40, 80)});
    return points;
}

int run(DNDS::CommunicatorView world) {
    const DNDS::IndexSpace plane{"plane", DNDS::Box({0, 0}, {width, height}), {true, true}};
    const auto grid = DNDS::BlockGrid::blocksOf(world, plane, {16, 16});
    const auto pattern = DNDS::SparsePattern::make(world, grid, {1, 1});
    DNDS::SparseField<real> mass("mass", pattern, {.allocationThreshold = 0.5});
    std::vector<Point> particles = puff(500);
    for (int step = 0; step <= 30; ++step) {
        for (const int b : mass.allocatedBlocks())
            mass.free(b); // their memory stays in the pool
        for (const Point &point : particles) {
            const auto cell = [&](std::size_t d) { return static_cast<index>(std::floor(point[d])); };
            const int b = pattern->localOf(grid->blockOf({cell(0), cell(1)}));
            if (b < 0)
                continue; // in a block of another rank
            mass.allocate(b);
            deposit(point, mass.view(b));
        }
        const DNDS::DroppedSums<real> dropped(mass);
        mass.pushGhosts();
        const real there = DNDS::sums(mass)[0];
        const real lost = dropped.sums()[0];
        const auto blocks = world.allReduce(static_cast<index>(mass.allocatedBlocks().size()), MPI_SUM);
        if (world.rank() == 0 && step % 10 == 0)
            fmt::print("step {}: {} of {} blocks, mass {:.6f} on the grid, {:.6f} dropped\n", step, blocks,
                       grid->blocks().size(), there, lost);
        const auto all = static_cast<real>(particles.size());
        DNDS_CHECK(std::abs(there + lost - all) < 1e-9 * all, DNDS::DataError, "mass {} of {} was lost",
                   all - there - lost, all);
        for (Point &point : particles) {
            point[0] = std::fmod(point[0] + 4 + 0.02 * point[1], static_cast<real>(width));
            point[1] = std::fmod(point[1] + 1, static_cast<real>(height));
        }
    }
    return 0;
}

} // namespace

int main(int argc, char **argv) { return DNDS::runMain(argc, argv, run); }
