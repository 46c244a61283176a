// The first program of docs/guides/tasks.md: heat flows from cell to cell.
//
//   mpiexec -n 2 task_diffusion
//
// It ends with exit code 0 only if no heat is lost.

#include "DNDS/Geom/Geom.hpp"
#include "DNDS/Task/Graph.hpp"

#include <fmt/core.h>

#include <cmath>
#include <exception>
#include <vector>

namespace {

namespace Geom = DNDS::Geom;
namespace Task = DNDS::Task;
using DNDS::Index;
using DNDS::LocalIndex;
using DNDS::real;

int run(DNDS::CommunicatorView world) {
    const Geom::BoxMeshOptions square{.fill = Geom::BoxCells::Quadrilaterals, .cells = {40, 40}};
    const Geom::UnstructuredMesh mesh = Geom::buildMesh(world, Geom::makeBoxMesh(square, world));
    auto u = mesh.field<1>("u");
    auto next = mesh.field<1>("next");
    for (Index cell = 0; cell < mesh.cells.owned; cell++)
        u(cell, 0) = mesh.cells.fileNumbers[static_cast<std::size_t>(cell)] == 820 ? 1 : 0; // one hot cell

    const auto neighbours = mesh.cellCells.view();
    Task::Graph step("diffusion", world);
    step.task("diffuse", mesh.cells)
        .reads(Task::around(u, mesh.cellCells))
        .writes(next)
        .run([neighbours](Index cell, const auto &value, const auto &result) {
            real change = 0;
            for (const LocalIndex other : neighbours[cell])
                if (other >= 0)
                    change += value(other) - value(cell);
            result(cell) = value(cell) + 0.2 * change;
        });
    step.swap(u, next);
    Task::Plan plan = step.compile();
    for (int i = 0; i < 45; i++)
        plan.run();

    const Task::Reduction heat = step.reduce("heat", DNDS::ReduceOp::Sum, u);
    const Task::Reduction hottest = step.reduce("hottest cell", DNDS::ReduceOp::Max, u);
    std::vector<real> pictures;
    step.asyncCall("picture", 2).reads(u).run([&](const auto &value) {
        for (Index cell = 0; cell < mesh.cells.owned; cell++)
            pictures.push_back(value(cell)); // as this step left it, while others go on
    });
    Task::Plan measured = step.compile();
    bool cools = true;
    for (int i = 0; i < 4; i++) {
        measured.run();
        if (i > 0) // the run before: waits for nobody
            cools =
                cools && measured.previous(hottest)[0] > measured.result(hottest)[0]; // this one: waits for all ranks
    }
    measured.finish(); // waits for the last picture, too, and throws what went wrong there
    cools = cools && pictures.size() == 2 * static_cast<std::size_t>(mesh.cells.owned);

    try {
        measured.run();
    } catch (const std::exception &) { // on the rank that failed; on all others a RevokedError
        measured.recover();
        throw; // as this program has no other state to begin from
    }

    // On all ranks: reductions wait for all of them.
    const real sum = measured.result(heat)[0];
    const real most = measured.result(hottest)[0];
    if (world.rank() == 0)
        fmt::print("{} runs, {} pulls: heat {:.6f}, hottest cell {:.6f}\n",
                   plan.statistics().runs + measured.statistics().runs,
                   plan.statistics().transfers + measured.statistics().transfers, sum, most);
    return std::abs(sum - 1) < 1e-12 && cools ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) { return DNDS::runMain(argc, argv, run); }
