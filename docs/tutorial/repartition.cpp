// The program of docs/guides/repartition.md: cells move to other ranks while a program runs.
//
//   mpiexec -n 4 repartition

#include "DNDS/Geom/Repartition/Repartition.hpp"
#include "DNDS/Geom/Geom.hpp"

#include <fmt/core.h>

#include <vector>

namespace Geom = DNDS::Geom;
using DNDS::real;

/// Cells at the left cost more, the later the more of them: [own cells].
static std::vector<DNDS::Index> costsOf(const Geom::UnstructuredMesh &mesh, int step) {
    std::vector<DNDS::Index> costs;
    for (DNDS::Index cell = 0; cell < mesh.cells.owned; ++cell) {
        const real x = mesh.coordinates.view()(mesh.cellNodes.view()[cell][0], 0);
        costs.push_back(x < 0.1 * step ? 10 : 1);
    }
    return costs;
}

/// Stands for the seconds of this rank's own work, without waiting.
static double compute(const std::vector<DNDS::Index> &costs) {
    double seconds = 0;
    for (const DNDS::Index cost : costs)
        seconds += 1e-3 * static_cast<double>(cost);
    return seconds;
}

int run(DNDS::CommunicatorView world) {
    const Geom::BoxMeshOptions square{.fill = Geom::BoxCells::Quadrilaterals, .cells = {40, 40}};
    const Geom::MeshOptions options{.partitioner = Geom::Partitioner::Curve};
    Geom::UnstructuredMesh mesh = Geom::buildMesh(world, Geom::makeBoxMesh(square, world), options);
    auto u = mesh.field<5>("u");
    auto velocity = mesh.nodes.field<2>("velocity");

    Geom::Rebalancing policy(0.1); // less than 10 % more than the mean is left alone
    for (int step = 0; step < 4; ++step) {
        const std::vector<DNDS::Index> costs = costsOf(mesh, step); // [own cells] whole numbers from 1
        if (!policy.isDue(world, compute(costs)))
            continue;
        if (world.rank() == 0)
            fmt::print("step {}: {}\n", step, Geom::describeImbalance(world, policy.last()));
        const double begin = MPI_Wtime();
        const std::vector<int> targets = Geom::repartitionTargets(mesh, costs);
        Geom::Repartition move(mesh, targets, options); // the options of buildMesh
        move.onCells(u).onNodes(velocity);
        move.commit(); // mesh, u and velocity are the new ones
        policy.moved(world, MPI_Wtime() - begin);
    }
    return u.father->size() == mesh.cells.owned ? 0 : 1;
}

int main(int argc, char **argv) {
    return DNDS::runMain(argc, argv, [&](DNDS::CommunicatorView world) { return run(world); });
}
