// A staggered grid, for docs/guides/blocks.md: a stream function at nodes, velocities on faces, divergence in cells.
//
//   mpiexec -n 2 blocks_staggered
//
// It ends with exit code 0 only if the velocities are free of divergence.

#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/Mpi/RunMain.hpp"

#include <fmt/core.h>

namespace {

using namespace DNDS;
using DNDS::Index;

int run(const CommunicatorView &world) {
    const auto grid = BlockGrid::blocksOf(world, {"channel", Box({0, 0}, {48, 32}), {true, false}}, {16, 16});
    BlockField<real> psi("psi", world, grid, {.centring = Centring::nodes()});
    BlockField<real> u("u", world, grid, {.centring = Centring::faces(0)});
    BlockField<real> v("v", world, grid, {.centring = Centring::faces(1)});
    BlockField<real> divergence("divergence", world, grid, {});
    setConstant(psi, 1);
    const real nodes = sum(psi); // each once

    for (int b = 0; b < psi.blocks(); ++b) {
        const auto p = psi.view(b);
        for (Index i = 0; i < p.extent(0); ++i) // to the last node of the block
            for (Index j = 0; j < p.extent(1); ++j)
                p(i, j) = static_cast<real>((p.global(i, 0) * 7919 + p.global(j, 1) * 104729) % 1000);
    }
    psi.exchangeGhosts(); // blocks agree on the nodes that they share: 48 is 0
    for (int b = 0; b < psi.blocks(); ++b) {
        const auto p = psi.view(b);
        const auto x = u.view(b), y = v.view(b), d = divergence.view(b);
        for (Index i = 0; i < x.extent(0); ++i)
            for (Index j = 0; j < x.extent(1); ++j)
                x(i, j) = p(i, j + 1) - p(i, j);
        for (Index i = 0; i < y.extent(0); ++i)
            for (Index j = 0; j < y.extent(1); ++j)
                y(i, j) = p(i, j) - p(i + 1, j);
        for (Index i = 0; i < d.extent(0); ++i)
            for (Index j = 0; j < d.extent(1); ++j)
                d(i, j) = x(i + 1, j) - x(i, j) + y(i, j + 1) - y(i, j);
    }

    const real largest = normInf(divergence);
    const bool moves = normInf(u) > 0 && normInf(v) > 0;
    if (world.rank() == 0)
        fmt::print("{} cells, {} nodes, largest divergence {}\n", grid->totalCells(), nodes, largest);
    return largest == 0 && moves ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) { return DNDS::runMain(argc, argv, run); }
