#include "DNDS/Sparse/SparseRows.hpp"

#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "DNDS/Serialize/Checkpoint.hpp"
#include "DNDS/Sparse/SparseCase.hpp"
#include "support/TemporaryFile.hpp"

#include <map>

namespace DNDS::test {
namespace {

CommunicatorView world() { return {MPI_COMM_WORLD}; }

/// A run that may begin from a file.
struct SparseRun {
    SparseGrid grid = sparseGrids()[1];
    CommunicatorView comm;
    std::shared_ptr<const BlockGrid> blocks = grid.on(comm);
    SparseField<real> u{"u",
                        SparsePattern::make(comm, blocks, grid.ghosts),
                        {.components = 2,
                         .stages = 2,
                         .allocationThreshold = 1e-2,
                         .deallocationThreshold = 1e-3,
                         .deallocationCount = 4},
                        0.25};

    explicit SparseRun(const CommunicatorView &on) : comm(on) {}
    void begin() {
        for (int b = 0; b < u.blocks(); ++b)
            if (drawn(4, {static_cast<std::uint64_t>(u.block(b).block)}) == 0) {
                u.allocate(b);
                u.view(b)(0, 0, 1) = 3;
            }
    }
    void steps(int count) {
        for (int k = 0; k < count; ++k) {
            u.exchangeGhosts();
            for (const int b : u.allocatedBlocks())
                diffuse(std::as_const(u).view(b), u.view(b, 1), u.defaultValue(), grid.ghosts);
            u.swapStages(0, 1);
        }
    }
    void write(const std::string &path) const {
        CheckpointWriter file(comm, path, {.mesh = blocksFingerprint(*blocks)});
        const SparseRows<real> rows = sparseRows(u);
        file.add("u", rows.cells, rows.ids);
        file.add("u.blocks", rows.blocks, rows.ids);
        file.write();
    }
    void read(const std::string &path) {
        const CheckpointReader file(comm, path, {.mesh = blocksFingerprint(*blocks)});
        SparseRows<real> rows = sparseRows(u);
        file.read("u", rows.cells, rows.ids);
        file.read("u.blocks", rows.blocks, rows.ids);
        setBlocks(u, rows);
    }
    void expectSame(const SparseRun &whole) const {
        for (int b = 0; b < u.blocks(); ++b) {
            const int other = whole.u.pattern()->localOf(u.block(b).block);
            if (other < 0)
                continue; // another rank compares it
            ASSERT_EQ(u.isAllocated(b), whole.u.isAllocated(other)) << u.block(b).block;
            EXPECT_EQ(u.emptyExchanges(b), whole.u.emptyExchanges(other));
            if (u.isAllocated(b)) {
                EXPECT_TRUE(sameBits(elementsOf(u.view(b)), elementsOf(whole.u.view(other))));
            }
        }
    }
};

TEST(SparseRows, RestartsOnAnyNumberOfRanks) {
    const Geom::test::TemporaryFile together("sparse_together.h5");
    const Geom::test::TemporaryFile alone("sparse_alone.h5");
    SparseRun whole(world());
    whole.begin();
    whole.steps(6);
    whole.write(together.path());
    whole.steps(6);
    SparseRun mine(CommunicatorView(MPI_COMM_SELF)); // each rank has all blocks
    mine.read(together.path());
    if (world().rank() == 0)
        mine.write(alone.path());
    world().barrier();
    mine.steps(6);
    mine.expectSame(whole);
    SparseRun spread(world());
    spread.read(alone.path());
    spread.steps(6);
    spread.expectSame(whole);
}

/// Written from the device and read there: the blocks, bits and counters of a run on the host.
TEST(SparseRows, RestartsOnTheDevice) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const Geom::test::TemporaryFile file("sparse_device.h5");
    SparseRun whole(world());
    whole.begin();
    whole.steps(6);
    SparseRun there(world());
    there.begin();
    there.steps(6);
    there.u.toDevice();
    there.write(file.path());
    SparseRun restarted(world());
    restarted.u.toDevice();
    restarted.read(file.path());
    EXPECT_EQ(restarted.u.space(), MemorySpace::Device);
    for (SparseRun *run : {&whole, &there, &restarted})
        run->u.exchangeGhosts();
    for (SparseRun *run : {&there, &restarted}) {
        run->u.toHost();
        run->steps(3);
    }
    whole.steps(3);
    there.expectSame(whole);
    restarted.expectSame(whole);
}

TEST(SparseRows, OfOtherBlocks) {
    SparseRun run(world());
    run.begin();
    SparseRows<real> rows = sparseRows(run.u);
    SparseField<real> other("other", run.u.pattern(), {.components = 3});
    if (!run.u.allocatedBlocks().empty()) {
        expectContains(messageOf<LayoutError>([&] { setBlocks(other, rows); }), "other blocks or components");
    }
    if (run.u.blocks() > 0) {
        const auto with = [&](auto &&change) {
            SparseRows<real> wrong = sparseRows(run.u);
            change(wrong);
            return messageOf<LayoutError>([&] { setBlocks(run.u, wrong); });
        };
        expectContains(with([](auto &wrong) { wrong.ids.clear(); }), "0 ids are given");
        expectContains(with([](auto &wrong) { wrong.ids[0] += 1; }), "is given the row of");
        expectContains(with([](auto &wrong) { wrong.blocks(0, 0) = 99; }), "neither there (1) nor absent (0)");
        expectContains(with([](auto &wrong) { wrong.blocks(0, 1) = -7; }), "-7 empty exchanges");
    }
    EXPECT_NE(blocksFingerprint(*run.blocks), blocksFingerprint(*sparseGrids()[2].on(world())));
    EXPECT_EQ(blocksFingerprint(*run.blocks), blocksFingerprint(*run.grid.on({MPI_COMM_SELF})));
}

} // namespace
} // namespace DNDS::test
