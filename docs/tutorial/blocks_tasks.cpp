// Blocks as data of tasks, for docs/guides/blocks.md: heat on a plane in many boxes, without a line about ghosts.
//
//   mpiexec -n 2 blocks_tasks
//
// It ends with exit code 0 only if no heat is lost.

#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/Blocks/BlockTasks.hpp"
#include "DNDS/Mpi/RunMain.hpp"

#include <fmt/core.h>

#include <cmath>

namespace {

using namespace DNDS;

int run(CommunicatorView world) {
    const IndexSpace plane{"plane", Box({0, 0}, {100, 80}), {true, true}};
    const auto pattern = BlockPattern::make(world, BlockGrid::blocksOf(world, plane, {20, 20}), {1, 1});
    BlockField<double> temperature("temperature", world, pattern);
    BlockField<double> next("next", world, pattern);
    if (temperature.blocks() > 0)
        temperature.view(0)(10, 10) = 1;
    const double before = sum(temperature);

    const BlockRows cells("cells", pattern);
    Task::Graph step("step", world);
    step.task("diffuse", cells.cells())
        .reads(stencil(temperature, {1, 1}))
        .writes(next)
        .run([](const BlockCell &c, const BlockView<const double> &u, const BlockView<double> &v) {
            const auto [i, j] = std::pair{c[0], c[1]};
            v(i, j) = u(i, j) + 0.2 * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1) - 4 * u(i, j));
        });
    step.swap(temperature, next);
    Task::Plan plan = step.compile();
    for (int i = 0; i < 100; ++i)
        plan.run();

    const double heat = sum(temperature);
    if (world.rank() == 0)
        fmt::print("heat {:.6f} of {:.6f}\n", heat, before);
    return std::abs(heat - before) < 1e-12 * before ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) { return DNDS::runMain(argc, argv, run); }
