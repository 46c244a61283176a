#include "DNDS/Sparse/SparseRows.hpp"

#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "DNDS/Sparse/SparseCase.hpp"
#include "support/World.hpp"

namespace DNDS::test {
namespace {

TEST(SparseDense, ThereAndBack) {
    for (const SparseGrid &grid : sparseGrids())
        for (const ComponentOrder order : {ComponentOrder::Inside, ComponentOrder::Outside}) {
            SCOPED_TRACE(grid.name);
            const auto blocks = grid.on(world());
            BlockField<real> dense("dense", world(), blocks, {.ghosts = {1}, .components = 2, .order = order});
            BlockField<real> again("again", world(), blocks, {.components = 2, .order = order});
            SparseField<real> sparse("sparse", SparsePattern::make(world(), blocks, grid.ghosts),
                                     {.components = 2, .allocationThreshold = 1}, 0.5);
            for (int b = 0; b < dense.blocks(); ++b) {
                const auto number = static_cast<std::uint64_t>(dense.block(b).block);
                const std::uint64_t what = drawn(3, {number}); // nothing, little, much
                const auto u = dense.view(b);
                for (index n = 0; n < u.size(); ++n) {
                    IndexVector cell{};
                    for (int d = 0; d < u.dims(); ++d)
                        cell[toSize(d)] = u.indexOf(n, d);
                    for (rowsize c = 0; c < 2; ++c)
                        at(u, cell, c) = what == 0 ? 0.5 : what == 1 ? 0.75 : static_cast<real>(2 + n + c);
                }
            }
            fromDense(dense, sparse);
            toDense(sparse, again);
            for (int b = 0; b < dense.blocks(); ++b) {
                const std::uint64_t what = drawn(3, {static_cast<std::uint64_t>(dense.block(b).block)});
                EXPECT_EQ(sparse.isAllocated(b), what == 2);
                const auto before = std::as_const(dense).view(b);
                const auto after = std::as_const(again).view(b);
                Detail::forEachPair(before, after,
                                    [&](const real &old, const real &now) { EXPECT_EQ(now, what == 1 ? 0.5 : old); });
            }
        }
}

TEST(SparseDense, OfOtherGrids) {
    const auto grids = sparseGrids();
    BlockField<real> dense("dense", world(), grids[1].on(world()), {});
    SparseField<real> sparse("sparse", SparsePattern::make(world(), grids[2].on(world()), grids[2].ghosts));
    expectContains(messageOf<LayoutError>([&] { toDense(sparse, dense); }), "different grids");
    EXPECT_THROW(fromDense(dense, sparse), LayoutError);
}

} // namespace
} // namespace DNDS::test
