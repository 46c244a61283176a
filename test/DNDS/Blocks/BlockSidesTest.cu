// Plans on a device keep `side()` of fields, by which exchanges, pushes and swaps go, where their tasks write: also
// after something has looked at a field on the host, and on ranks without blocks.

#include "DNDS/Blocks/BlockPack.hpp"
#include "DNDS/Blocks/BlockTasks.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Exchange/DeviceCase.hpp"

#include <functional>
#include <utility>
#include <vector>

namespace DNDS::test {
namespace {

struct Mix {
    DNDS_HOST_DEVICE void operator()(const BlockCell &c, const BlockView<const real> &u,
                                     const BlockView<real> &v) const {
        v(c[0]) = 0.5 * (u(c[0] - 1) + u(c[0] + 1));
    }
};
struct Deposit {
    DNDS_HOST_DEVICE void operator()(const BlockCell &c, const BlockPackView<real> &f) const {
        f(c.block, 0)(c[0]) += 1;
        if (c[0] == 0)
            f(c.block, 0)(-1) += 0.25; // a ghost
    }
};

/// Two fields on a ring of cells, one block a rank; with one cell all other ranks have none.
struct Ring {
    CommunicatorView comm{MPI_COMM_WORLD};
    std::shared_ptr<const BlockGrid> grid;
    std::shared_ptr<const BlockPattern> pattern;
    BlockField<real> u, v;
    BlockRows cells;
    BlockPack<real> pack;
    Task::Graph step{"step", comm};

    explicit Ring(index count)
        : grid(BlockGrid::cut(comm, {"ring", Box({0}, {count}), {true}})), pattern(BlockPattern::make(comm, grid, {1})),
          u("u", comm, pattern), v("v", comm, pattern), cells("cells", pattern), pack(u) {
        for (int b = 0; b < u.blocks(); ++b)
            for (index i = 0; i < u.view(b).extent(0); ++i)
                u.view(b)(i) = static_cast<real>(u.block(b).cells.lower[0] + i);
    }
    void mix() { step.task("mix", cells.cells()).reads(stencil(u, {1})).writes(v).run(Mix{}); }
    std::vector<real> values() {
        u.toHost();
        v.toHost();
        std::vector<real> all;
        for (int b = 0; b < u.blocks(); ++b)
            for (index i = 0; i < u.view(b).extent(0); ++i)
                all.insert(all.end(), {u.view(b)(i), v.view(b)(i)});
        return all;
    }
};

/// Three runs give the same on the host and on the device, with `between` runs.
void expectSame(index count, const std::function<void(Ring &)> &declare, const std::function<void(Ring &)> &between) {
    const Device::Stream stream;
    Ring host(count), device(count);
    declare(host);
    declare(device);
    Task::Plan onHost = host.step.compile(Executor::host());
    Task::Plan onDevice = device.step.compile(Executor::device(stream));
    for (int k = 0; k < 3; ++k) {
        onHost.run();
        onDevice.run();
        between(host);
        between(device);
    }
    EXPECT_EQ(device.values(), host.values());
}

class BlockSides : public WithDevice {
  protected:
    static void look(Ring &ring, BlockField<real> &field) {
        ring.step.call("look").reads(field).run([](const Task::BlockViews<const real> &) {});
    }
    static void nothing(Ring &) {}
};

TEST_F(BlockSides, OfFieldsThatAreSwapped) {
    const auto declare = [](Ring &ring) {
        ring.mix();
        ring.step.swap(ring.u, ring.v);
    };
    for (const index count : {8, 1})
        expectSame(count, declare, [](Ring &ring) { ring.u.toHost(); }); // for a file, say
}

TEST_F(BlockSides, OfAFieldThatACallReads) {
    for (const index count : {8, 1})
        expectSame(
            count,
            [](Ring &ring) {
                ring.mix();
                look(ring, ring.v);
                ring.step.swap(ring.u, ring.v);
            },
            nothing);
}

TEST_F(BlockSides, OfDepositsOnTheHostAndOnTheDevice) {
    for (const index count : {8, 1})
        for (const bool launched : {false, true})
            expectSame(
                count,
                [launched](Ring &ring) {
                    ring.mix();
                    look(ring, ring.u);
                    auto deposit = ring.step.call("deposit").readsWrites(Task::owned(ring.u));
                    if (launched)
                        std::move(deposit).launch(
                            [&ring](const Executor &on) { forEachCell(on, ring.pack, Deposit{}); });
                    else
                        std::move(deposit).run([](const Task::BlockViews<real> &all) {
                            for (int b = 0; b < all.blocks(); ++b)
                                all.view(b)(-1) += 1;
                        });
                    pushGhosts(ring.step, ring.u);
                },
                nothing);
}

TEST_F(BlockSides, OfFieldsThatTheProgramExchanges) {
    for (const index count : {8, 1})
        expectSame(
            count, [](Ring &ring) { ring.mix(); }, [](Ring &ring) { ring.v.exchangeGhosts(); });
}

} // namespace
} // namespace DNDS::test
