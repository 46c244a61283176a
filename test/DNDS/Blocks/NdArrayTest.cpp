#include "DNDS/Blocks/NdArray.hpp"

#include "DNDS/Blocks/BlockCase.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "support/World.hpp"

namespace DNDS::test {
namespace {

TEST(NdArray, TheShortWay) {
    NdArray<float> temperature("temperature");
    EXPECT_FALSE(temperature.isDistributed());
    temperature.decompose(world(), {40, 30}, 0, {}, {1, 1});
    EXPECT_TRUE(temperature.isDistributed());
    EXPECT_EQ(temperature.globalShape(), (std::vector<index>{40, 30}));
    const auto v = temperature.view();
    for (index i = 0; i < v.extent(0); ++i)
        for (index j = 0; j < v.extent(1); ++j)
            v(i, j) = static_cast<float>(100 * v.global(i, 0) + v.global(j, 1));
    temperature.exchangeGhosts();
    const auto now = std::as_const(temperature).view();
    for (index i = -1; i <= now.extent(0); ++i)
        for (index j = -1; j <= now.extent(1); ++j) {
            const index x = now.global(i, 0);
            const index y = now.global(j, 1);
            const bool exists = x >= 0 && x < 40 && y >= 0 && y < 30;
            EXPECT_EQ(now(i, j), exists ? static_cast<float>(100 * x + y) : 0.0F);
        }
    expectContains(temperature.describe(), "the best cut");
}

TEST(NdArray, TranslatesGlobalAndLocalIndices) {
    NdArray<double> a("a");
    a.decompose(world(), {23, 9, 4}, 0, {0, 0, 0}, {2, 1, 0}, {true, false});
    EXPECT_EQ(a.localCore().size(), world().rank() == 0 ? 23 * 9 * 4 : 0) << "no dimension is cut";
    a.decompose(world(), {23, 9, 4}, 0, {-1, 0, 0}, {2, 1, 0}, {true, false});
    const Box core = a.localCore();
    const Box extent = a.localExtent();
    EXPECT_EQ(extent, core.grow(GhostWidths{2, 1, 0}));
    EXPECT_EQ(world().allReduce(core.size(), MPI_SUM), 23 * 9 * 4);
    EXPECT_EQ(a.ownerOf(core.lower), world().rank());
    EXPECT_TRUE(a.isLocal(core.lower));
    EXPECT_FALSE(a.isLocal({extent.lower[0], extent.lower[1], extent.lower[2]})) << "a ghost";
    EXPECT_EQ(a.ownerOf({23, 0, 0}), -1);
    EXPECT_EQ(a.toLocal(core.lower), (IndexVector{0, 0, 0, 0}));
    EXPECT_EQ(a.toGlobal({-1, 0, 3, 0}), (IndexVector{core.lower[0] - 1, core.lower[1], core.lower[2] + 3, 0}));
    EXPECT_EQ(a.hostPointer(), &a.view()(-2, -1, 0));
}

TEST(NdArray, RanksWithoutCellsTakePart) {
    NdArray<std::int32_t> few("few");
    few.decompose(world(), {2, 1}, 0, {}, {1, 1}, {true, true});
    const auto v = few.view();
    EXPECT_EQ(v.size(), few.localCore().size());
    EXPECT_EQ(world().allReduce(v.size(), MPI_SUM), 2);
    if (v.size() == 0) {
        EXPECT_EQ(few.hostPointer(), nullptr);
        EXPECT_EQ(v.dims(), 2);
        EXPECT_EQ(v.extent(0) * v.extent(1), 0);
    }
    for (index n = 0; n < v.size(); ++n)
        v(v.indexOf(n, 0), v.indexOf(n, 1)) = static_cast<std::int32_t>(v.global(v.indexOf(n, 0), 0)) + 7;
    few.startExchangeGhosts();
    few.finishExchangeGhosts();
    if (v.size() > 0) {
        for (index i = -1; i <= v.extent(0); ++i)
            for (index j = -1; j <= v.extent(1); ++j)
                EXPECT_EQ(v(i, j), (v.global(i, 0) + 2) % 2 + 7);
    }
}

TEST(NdArray, ComponentsInsideAndOutside) {
    for (const ComponentOrder order : {ComponentOrder::Inside, ComponentOrder::Outside}) {
        NdArray<double> state("state");
        const GhostWidths ghosts{1, 2};
        state.decompose(world(), {.shape = {16, 12},
                                  .ghosts = order == ComponentOrder::Inside ? ghosts : ghosts.star(),
                                  .periodic = {true, false},
                                  .components = 5,
                                  .order = order});
        EXPECT_EQ(state.components(), 5);
        expectExchanges(state.field(), modulo(state.grid().spaces().front()));
    }
}

TEST(NdArray, MayBeCutAnew) {
    NdArray<double> a("a");
    a.decompose(world(), {8, 8}, 0, {}, {1, 1});
    fillField(a.field(), 1);
    a.exchangeGhosts();
    a.decompose(world(), {5, 9, 3}, 0, {0, -1, 0}, {0, 1, 1}, {false, true, true});
    fillField(a.field(), 2);
    a.exchangeGhosts();
    checkField(std::as_const(a).field(), 2, modulo(a.grid().spaces().front()));
    NdArray<double> moved = std::move(a);
    fillField(moved.field(), 3);
    moved.exchangeGhosts();
    checkField(std::as_const(moved).field(), 3, modulo(moved.grid().spaces().front()));
}

TEST(NdArray, ShapesWithoutCellsAreEmptyArrays) {
    for (const std::vector<index> &shape : {std::vector<index>{0}, {0, 5}, {4, 0, 3}, {0, 0, 0, 0}}) {
        NdArray<double> a("a");
        const Decomposition how{.shape = shape, .ghosts = GhostWidths::uniform(static_cast<int>(shape.size()), 1)};
        a.decompose(world(), how);
        EXPECT_TRUE(a.isDistributed());
        EXPECT_EQ(a.globalShape(), shape);
        EXPECT_EQ(a.dims(), static_cast<int>(shape.size()));
        EXPECT_TRUE(a.localCore().empty());
        EXPECT_EQ(a.ownerOf({}), -1);
        EXPECT_EQ(a.view().size(), 0);
        a.exchangeGhosts();
        expectContains(a.describe(), "0 cells");
    }
}

TEST(NdArray, ErrorsAreThrownOnAllRanks) {
    NdArray<double> a("a");
    expectContains(messageOf<StateError>([&] { (void)a.view(); }), "call decompose first");
    EXPECT_THROW(a.exchangeGhosts(), StateError);
    messageOnAll<ArgumentError>([&] { a.decompose(world(), {4, 4, 4, 4, 4}); });
    messageOnAll<ArgumentError>([&] { a.decompose(world(), {}); });
    messageOnAll<ArgumentError>([&] { a.decompose(world(), {4, -1}); });
    messageOnAll<ArgumentError>([&] { a.decompose(world(), {4, 4}, world().size() + 1); });
    messageOnAll<ArgumentError>([&] { a.decompose(world(), {4, 4}, 0, {}, {1, -1}); });
    messageOnAll<ArgumentError>([&] { a.decompose(world(), {.shape = {4, 4}, .components = 0}); });
    messageOnAll<ArgumentError>([&] { a.decompose(world(), {.shape = {4, 4}, .components = -3}); });
    EXPECT_FALSE(a.isDistributed());
    a.decompose(world(), {4, 4});
    EXPECT_EQ(a.localExtent(), a.localCore());
    a.exchangeGhosts();
}

TEST(NdArray, ArraysOfOneShapeLieAlike) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    NdArray<double> field("field");
    field.decompose(comm, {.shape = {24, 24, 24}, .ghosts = GhostWidths::uniform(3, 2), .components = 5});
    NdArray<std::uint8_t> mask("mask");
    mask.decompose(comm, {24, 24, 24});
    EXPECT_EQ(mask.localCore(), field.localCore());
}

} // namespace
} // namespace DNDS::test
