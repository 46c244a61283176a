// Packs of dense and sparse fields: loops in one kernel against a loop over each block, to the bit; views that are
// cached, and made again when blocks came, went or moved.

#include "DNDS/Blocks/BlockPack.hpp"

#include "DNDS/Blocks/BlockTasks.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Exchange/DeviceCase.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "DNDS/Sparse/SparseCase.hpp"
#include "DNDS/Sparse/SparseTasks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace DNDS::test {
namespace {

CommunicatorView world() { return {MPI_COMM_WORLD}; }

template <class T>
DNDS_HOST_DEVICE T &valueAt(const BlockView<T> &u, const BlockCell &cell, rowsize component = 0) {
    index offset = component * u.stride(u.dims());
    for (int d = 0; d < u.dims(); ++d)
        offset += cell[d] * u.stride(d);
    return u.data()[offset];
}

/// Fields 1 and 2 turn into each other, as fast as 0 and 3 say, where these are.
struct React {
    real rate;
    DNDS_HOST_DEVICE void operator()(const BlockCell &cell, const BlockPackView<real> &u) const {
        real speed = rate;
        for (const int f : {0, 3})
            if (u.has(cell.block, f))
                speed += 0.125 * valueAt(u(cell.block, f), cell, u(cell.block, f).components() - 1);
        const real change = speed * valueAt(u(cell.block, 1), cell) * valueAt(u(cell.block, 2), cell, 1);
        valueAt(u(cell.block, 1), cell) -= change;
        valueAt(u(cell.block, 2), cell, 1) += change;
    }
};

struct CountCells {
    real by;
    DNDS_HOST_DEVICE void operator()(const BlockCell &cell, const BlockPackView<real> &u) const {
        for (int f = 0; f < u.fields(); ++f)
            if (u.has(cell.block, f))
                valueAt(u(cell.block, f), cell) += by;
    }
};

/// A dense field and three sparse ones, one with two stages.
struct Reactor {
    std::shared_ptr<const SparsePattern> pattern;
    BlockField<real> gas;
    SparseField<real> fuel, oxygen, heat;

    Reactor(const SparseGrid &where, ComponentOrder order)
        : pattern(SparsePattern::make(world(), where.on(world()), where.ghosts)),
          gas("gas", world(), pattern->grid(), {.ghosts = where.ghosts, .components = 2, .order = order}),
          fuel("fuel", pattern, {.stages = 2}), oxygen("oxygen", pattern, {.components = 3}),
          heat("heat", SparsePattern::make(world(), pattern->grid(), {})) {} // other ghosts
    std::vector<SparseField<real> *> sparse() { return {&fuel, &oxygen, &heat}; }

    /// Allocates and frees at random, and writes all values; `fuel` in stage 1.
    void change(std::uint64_t round) {
        const auto fill = [&](const BlockView<real> &u, std::uint64_t block, std::uint64_t salt) {
            index n = 0;
            Box cells(u.dims(), {}, {});
            for (int d = 0; d < u.dims(); ++d)
                cells.upper[toSize(d)] = u.extent(d);
            forEachCell(cells, [&](const IndexVector &cell) {
                for (rowsize c = 0; c < u.components(); ++c)
                    at(u, cell, c) =
                        static_cast<real>(drawn(1U << 20U, {block, round, salt, static_cast<std::uint64_t>(n++)})) /
                        (1U << 20U);
            });
        };
        for (int b = 0; b < gas.blocks(); ++b) {
            const auto number = static_cast<std::uint64_t>(gas.block(b).block);
            fill(gas.view(b), number, 0);
            for (std::size_t f = 0; f < 3; ++f) {
                SparseField<real> &u = *sparse()[f];
                if (drawn(3, {number, round, f}) == 0)
                    u.free(b);
                else if (drawn(2, {number, round, f}) == 0)
                    u.allocate(b);
                if (u.isAllocated(b))
                    fill(u.view(b, f == 0 ? 1 : 0), number, f + 1);
            }
        }
    }
    void toDevice() {
        gas.toDevice();
        for (auto *field : sparse())
            field->toDevice();
    }
    void toHost() {
        gas.toHost();
        for (auto *field : sparse())
            field->toHost();
    }
};

/// The same without a pack: each block's own loop.
void reactBlockByBlock(Reactor &of, real rate) {
    for (int b = 0; b < of.gas.blocks(); ++b) {
        if (!of.fuel.isAllocated(b) || !of.oxygen.isAllocated(b))
            continue;
        const auto gas = of.gas.view(b), fuel = of.fuel.view(b, 1), oxygen = of.oxygen.view(b);
        const auto heat = of.heat.isAllocated(b) ? of.heat.view(b) : BlockView<real>();
        Box cells(gas.dims(), {}, {});
        for (int d = 0; d < gas.dims(); ++d)
            cells.upper[toSize(d)] = gas.extent(d);
        forEachCell(cells, [&](const IndexVector &cell) {
            real speed = rate;
            speed += 0.125 * at(gas, cell, 1);
            if (of.heat.isAllocated(b))
                speed += 0.125 * at(heat, cell, 0);
            const real change = speed * at(fuel, cell, 0) * at(oxygen, cell, 1);
            at(fuel, cell, 0) -= change;
            at(oxygen, cell, 1) += change;
        });
    }
}

void expectSame(const Reactor &a, const Reactor &b) {
    for (int k = 0; k < a.gas.blocks(); ++k) {
        EXPECT_TRUE(sameBits(elementsOf(a.gas.view(k)), elementsOf(b.gas.view(k))));
        if (a.fuel.isAllocated(k)) {
            EXPECT_TRUE(sameBits(elementsOf(a.fuel.view(k, 1)), elementsOf(b.fuel.view(k, 1))));
        }
        if (a.oxygen.isAllocated(k)) {
            EXPECT_TRUE(sameBits(elementsOf(a.oxygen.view(k)), elementsOf(b.oxygen.view(k))));
        }
    }
}

void reactOn(const Executor &executor) {
    for (const SparseGrid &where : sparseGrids())
        for (const ComponentOrder order : {ComponentOrder::Inside, ComponentOrder::Outside}) {
            SCOPED_TRACE(where.name);
            Reactor packed(where, order);
            Reactor loops(where, order);
            BlockPack<real> pack;
            pack.add(packed.gas);
            pack.add(packed.fuel, 1);
            pack.add(packed.oxygen);
            EXPECT_EQ(pack.add(packed.heat), 3);
            for (std::uint64_t round = 0; round < 4; ++round) {
                packed.change(round);
                loops.change(round);
                if (executor.onDevice())
                    packed.toDevice();
                forEachCell(executor, pack, {1, 2}, React{0.25});
                executor.synchronize();
                packed.toHost();
                reactBlockByBlock(loops, 0.25);
                expectSame(packed, loops);
            }
        }
}

TEST(BlockPack, OneLoopHasTheBitsOfLoopsOverBlocks) { reactOn(Executor::host()); }
TEST(BlockPack, InThreads) { reactOn(Executor::hostThreads(3)); }

class BlockPackOnDevice : public WithDevice {};

TEST_F(BlockPackOnDevice, OneKernelHasTheBitsOfLoopsOverBlocks) {
    const Device::Stream stream;
    reactOn(Executor::device(stream.handle()));
}

TEST_F(BlockPackOnDevice, FieldsMustBeThere) {
    Reactor one(sparseGrids()[1], ComponentOrder::Inside);
    one.change(1);
    BlockPack<real> pack(one.fuel, one.gas);
    (void)pack.view();
    one.fuel.toDevice();
    if (!one.fuel.allocatedBlocks().empty()) {
        EXPECT_NE(messageOf<StaleError>([&] { (void)pack.view(); }).find("toHost"), std::string::npos);
    }
    one.gas.toDevice();
    const Device::Stream stream;
    forEachCell(Executor::device(stream.handle()), pack, CountCells{1});
    stream.synchronize();
    if (one.gas.blocks() > 0) {
        EXPECT_THROW((void)std::as_const(one.gas).view(0), StaleError) << "the kernel has written";
    }
    one.toHost();
    EXPECT_EQ(pack.view().blocks(), one.gas.blocks());
}

/// Kernels of the program are not waited for by it: exchanges and pushes follow them on the device.
TEST_F(BlockPackOnDevice, ExchangesFollowTheKernelsOfTheirProducer) {
    const Device::Stream stream;
    for (const SparseGrid &where : sparseGrids()) {
        SCOPED_TRACE(where.name);
        Reactor host(where, ComponentOrder::Inside), device(where, ComponentOrder::Inside);
        for (Reactor *one : {&host, &device})
            one->change(3);
        BlockPack<real> pack(device.oxygen), here(host.oxygen);
        device.oxygen.toDevice();
        for (int round = 0; round < 6; ++round) {
            for (int k = 0; k < 20; ++k) {
                forEachCell(Executor::device(stream.handle()), pack, CountCells{0.5});
                forEachCell(Executor::host(), here, CountCells{0.5});
            }
            if (round % 2 == 0) {
                device.oxygen.exchangeGhosts(stream.handle());
                host.oxygen.exchangeGhosts();
            } else {
                device.oxygen.pushGhosts(PushOp::Sum, stream.handle());
                host.oxygen.pushGhosts();
            }
        }
        device.oxygen.toHost();
        EXPECT_EQ(device.oxygen.allocatedBlocks(), host.oxygen.allocatedBlocks());
        for (const int b : host.oxygen.allocatedBlocks())
            EXPECT_TRUE(sameBits(elementsOf(std::as_const(device.oxygen).view(b)),
                                 elementsOf(std::as_const(host.oxygen).view(b))));
    }
}

const SparseGrid torus{"torus", {{"torus", Box({0, 0}, {24, 16}), {true, true}}}, {5, 4}, {1, 1}};

TEST(BlockPack, ViewsAreKeptUntilBlocksComeOrGo) {
    Reactor one(torus, ComponentOrder::Inside);
    if (one.gas.blocks() < 2)
        return;
    BlockPack<real> pack(one.gas, one.fuel);
    const auto *const first = &pack.view()(0, 0);
    EXPECT_EQ(&pack.view()(0, 0), first) << "nothing changed";
    EXPECT_FALSE(pack.view().has(1, 1));
    EXPECT_EQ(pack.cells(MemorySpace::Host, {1}).size, 0);

    one.fuel.allocate(1);
    EXPECT_NE(&pack.view()(0, 0), first);
    EXPECT_TRUE(pack.view().has(1, 1));
    EXPECT_FALSE(pack.view().has(0, 1));
    EXPECT_EQ(pack.view()(1, 1).data(), one.fuel.view(1).data());
    const BlockCells cells = pack.cells(MemorySpace::Host, {1});
    EXPECT_EQ(cells.size, one.fuel.view(1).size());
    EXPECT_EQ(cells[0].block, 1);

    const auto *const old = &pack.view()(0, 0);
    one.fuel.swapStages(0, 1);
    EXPECT_EQ(pack.view()(1, 1).data(), one.fuel.view(1).data());
    EXPECT_EQ(pack.cells(MemorySpace::Host, {1}).places, cells.places) << "the same blocks";
    one.fuel.swapStages(0, 1);
    EXPECT_EQ(&pack.view()(0, 0), old) << "both states are kept";

    one.fuel.free(1);
    one.fuel.allocate(0); // the memory of block 1, from the pool
    EXPECT_FALSE(pack.view().has(1, 1));
    EXPECT_EQ(pack.view()(0, 1).data(), one.fuel.view(0).data());
    EXPECT_EQ(pack.cells(MemorySpace::Host, {0, 1}).size, one.fuel.view(0).size());
}

TEST(BlockPack, FollowsExchangesSwapsAndMoves) {
    Reactor one(torus, ComponentOrder::Outside);
    BlockField<real> other("other", world(), one.gas.blockPattern(), 2);
    BlockPack<real> pack(one.gas, one.fuel);
    (void)pack.view();
    const auto expectCurrent = [&] {
        const BlockPackView<real> u = pack.view();
        ASSERT_EQ(u.blocks(), one.gas.blocks());
        for (int b = 0; b < u.blocks(); ++b) {
            EXPECT_EQ(u(b, 0).data(), one.gas.view(b).data());
            ASSERT_EQ(u.has(b, 1), one.fuel.isAllocated(b));
            if (u.has(b, 1)) {
                EXPECT_EQ(u(b, 1).data(), one.fuel.view(b).data());
            }
        }
    };
    if (const int b = one.pattern->localOf(0); b >= 0) {
        one.fuel.allocate(b);
        one.fuel.view(b)(0, 0) = 1;
    }
    one.fuel.exchangeGhosts();
    EXPECT_EQ(world().allReduce(static_cast<int>(one.fuel.allocatedBlocks().size()), MPI_SUM), 4); // a corner's
    expectCurrent();
    one.gas.swapData(other);
    expectCurrent();
    std::vector<real> costs;
    for (int b = 0; b < one.fuel.blocks(); ++b)
        costs.push_back(one.fuel.isAllocated(b) ? 10 : 1);
    const auto pattern = SparsePattern::make(world(), one.gas.grid()->rebalanced(world(), costs), torus.ghosts);
    one.fuel = one.fuel.moved(pattern);
    one.gas = one.gas.moved(pattern->grid());
    expectCurrent();
}

/// In a plan: the gas heats up where fuel is and spreads, fuel moves on, and what burns leaves the fuel.
struct Spread {
    DNDS_HOST_DEVICE void operator()(const BlockCell &c, const BlockView<const real> &gas,
                                     const BlockView<real> &next) const {
        for (rowsize k = 0; k < 2; ++k)
            next(c[0], c[1], k) = 0.5 * gas(c[0], c[1], k) + 0.25 * (gas(c[0] - 1, c[1], k) + gas(c[0], c[1] + 1, k));
    }
};
struct Burn {
    DNDS_HOST_DEVICE void operator()(const BlockCell &c, const BlockPackView<real> &u) const {
        u(c.block, 0)(c[0], c[1], 1) += 0.5 * u(c.block, 1)(c[0], c[1]);
        u(c.block, 2)(c[0], c[1]) = 0.5 * (u(c.block, 1)(c[0] - 1, c[1]) + u(c.block, 1)(c[0], c[1] - 1));
    }
};

struct BurningPlan {
    Reactor fields{torus, ComponentOrder::Inside};
    BlockField<real> next{"next", world(), fields.gas.blockPattern(), 2};
    SparseFields species{"species", {&fields.fuel}};
    BlockRows cells{"cells", fields.gas.blockPattern()};
    BlockPack<real> pack{fields.gas, fields.fuel};
    Task::Graph step{"burn", world()};
    std::optional<Task::Plan> plan;

    explicit BurningPlan(const Executor &executor) {
        fields.change(7);
        for (int b = 0; b < fields.fuel.blocks(); ++b)
            if (fields.fuel.block(b).block % 3 != 0)
                fields.fuel.free(b);
            else if (fields.fuel.isAllocated(b))
                fields.fuel.view(b)(1, 1) = 1;
        pack.add(fields.fuel, 1);
        exchangeGhosts(step, species);
        step.call("burn").readsWrites(Task::owned(fields.gas), fields.fuel).launch([this](const Executor &on) {
            forEachCell(on, pack, {1}, Burn{});
        });
        swapStages(step, fields.fuel, 0, 1);
        step.task("spread", cells.cells()).reads(stencil(fields.gas, {1, 1})).writes(next).run(Spread{});
        step.swap(fields.gas, next);
        plan.emplace(step.compile(executor));
    }
};

TEST_F(BlockPackOnDevice, PlansLaunchLoopsBesideExchangesAndTasks) {
    const Device::Stream stream;
    BurningPlan host(Executor::host());
    BurningPlan device(Executor::device(stream.handle()));
    device.fields.fuel.toDevice();
    for (int k = 0; k < 8; ++k) {
        SCOPED_TRACE(k);
        host.plan->run();
        device.plan->run();
        device.plan->wait();
    }
    device.fields.toHost();
    EXPECT_EQ(device.fields.fuel.allocatedBlocks(), host.fields.fuel.allocatedBlocks());
    EXPECT_GT(world().allReduce(static_cast<int>(host.species.traffic().allocations), MPI_SUM), 0);
    for (int b = 0; b < host.fields.gas.blocks(); ++b) {
        EXPECT_TRUE(sameBits(elementsOf(std::as_const(device.fields.gas).view(b)),
                             elementsOf(std::as_const(host.fields.gas).view(b))));
        if (host.fields.fuel.isAllocated(b)) {
            EXPECT_TRUE(sameBits(elementsOf(std::as_const(device.fields.fuel).view(b)),
                                 elementsOf(std::as_const(host.fields.fuel).view(b))));
        }
    }
}

/// A field on the same grid, but with values at other points.
TEST(BlockPack, FollowsAnotherCentring) {
    const auto grid = BlockGrid::blocksOf(world(), {"box", Box({0, 0}, {8, 8}), {false, false}}, {4, 4});
    BlockField<real> u("u", world(), grid, {.ghosts = {1, 1}});
    BlockPack<real> pack(u);
    const auto count = [&] {
        real all = 0;
        forEachCell(Executor::host(), pack, CountCells{1});
        for (int b = 0; b < u.blocks(); ++b)
            for (index i = 0; i < u.view(b).extent(0); ++i)
                for (index j = 0; j < u.view(b).extent(1); ++j)
                    all += u.view(b)(i, j);
        return all;
    };
    EXPECT_EQ(count(), 16 * u.blocks());
    u = BlockField<real>("u", world(), grid, {.ghosts = {1, 1}, .centring = Centring::nodes()});
    EXPECT_EQ(count(), 25 * u.blocks());
}

TEST(BlockPack, OnlyCallsLaunch) {
    Reactor one(torus, ComponentOrder::Inside);
    Task::Graph graph("graph", world());
    const auto nothing = [](const Executor &) {};
    EXPECT_THROW(graph.task("loop", blocksOf(one.fuel)).reads(one.fuel).launch(nothing), ArgumentError);
    EXPECT_THROW(graph.asyncCall("picture").reads(one.fuel).launch(nothing), ArgumentError);
}

TEST(BlockPack, ConstFieldsAreRead) {
    Reactor one(torus, ComponentOrder::Inside);
    one.change(3);
    const Reactor &read = one;
    const BlockPack<const real> both(read.gas, read.fuel);
    BlockPack<const real> pack = both; // and packs can be copied
    const std::uint64_t version = one.gas.array().version();
    const BlockPackView<const real> u = pack.view();
    for (int b = 0; b < u.blocks(); ++b)
        EXPECT_EQ(u(b, 0)(0, 0, 1), read.gas.view(b)(0, 0, 1));
    EXPECT_EQ(one.gas.array().version(), version);
}

TEST(BlockPack, MisuseIsNamed) {
    Reactor one(torus, ComponentOrder::Inside);
    Reactor other(sparseGrids()[1], ComponentOrder::Inside);
    BlockPack<real> pack;
    expectContains(messageOf<StateError>([&] { (void)pack.view(); }), "add some first");
    pack.add(one.gas);
    pack.add(other.fuel);
    expectContains(messageOf<ArgumentError>([&] { (void)pack.view(); }), "'gas' and 'fuel' are on different blocks");
    BlockPack<real> stages;
    stages.add(one.fuel, 2);
    EXPECT_THROW((void)stages.view(), IndexError);
    BlockPack<real> fine(one.gas, one.fuel);
    EXPECT_THROW((void)fine.cells(MemorySpace::Host, {2}), IndexError);
    EXPECT_THROW(forEachCell(Executor::host(), fine, {-1}, CountCells{1}), IndexError);
}

} // namespace
} // namespace DNDS::test
