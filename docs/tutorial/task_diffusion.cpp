// The first program of docs/tasks.md: heat flows from cell to cell.
//
//   mpiexec -n 2 task_diffusion
//
// It ends with exit code 0 only if no heat is lost.

#include "DNDS/Geom/Geom.hpp"
#include "DNDS/Task/Graph.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

namespace Geom = DNDS::Geom;
namespace Task = DNDS::Task;
using DNDS::index;
using DNDS::LocalIndex;
using DNDS::real;
using Field = DNDS::ArrayPair<DNDS::ParArray<real, 1>>;

int run(DNDS::CommunicatorView world) {
    const Geom::BoxMeshOptions square{.fill = Geom::BoxCells::Quadrilaterals, .cells = {40, 40}};
    const Geom::UnstructuredMesh mesh = Geom::buildMesh(world, Geom::makeBoxMesh(square, world));
    Field u, next;
    for (Field *field : {&u, &next}) {
        field->initPair(field == &u ? "u" : "next", world);
        field->father->resize(mesh.cells.owned);
        Geom::attachField(*field, mesh.cells);
    }
    for (index cell = 0; cell < mesh.cells.owned; cell++)
        u(cell, 0) = mesh.cells.fileNumbers[static_cast<std::size_t>(cell)] == 820 ? 1 : 0; // one hot cell

    const auto neighbours = mesh.cellCells.view();
    Task::Graph step("diffusion", world);
    step.task("diffuse", mesh.cells)
        .reads(Task::around(u, mesh.cellCells))
        .writes(next)
        .run([neighbours](index cell, const auto &value, const auto &result) {
            real change = 0;
            for (const LocalIndex other : neighbours[cell])
                if (other >= 0)
                    change += value(other) - value(cell);
            result(cell) = value(cell) + 0.2 * change;
        });
    step.swap(u, next);
    Task::Plan plan = step.compile();
    for (int i = 0; i < 50; i++)
        plan.run();

    std::vector<real> rows;
    for (index cell = 0; cell < mesh.cells.owned; cell++)
        rows.push_back(u(cell, 0));
    const real heat = DNDS::exactSum(world, rows);
    const real hottest = world.allReduce(rows.empty() ? 0 : *std::max_element(rows.begin(), rows.end()), MPI_MAX);
    if (world.rank() == 0)
        fmt::print("{} runs, {} pulls: heat {:.6f}, hottest cell {:.6f}\n", plan.statistics().runs,
                   plan.statistics().transfers, heat, hottest);
    return std::abs(heat - 1) < 1e-12 ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) { return DNDS::runMain(argc, argv, run); }
