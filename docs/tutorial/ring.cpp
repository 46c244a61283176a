#include "DNDS/DNDS.hpp"

#include <fmt/core.h>

#include <cmath>
#include <utility>
#include <vector>

int ring(DNDS::CommunicatorView world) {
    // Each rank owns four rows of one number; the rows of all ranks form a ring. One of them is hot.
    DNDS::ArrayPair<DNDS::ParArray<double, 1>> heat("heat", world, 4);
    if (world.rank() == 0)
        heat(0, 0) = 1;
    // The global rows that each of ours reads. Those that other ranks own become ghosts: rows after our own four.
    const DNDS::GlobalMapping &rows = *heat.father->globalMapping();
    std::vector<DNDS::Index> reads;
    for (DNDS::Index row = rows.localBegin(); row < rows.localEnd(); row++)
        for (const DNDS::Index side : {row - 1, row + 1})
            reads.push_back((side + rows.globalSize()) % rows.globalSize());
    const std::vector<DNDS::LocalIndex> sides = heat.ghostsFor(reads);
    DNDS::ArrayPair next("next", heat); // the same rows and ghosts
    for (int step = 0; step < 100; step++) {
        heat.pull(); // refreshes the ghosts
        const auto u = std::as_const(heat).view();
        for (unsigned i = 0; i < 4; i++)
            next(i, 0) = 0.25 * u(sides[2 * i]) + 0.5 * u(i) + 0.25 * u(sides[2 * i + 1]);
        heat.swapData(next);
    }
    const double sum = world.allReduce(heat(0, 0) + heat(1, 0) + heat(2, 0) + heat(3, 0), MPI_SUM);
    if (world.rank() == 0)
        fmt::print("{} rows on {} ranks: sum {:.6f}\n", rows.globalSize(), world.size(), sum);
    return std::abs(sum - 1) < 1e-12 ? 0 : 1;
}

int main(int argc, char **argv) { return DNDS::runMain(argc, argv, ring); }
