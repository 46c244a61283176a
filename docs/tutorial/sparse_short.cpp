// The program of docs/guides/sparse.md: a puff of smoke drifts over a plane; only blocks that it touches have memory.
//
//   mpiexec -n 2 sparse_short
//
// It ends with exit code 0 only if all smoke is there at the end.

#include "DNDS/Mpi/RunMain.hpp"
#include "DNDS/Sparse/SparseField.hpp"
#include "DNDS/Sparse/SparseReductions.hpp"

#include <fmt/core.h>

#include <cmath>
#include <utility>

namespace {

using DNDS::BlockView;
using DNDS::Index;

void drift(const BlockView<const double> &u, const BlockView<double> &next) {
    for (Index i = 0; i < u.extent(0); ++i)
        for (Index j = 0; j < u.extent(1); ++j)
            next(i, j) = u(i, j) - 0.5 * (u(i, j) - u(i - 1, j));
}

int run(DNDS::CommunicatorView world) {
    const DNDS::IndexSpace space{"plane", DNDS::Box({0, 0}, {256, 128}), {true, true}};
    const auto grid = DNDS::BlockGrid::blocksOf(world, space, {16, 16});
    const auto pattern = DNDS::SparsePattern::make(world, grid, {1, 1});
    DNDS::SparseField<double> smoke("smoke", pattern,
                                    {.stages = 2, .allocationThreshold = 1e-9, .deallocationThreshold = 1e-10});

    if (const int b = pattern->localOf(grid->blockOf({40, 70})); b >= 0) { // -1: another rank has it
        smoke.allocate(b);
        const auto u = smoke.view(b);
        u(u.local(40, 0), u.local(70, 1)) = 1;
    }

    for (int step = 0; step < 200; ++step) {
        smoke.exchangeGhosts();
        for (const int b : smoke.allocatedBlocks())
            drift(std::as_const(smoke).view(b), smoke.view(b, 1));
        smoke.swapStages(0, 1);
    }

    const double mass = DNDS::sums(smoke).front();
    const auto blocks = world.allReduce(static_cast<Index>(smoke.allocatedBlocks().size()), MPI_SUM);
    if (world.rank() == 0)
        fmt::print("{} of {} blocks have memory, smoke {:.6f}\n", blocks, grid->blocks().size(), mass);
    return std::abs(mass - 1) < 1e-6 ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) { return DNDS::runMain(argc, argv, run); }
