// Particles of docs/guides/blocks.md: each adds its charge to the four cells nearest to it (cloud in cell).
//
//   mpiexec -n 2 blocks_deposit
//
// It ends with exit code 0 only if no charge is lost.

#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/Blocks/NdArray.hpp"
#include "DNDS/Mpi/RunMain.hpp"

#include <fmt/core.h>

#include <cmath>
#include <utility>

namespace {

using DNDS::BlockView;
using DNDS::Index;
using DNDS::NdArray;

constexpr Index rows = 48, columns = 32, particles = 20000;

/// Where particle `n` is, in cells. In multiples of 1/64, so that sums of charge are exact.
std::pair<double, double> positionOf(Index n) {
    return {static_cast<double>(n * n * 7 % (rows * 64)) / 64, static_cast<double>(n * 1237 % (columns * 64)) / 64};
}

/// `x` and `y` count cells of this block from its lower end; the middle of cell 0 is at 0.5.
void deposit(const BlockView<double> &charge, double x, double y) {
    const Index i = static_cast<Index>(std::floor(x - 0.5)), j = static_cast<Index>(std::floor(y - 0.5));
    const double a = x - 0.5 - static_cast<double>(i), b = y - 0.5 - static_cast<double>(j);
    charge(i, j) += (1 - a) * (1 - b);
    charge(i + 1, j) += a * (1 - b);
    charge(i, j + 1) += (1 - a) * b;
    charge(i + 1, j + 1) += a * b;
}

int run(DNDS::CommunicatorView world) {
    NdArray<double> charge("charge");
    charge.decompose(world, {rows, columns}, 0, {}, {1, 1}, {true, true});

    const auto mine = charge.localCore();
    const auto view = charge.view();
    for (Index n = 0; n < particles; ++n) {
        const auto [x, y] = positionOf(n);
        if (charge.isLocal({static_cast<Index>(x), static_cast<Index>(y)}))
            deposit(view, x - static_cast<double>(mine.lower[0]), y - static_cast<double>(mine.lower[1]));
    }
    charge.pushGhosts();     // adds what ghosts hold to the cells of other ranks, and leaves zeros
    charge.exchangeGhosts(); // from here on stencils may read ghosts

    const double total = sum(charge.field());
    const double most = max(charge.field());
    if (world.rank() == 0)
        fmt::print("{} particles, charge {}, at most {:.4f} in a cell\n", particles, total, most);
    return total == static_cast<double>(particles) ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) { return DNDS::runMain(argc, argv, run); }
