// The second program of docs/guides/blocks.md: many blocks a rank, two grids that touch, copies to other cuts.
//
//   mpiexec -n 2 blocks_many
//
// It ends with exit code 0 only if ghosts are what they should be.

#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/Exchange/ExchangeGroup.hpp"
#include "DNDS/Mpi/RunMain.hpp"

#include <fmt/core.h>

namespace {

using DNDS::Block;
using DNDS::BlockField;
using DNDS::BlockGrid;
using DNDS::BlockPattern;
using DNDS::Box;
using DNDS::Connection;
using DNDS::Index;
using DNDS::IndexSpace;

/// A box of 64^3 cells in blocks of 16^3. Returns the messages of a pull of two fields.
std::size_t manyBlocks(DNDS::CommunicatorView world) {
    const IndexSpace space{"box", Box({0, 0, 0}, {64, 64, 64}), {true, true, true}};
    const auto grid = BlockGrid::blocksOf(world, space, {16, 16, 16});
    const auto pattern = BlockPattern::make(world, grid, {1, 1, 1});
    BlockField<double> state("state", world, pattern, 5);
    BlockField<int> flags("flags", world, pattern);
    for (int b = 0; b < state.blocks(); ++b) {
        const auto u = state.view(b);
        for (Index i = 0; i < u.extent(0); ++i)
            for (Index j = 0; j < u.extent(1); ++j)
                for (Index k = 0; k < u.extent(2); ++k)
                    u(i, j, k, 4) = static_cast<double>(u.global(k, 2));
    }
    DNDS::ExchangeGroup both;
    both.add(state);
    both.add(flags);
    both.initPersistentPull();
    both.startPersistentPull();
    both.waitPersistentPull();
    return both.pullPaths().size();
}

/// Two squares side by side, the second turned by a quarter. Returns whether ghosts of the first are cells of the
/// second.
bool twoZones(DNDS::CommunicatorView world) {
    const std::vector<IndexSpace> zones{{"left", Box({0, 0}, {8, 8}), {}}, {"right", Box({0, 0}, {8, 8}), {}}};
    // The vertices (8, 0) to (8, 8) of the left one are (8, 0) to (0, 0) of the right one: its first dimension runs
    // against the second one here, and its second along the first one here.
    const Connection side{
        .space = 0, .begin = {8, 0}, .end = {8, 8}, .other = 1, .otherBegin = {8, 0}, .transform = {2, -1}};
    const std::vector<Block> blocks{{zones[0].cells, 0, 0}, {zones[1].cells, world.size() - 1, 1}};
    BlockField<double> u("u", world, BlockGrid::make(zones, blocks, {side}), {.ghosts = {1, 1}});
    for (int b = 0; b < u.blocks(); ++b) {
        const auto v = u.view(b);
        for (Index i = 0; i < 8; ++i)
            for (Index j = 0; j < 8; ++j)
                v(i, j) = static_cast<double>(100 * u.block(b).block + 10 * i + j);
    }
    u.exchangeGhosts();
    return u.blocks() == 0 || u.block(0).block != 0 || (u.view(0)(8, 0) == 170 && u.view(0)(8, 7) == 100);
}

/// Transposes a matrix whose rows are distributed, and gathers it on rank 0. Returns whether both are right here.
bool transposed(DNDS::CommunicatorView world) {
    const IndexSpace matrix{"matrix", Box({0, 0}, {60, 40}), {}};
    const auto rows = BlockGrid::cut(world, matrix, {.parts = {-1, 1}});
    const auto turned = BlockGrid::cut(world, {"transpose", Box({0, 0}, {40, 60}), {}}, {.parts = {-1, 1}});
    const auto onRank0 = BlockGrid::make({matrix}, {{matrix.cells, 0, 0}});
    BlockField<double> a("a", world, rows, {});
    BlockField<double> b("b", world, turned, {});
    BlockField<double> all("all", world, onRank0, {});
    for (int n = 0; n < a.blocks(); ++n) {
        const auto v = a.view(n);
        for (Index i = 0; i < v.extent(0); ++i)
            for (Index j = 0; j < v.extent(1); ++j)
                v(i, j) = static_cast<double>(1000 * v.global(i, 0) + v.global(j, 1));
    }
    const auto transpose = makeBlockCopy(a, b, {.axes = {1, 0}}); // b(j, i) = a(i, j)
    transpose->start();
    transpose->wait();
    copyBlocks(a, all);
    bool right = all.blocks() == 0 || all.view()(59, 39) == 59039;
    for (int n = 0; n < b.blocks(); ++n) {
        const auto v = b.view(n);
        for (Index j = 0; j < v.extent(0); ++j)
            for (Index i = 0; i < v.extent(1); ++i)
                right = right && v(j, i) == static_cast<double>(1000 * v.global(i, 1) + v.global(j, 0));
    }
    return right;
}

int run(DNDS::CommunicatorView world) {
    const std::size_t messages = manyBlocks(world);
    const bool touch = world.allReduce(twoZones(world) ? 1 : 0, MPI_MIN) == 1;
    const bool right = world.allReduce(transposed(world) ? 1 : 0, MPI_MIN) == 1;
    if (world.rank() == 0)
        fmt::print("64 blocks, 2 fields: {} peers, the rank itself among them; zones {}; the transpose is {}\n",
                   messages, touch ? "touch" : "do not touch", right ? "right" : "wrong");
    return touch && right ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) { return DNDS::runMain(argc, argv, run); }
