#include "DNDS/DNDS.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

int ring(DNDS::CommunicatorView world) {
    using DNDS::index, DNDS::real;

    // Each rank owns four rows of one number; the rows of all ranks form a ring. One of them is hot.
    DNDS::ArrayPair<DNDS::ParArray<real, 1>> heat;
    heat.initPair("heat", world);
    heat.father->resize(4);
    if (world.rank() == 0)
        heat.father->view()(0) = 1;
    heat.transAttach();
    heat.trans.createFatherGlobalMapping();

    // The global rows that each of ours reads: the one before it and the one after it.
    const DNDS::GlobalMapping &rows = *heat.father->globalMapping();
    std::vector<index> reads;
    for (index row = rows.localBegin(); row < rows.localBegin() + 4; row++)
        for (const index other : {row - 1, row + 1})
            reads.push_back((other + rows.globalSize()) % rows.globalSize());

    // Others own the first and the last of them: these become ghosts, rows after our own four.
    heat.trans.createGhostMapping(std::vector<index>{reads.front(), reads.back()});
    heat.trans.createMPITypes();
    heat.trans.initPersistentPull();
    const std::vector<DNDS::LocalIndex> neighbours = heat.trans.ghostMapping()->toLocal(reads);

    DNDS::Array<real> next;
    next.resize(4);
    const auto smooth = [&](std::span<const index> which, const auto &u) {
        const auto result = next.view();
        for (const index i : which) {
            const DNDS::LocalIndex *side = neighbours.data() + 2 * i;
            result(i) = 0.25 * u(side[0]) + 0.5 * u(i) + 0.25 * u(side[1]);
        }
    };
    for (int step = 0; step < 100; step++) {
        heat.trans.startPersistentPull(); // compute rows without ghosts during the pull
        smooth(heat.trans.pattern()->innerRows(), std::as_const(*heat.father).view());
        heat.trans.waitPersistentPull();
        smooth(heat.trans.pattern()->boundaryRows(), std::as_const(heat).view());
        for (index i = 0; i < 4; i++)
            (*heat.father)(i) = next(i);
    }

    const real sum = world.allReduce(next(0) + next(1) + next(2) + next(3), MPI_SUM);
    const real hottest = world.allReduce(*std::max_element(next.data(), next.data() + 4), MPI_MAX);
    if (world.rank() == 0)
        fmt::print("{} rows on {} ranks: sum {:.6f}, hottest {:.6f}\n", rows.globalSize(), world.size(), sum, hottest);
    return std::abs(sum - 1) < 1e-12 ? 0 : 1;
}

int main(int argc, char **argv) { return DNDS::runMain(argc, argv, ring); }
