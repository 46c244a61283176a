// Vector operations on sparse fields against those on dense ones, and sums and checkpoints of fields on the device
// against those of the host.

#include "DNDS/Sparse/SparseReductions.hpp"

#include "DNDS/Device/Stream.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "DNDS/Sparse/SparseCase.hpp"
#include "DNDS/Sparse/SparseRows.hpp"
#include "support/World.hpp"

#include <limits>

namespace DNDS::test {
namespace {

/// A sparse field with random blocks, and the dense one that has its values.
struct SparseTwins {
    SparseField<real> sparse;
    BlockField<real> dense;

    SparseTwins(const std::shared_ptr<const SparsePattern> &pattern, real background, std::uint64_t salt)
        : sparse("sparse", pattern, {.components = 2, .stages = 2}, background),
          dense("dense", world(), pattern->grid(), {.ghosts = pattern->ghosts(), .components = 2}) {
        for (int b = 0; b < sparse.blocks(); ++b) {
            const auto number = static_cast<std::uint64_t>(sparse.block(b).block);
            if (drawn(3, {number, salt}) == 0)
                continue;
            sparse.allocate(b);
            for (int stage = 0; stage < 2; ++stage) {
                const auto v = sparse.view(b, stage);
                for (index n = 0; n < v.size(); ++n)
                    for (rowsize c = 0; c < 2; ++c) {
                        IndexVector cell{};
                        for (int d = 0; d < v.dims(); ++d)
                            cell[toSize(d)] = v.indexOf(n, d);
                        const auto draw = drawn(100000, {number, salt + 7 * toSize(stage), toSize(n), toSize(c)});
                        at(v, cell, c) = std::sin(static_cast<real>(draw)) * 1e3;
                    }
            }
        }
        toDense(sparse, dense);
    }
    /// Moves blocks to where `on` runs.
    void move(const Executor &on) {
        if (on.onDevice())
            sparse.toDevice();
    }
    void expectSame(const Executor &on) {
        on.synchronize();
        BlockField<real> now("now", world(), sparse.grid(), {.components = 2});
        toDense(sparse, now);
        for (int b = 0; b < sparse.blocks(); ++b)
            Detail::forEachPair(std::as_const(now).view(b), std::as_const(dense).view(b),
                                [](real is, real expected) { EXPECT_EQ(is, expected); });
    }
};

/// The results of all reductions of two fields.
template <class Field>
std::vector<real> reductionsOf(const Field &u, const Field &v, const BlockElements &elements) {
    return {sum(u, elements),     norm1(u, elements), norm2(u, elements), dot(u, v, elements),
            normInf(u, elements), min(u, elements),   max(u, elements)};
}

void vectorsOn(const Executor &on) {
    for (const SparseGrid &grid : sparseGrids()) {
        SCOPED_TRACE(grid.name);
        const auto pattern = SparsePattern::make(world(), grid.on(world()), grid.ghosts);
        for (const auto &[first, second] : {std::pair<real, real>{0, 0}, {0.1, -2}, {0.3, 0}}) {
            SparseTwins u(pattern, first, 1);
            SparseTwins v(pattern, second, 2);
            BlockElements elements{.component = first == 0.1 ? 1 : -1};
            std::vector<real> ofHost = reductionsOf(u.sparse, v.sparse, elements);
            const std::vector<real> near = reductionsOf(u.dense, v.dense, elements);
            for (std::size_t k = 0; k < near.size(); ++k)
                EXPECT_NEAR(ofHost[k], near[k], 1e-12 * (k == 3 ? near[2] * near[2] : near[1]));
            u.move(on);
            v.move(on);
            elements.on = on;
            EXPECT_TRUE(sameBits(reductionsOf(u.sparse, v.sparse, elements), ofHost));
            elements.exact = true;
            EXPECT_TRUE(sameBits(reductionsOf(u.sparse, v.sparse, elements),
                                 reductionsOf(u.dense, v.dense, {.component = elements.component, .exact = true})));
            if (second != 0)
                continue;
            axpy(u.sparse, 0.5, v.sparse, {.component = elements.component, .on = on});
            axpy(u.dense, 0.5, v.dense, {.component = elements.component});
            u.expectSame(on);
            if (first != 0)
                continue;
            scale(u.sparse, 0.75, {.on = on});
            scale(u.dense, 0.75);
            u.expectSame(on);
            copy(u.sparse, v.sparse, {.component = 1, .on = on});
            copy(u.dense, v.dense, {.component = 1});
            u.expectSame(on);
        }
    }
}

TEST(SparseVectors, AreThoseOfTheDenseField) { vectorsOn(Executor::host()); }

class SparseVectorsOnDevice : public testing::Test {
  protected:
    void SetUp() override {
        if (!Device::available())
            GTEST_SKIP() << Device::unavailableReason();
    }
};

TEST_F(SparseVectorsOnDevice, AreThoseOfTheDenseField) {
    const Device::Stream stream;
    vectorsOn(Executor::device(stream));
}

TEST(SparseVectors, HaveStages) {
    const SparseGrid grid = sparseGrids()[1];
    SparseTwins u(SparsePattern::make(world(), grid.on(world()), grid.ghosts), 0, 3);
    copy({u.sparse, 1}, u.sparse);
    EXPECT_EQ(sum({u.sparse, 1}, {.exact = true}), sum(u.dense, {.exact = true}));
    axpy(u.sparse, 2, {u.sparse, 1});
    axpy(u.dense, 2, u.dense);
    u.expectSame(Executor::host());
    setConstant({u.sparse, 1}, 3, {.ghosts = false});
    EXPECT_EQ(normInf({u.sparse, 1}), 3);
    setConstant(u.sparse, 0);
    EXPECT_EQ(norm1(u.sparse), 0);
}

TEST(SparseVectors, ErrorsAreSeenOnAllRanks) {
    const SparseGrid grid = sparseGrids()[1];
    const auto pattern = SparsePattern::make(world(), grid.on(world()), grid.ghosts);
    SparseField<real> u("u", pattern);
    SparseField<real> warm("warm", pattern, {.deallocationCount = 0}, 300);
    SparseField<real> wide("wide", pattern, {.components = 2});
    expectContains(messageOf<ArgumentError>([&] { scale(warm, 2); }), "absent blocks of 'warm' are 300");
    expectContains(messageOf<ArgumentError>([&] { axpy(u, 1, warm); }), "this would make 300");
    expectContains(messageOf<ArgumentError>([&] { copy(u, wide); }), "have 1 and 2 components");
    expectContains(messageOnAll<ArgumentError>([&] { (void)dot(u, wide); }), "not on one pattern");
    expectContains(messageOnAll<ArgumentError>([&] { (void)sum(u, {.component = 1, .exact = true}); }),
                   "component 1 of 'u'");
    EXPECT_EQ(max(warm), 300);
    EXPECT_EQ(sum(warm), 300.0 * 19 * 13);
    if (const int b = pattern->localOf(0); b >= 0) {
        warm.allocate(b);
        warm.view(b)(0, 0) = std::numeric_limits<real>::quiet_NaN();
    }
    EXPECT_TRUE(std::isnan(min(warm)));
    EXPECT_TRUE(std::isnan(norm2(warm, {.exact = true})));
}

/// Fields on the device are read and filled as those on the host.
TEST_F(SparseVectorsOnDevice, SumsRowsAndDenseFieldsAreThoseOfTheHost) {
    for (const SparseGrid &grid : sparseGrids()) {
        SCOPED_TRACE(grid.name);
        const auto pattern = SparsePattern::make(world(), grid.on(world()), grid.ghosts);
        SparseTwins u(pattern, 0.1, 4);
        for (const int b : u.sparse.allocatedBlocks())
            u.sparse.setEmptyExchanges(b, b % 3);
        const std::vector<real> total = sums(u.sparse);
        const std::vector<real> norms = norms2(u.sparse);
        const std::vector<Extrema> most = extrema(u.sparse);
        const SparseRows<real> rows = sparseRows(u.sparse);
        u.sparse.toDevice();
        EXPECT_TRUE(sameBits(sums(u.sparse), total));
        EXPECT_TRUE(sameBits(norms2(u.sparse), norms));
        EXPECT_EQ(extrema(u.sparse)[1].least, most[1].least);
        EXPECT_EQ(extrema(u.sparse)[0].largest, most[0].largest);
        const SparseRows<real> fromDevice = sparseRows(u.sparse);
        SparseTwins restored(pattern, 0.1, 5);
        restored.sparse.toDevice();
        setBlocks(restored.sparse, fromDevice);
        EXPECT_EQ(restored.sparse.space(), MemorySpace::Device);
        u.expectSame(Executor::host()); // of the device, by toDense
        EXPECT_EQ(restored.sparse.allocatedBlocks(), u.sparse.allocatedBlocks());
        const SparseRows<real> again = sparseRows(restored.sparse);
        for (int b = 0; b < u.sparse.blocks(); ++b) {
            ASSERT_EQ(again.cells.rowSize(b), rows.cells.rowSize(b));
            EXPECT_TRUE(std::equal(rows.cells[b], rows.cells[b] + rows.cells.rowSize(b), again.cells[b]));
            EXPECT_EQ(again.blocks(b, 1), rows.blocks(b, 1));
        }
        fromDense(u.dense, restored.sparse);
        EXPECT_EQ(restored.sparse.space(), MemorySpace::Device);
        copy(restored.dense, u.dense);
        restored.expectSame(Executor::host());
    }
}

/// The host's memory is not current because `moved` has read the blocks.
TEST_F(SparseVectorsOnDevice, KernelsGoOnAfterMoved) {
    const SparseGrid grid = sparseGrids()[1];
    const auto pattern = SparsePattern::make(world(), grid.on(world()), grid.ghosts);
    SparseTwins u(pattern, 0, 6);
    const Device::Stream stream;
    u.sparse.toDevice();
    const SparseField<real> other = u.sparse.moved(pattern);
    scale(u.sparse, 2, {.on = Executor::device(stream)});
    stream.synchronize();
    u.sparse.toHost();
    scale(u.dense, 2);
    u.expectSame(Executor::host());
}

} // namespace
} // namespace DNDS::test
