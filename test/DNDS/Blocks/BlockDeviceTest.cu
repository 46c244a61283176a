// Blocks on the device: kernels write cells and read ghosts that other ranks' kernels wrote.

#include "DNDS/Blocks/NdArray.hpp"

#include "DNDS/Blocks/BlockCase.hpp"
#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Exchange/DeviceCase.hpp"

namespace DNDS {
namespace {

using namespace DNDS::test;

CommunicatorView world() { return {MPI_COMM_WORLD}; }

class BlockDevice : public WithDevice {};

struct Fill {
    BlockView<real> v;
    real step;
    DNDS_HOST_DEVICE void operator()(index n) const {
        const index i = v.indexOf(n, 0);
        const index j = v.indexOf(n, 1);
        v(i, j) = static_cast<real>(1000 * v.global(i, 0) + v.global(j, 1)) + step;
    }
};

/// Five-point sums, and those of the corners, which only the right ghosts give.
struct Sum {
    BlockView<const real> v;
    BlockView<real> result;
    DNDS_HOST_DEVICE void operator()(index n) const {
        const index i = v.indexOf(n, 0);
        const index j = v.indexOf(n, 1);
        real sum = 0;
        for (index a = -1; a <= 1; ++a)
            for (index b = -1; b <= 1; ++b)
                sum += v(i + a, j + b);
        result(i, j) = sum;
    }
};

TEST_F(BlockDevice, KernelsReadGhostsOfOtherRanks) {
    constexpr index rows = 24;
    constexpr index columns = 18;
    NdArray<real> u("u");
    NdArray<real> sums("sums");
    u.decompose(world(), {rows, columns}, 0, {}, {1, 1}, {true, true});
    sums.decompose(world(), {rows, columns});
    u.toDevice();
    const Device::Stream stream;
    for (int step = 0; step < 3; ++step) {
        sums.toDevice();
        const auto v = u.deviceView<DeviceBackend::CUDA>();
        const Executor executor = Executor::device(stream.handle());
        parallelFor(executor, v.size(), Fill{v, static_cast<real>(step)});
        u.startExchangeGhosts(stream.handle());
        u.finishExchangeGhosts(stream.handle());
        parallelFor(executor, v.size(), Sum{v, sums.deviceView<DeviceBackend::CUDA>()});
        stream.synchronize();
        sums.toHost();
        const auto result = std::as_const(sums).view();
        for (index i = 0; i < result.extent(0); ++i)
            for (index j = 0; j < result.extent(1); ++j) {
                real expected = 0;
                for (index a = -1; a <= 1; ++a)
                    for (index b = -1; b <= 1; ++b)
                        expected += static_cast<real>(1000 * ((result.global(i + a, 0) + rows) % rows) +
                                                      (result.global(j + b, 1) + columns) % columns + step);
                EXPECT_EQ(result(i, j), expected);
            }
    }
    EXPECT_EQ(u.devicePointer() == nullptr, u.localCore().empty());
}

TEST_F(BlockDevice, EveryGhostOnAllDevicePaths) {
    const std::vector<std::pair<IndexSpace, std::vector<index>>> grids{
        {{"ring", Box({0}, {41}), {true}}, {3}},
        {{"torus", Box({0, 0}, {17, 13}), {true, true}}, {5, 4}},
        {{"box", Box({0, 0, 0}, {9, 8, 7}), {true, false, true}}, {4, 4, 4}},
        {{"hyperbox", Box({0, 0, 0, 0}, {4, 5, 3, 6}), {true, true, true, true}}, {2, 3, 2, 4}}};
    for (const auto &[space, shape] : grids) {
        SCOPED_TRACE(space.name);
        const auto grid = BlockGrid::blocksOf(world(), space, shape);
        for (const ComponentOrder order : {ComponentOrder::Inside, ComponentOrder::Outside}) {
            BlockField<real> u("u", world(), grid,
                               {.ghosts = GhostWidths::uniform(grid->dims(), 2), .components = 3, .order = order});
            int version = 0;
            for (const TransportKind kind : deviceTransports()) {
                SCOPED_TRACE(transportName(kind));
                fillField(u, ++version);
                u.toDevice();
                u.initExchangeGhosts({.transport = kind});
                u.exchangeGhosts();
                u.toHost();
                checkField(std::as_const(u), version, modulo(space));
            }
        }
    }
}

/// Deposits whose sums depend on the order.
void depositUnevenly(BlockField<real> &u) {
    for (int b = 0; b < u.blocks(); ++b)
        forEachIn(u.block(b), u.block(b).extent, [&](const IndexVector &at, const IndexVector &cell) {
            for (rowsize c = 0; c < u.components(); ++c)
                test::at(u.view(b), at, c) = contents<real>({u.block(b).block, cell}, c, 1) / 3;
        });
}

std::span<const real> valuesOf(const BlockField<real> &u) {
    return {u.array().data(), toSize(u.array().size() * u.array().rowSize())};
}

TEST_F(BlockDevice, PushedSumsHaveTheBitsOfTheHost) {
    const IndexSpace space{"torus", Box({0, 0}, {17, 13}), {true, false}};
    std::vector<Block> blocks = BlockGrid::blocksOf(world(), space, {3, 4})->blocks();
    for (std::size_t b = 0; b < blocks.size(); ++b) // ranks do not ascend with blocks
        blocks[b].rank = static_cast<int>(b * 5) % world().size();
    const auto grid = BlockGrid::make({space}, blocks);
    const Device::Stream stream;
    for (const ComponentOrder order : {ComponentOrder::Inside, ComponentOrder::Outside}) {
        const BlockFieldOptions options{.ghosts = {2, 1}, .components = 3, .order = order};
        BlockField<real> expected("expected", world(), grid, options);
        BlockField<real> u("u", world(), grid, options);
        for (const PushOp op : {PushOp::Sum, PushOp::Min, PushOp::Max, PushOp::Replace}) {
            depositUnevenly(expected);
            expected.pushGhosts(op);
            for (const TransportKind kind : deviceTransports()) {
                SCOPED_TRACE(transportName(kind));
                depositUnevenly(u);
                u.toDevice();
                u.initPushGhosts(op, {.transport = kind});
                u.startPushGhosts(op, stream.handle());
                u.finishPushGhosts(stream.handle());
                stream.synchronize();
                if (u.blocks() > 0) {
                    EXPECT_THROW((void)std::as_const(u).view(), StaleError) << "the host has old values";
                }
                u.toHost();
                EXPECT_TRUE(std::ranges::equal(valuesOf(u), valuesOf(expected)));
            }
        }
    }
}

TEST_F(BlockDevice, ExchangesFollowTheFieldFromSideToSide) {
    const IndexSpace space{"torus", Box({0, 0}, {17, 13}), {true, true}};
    BlockField<real> u("u", world(), BlockGrid::cut(world(), space), {.ghosts = {1, 1}});
    fillField(u, 1);
    u.exchangeGhosts();
    checkField(std::as_const(u), 1, modulo(space));
    fillField(u, 2);
    u.toDevice();
    EXPECT_EQ(u.side(), MemorySpace::Device);
    u.exchangeGhosts();
    if (u.blocks() > 0) {
        EXPECT_THROW((void)std::as_const(u).view(), StaleError) << "the host has old ghosts";
    }
    u.toHost();
    checkField(std::as_const(u), 2, modulo(space));
    fillField(u, 3);
    u.exchangeGhosts();
    checkField(std::as_const(u), 3, modulo(space));
}

TEST_F(BlockDevice, FieldsMoveToOtherRanks) {
    const IndexSpace space{"torus", Box({0, 0}, {17, 13}), {true, true}};
    const auto grid = BlockGrid::blocksOf(world(), space, {3, 4});
    BlockField<real> u("u", world(), grid, {.ghosts = {1, 1}, .components = 2});
    fillField(u, 1);
    u.exchangeGhosts();
    u.toDevice();
    std::vector<real> costs;
    for (const int block : grid->blocksOfRank(world().rank()))
        costs.push_back(block < 3 ? 10 : 1);
    BlockField<real> moved = u.moved(grid->rebalanced(world(), costs));
    EXPECT_EQ(moved.side(), MemorySpace::Device);
    for (auto *field : {&u, &moved}) {
        field->toHost();
        checkField(std::as_const(*field), 1, modulo(space));
    }
    moved.toDevice();
    moved.exchangeGhosts();
    moved.toHost();
    checkField(std::as_const(moved), 1, modulo(space));
}

} // namespace
} // namespace DNDS
