// The second program of docs/guides/sparse.md: dust in a few blocks and a gas in all of them, as one task graph.
//
//   mpiexec -n 2 sparse_tasks
//
// It ends with exit code 0 only if dust and gas together are what they were.

#include "DNDS/Blocks/BlockTasks.hpp"
#include "DNDS/Mpi/RunMain.hpp"
#include "DNDS/Sparse/SparseReductions.hpp"
#include "DNDS/Sparse/SparseTasks.hpp"

#include <fmt/core.h>

#include <cmath>
#include <utility>

namespace {

using namespace DNDS;
using Cells = BlockView<const double>;

/// Calls `visit(i, j)` for the cells of a block.
template <class AnyView, class Visit>
void forCells(const AnyView &u, Visit &&visit) {
    for (DNDS::Index i = 0; i < u.extent(0); ++i)
        for (DNDS::Index j = 0; j < u.extent(1); ++j)
            visit(i, j);
}

int run(CommunicatorView world) {
    const IndexSpace plane{"plane", Box({0, 0}, {128, 128}), {true, true}};
    const auto grid = BlockGrid::blocksOf(world, plane, {16, 16});
    BlockField<double> gas("gas", world, BlockPattern::make(world, grid, {}));
    const auto pattern = SparsePattern::make(world, grid, {1, 1});
    SparseField<double> dust("dust", pattern,
                             {.stages = 2, .allocationThreshold = 1e-9, .deallocationThreshold = 1e-10});
    SparseFields species("species", {&dust});
    if (const int b = pattern->localOf(grid->blockOf({40, 70})); b >= 0) {
        dust.allocate(b);
        const auto u = dust.view(b);
        u(u.local(40, 0), u.local(70, 1)) = 1;
    }

    std::size_t pictures = 0;
    Task::Graph step("step", world);
    exchangeGhosts(step, species);
    step.task("drift", blocksOf(dust)).readsWrites(dust).run([](int /*block*/, const SparseBlock<double> &here) {
        const Cells u = here.readView();
        const auto next = here.view(1);
        forCells(u, [&](DNDS::Index i, DNDS::Index j) { next(i, j) = u(i, j) - 0.5 * (u(i, j) - u(i - 1, j)); });
    });
    swapStages(step, dust, 0, 1);
    step.call("melt").readsWrites(dust, gas).run([](SparseField<double> &solid, const Task::BlockViews<double> &all) {
        for (const int b : solid.allocatedBlocks()) {
            const auto u = solid.view(b);
            const auto v = all.view(b);
            forCells(u, [&](DNDS::Index i, DNDS::Index j) { v(i, j) += 0.01 * u(i, j); });
            forCells(u, [&](DNDS::Index i, DNDS::Index j) { u(i, j) -= 0.01 * u(i, j); });
        }
    });
    step.asyncCall("picture", 10).reads(dust).run([&](const SparseField<double> &copy) {
        pictures += copy.allocatedBlocks().size(); // as this step left it, while others go on
    });
    Task::Plan plan = step.compile();
    for (int k = 0; k < 100; ++k)
        plan.run();
    plan.finish();

    double melted = 0;
    for (int b = 0; b < gas.blocks(); ++b)
        forCells(std::as_const(gas).view(b),
                 [&](DNDS::Index i, DNDS::Index j) { melted += std::as_const(gas).view(b)(i, j); });
    melted = world.allReduce(melted, MPI_SUM);
    const double solid = sums(dust).front();
    pictures = world.allReduce(pictures, MPI_SUM);
    if (world.rank() == 0)
        fmt::print("dust {:.6f}, gas {:.6f}, {} blocks drawn\n", solid, melted, pictures);
    return std::abs(solid + melted - 1) < 1e-6 ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) { return DNDS::runMain(argc, argv, run); }
