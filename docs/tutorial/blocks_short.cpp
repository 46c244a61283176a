// The first program of docs/guides/blocks.md: heat on a plane that is cut over the ranks.
//
//   mpiexec -n 2 blocks_short
//
// It ends with exit code 0 only if no heat is lost.

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

void diffuse(const BlockView<const double> &u, const BlockView<double> &next, Index i, Index j) {
    next(i, j) = u(i, j) + 0.2 * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1) - 4 * u(i, j));
}

int run(DNDS::CommunicatorView world) {
    NdArray<double> temperature("temperature");
    NdArray<double> next("next");
    for (NdArray<double> *field : {&temperature, &next})
        field->decompose(world, {100, 80}, 0, {}, {1, 1}, {true, true});

    const auto start = temperature.view();
    for (Index i = 0; i < start.extent(0); ++i)
        for (Index j = 0; j < start.extent(1); ++j)
            start(i, j) = start.global(i, 0) == 50 && start.global(j, 1) == 40 ? 1 : 0;

    for (int step = 0; step < 100; ++step) {
        temperature.startExchangeGhosts();
        const auto u = std::as_const(temperature).view();
        const auto v = next.view();
        for (Index i = 1; i < u.extent(0) - 1; ++i)
            for (Index j = 1; j < u.extent(1) - 1; ++j)
                diffuse(u, v, i, j); // reads no ghosts
        temperature.finishExchangeGhosts();
        for (Index i = 0; i < u.extent(0); ++i) {
            const bool whole = i == 0 || i == u.extent(0) - 1;
            for (Index j = 0; j < u.extent(1); j += whole ? 1 : u.extent(1) - 1)
                diffuse(u, v, i, j);
        }
        std::swap(temperature, next);
    }

    const double heat = sum(temperature.field());
    if (world.rank() == 0)
        fmt::print("{}\nheat {:.6f}\n", temperature.describe(), heat);
    return std::abs(heat - 1) < 1e-12 ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) { return DNDS::runMain(argc, argv, run); }
