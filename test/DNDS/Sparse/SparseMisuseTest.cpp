// Misuse outside of exchanges: ranks that differ, invalid options, destroyed fields.

#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "DNDS/Sparse/SparseCase.hpp"
#include "DNDS/Sparse/SparseReductions.hpp"

#include "support/World.hpp"

namespace DNDS::test {
namespace {

const SparseGrid ring{"ring", {{"ring", Box({0}, {64}), {true}}}, {4}, {1}};

TEST(SparseMisuse, RanksDiffer) {
    const auto pattern = SparsePattern::make(world(), ring.on(world()), ring.ghosts);
    if (world().size() == 1)
        return;
    const bool other = world().rank() == world().size() - 1;
    SparseField<real> a("a", pattern, {.allocationThreshold = other ? 1e-3 : 1e-4});
    expectContains(messageOnAll<StateError>([&] { a.exchangeGhosts(); }), "0.0001");
    SparseField<real> b("b", pattern, {}, other ? 0.0 : -0.0);
    messageOnAll<StateError>([&] { b.exchangeGhosts(); });
    SparseField<real> c("c", pattern);
    SparseField<real> d("d", pattern);
    expectContains(messageOnAll<StateError>([&] {
                       SparseFields both("both", other ? std::vector<SparseFieldCore *>{&c}
                                                       : std::vector<SparseFieldCore *>{&c, &d});
                   }),
                   "rank");
    const auto grid = ring.on(world());
    messageOnAll<StateError>([&] { SparsePattern::make(world(), grid, other ? GhostWidths{2} : GhostWidths{1}); });
    c.exchangeGhosts(); // all is well
}

TEST(SparseMisuse, BadOptions) {
    const auto pattern = SparsePattern::make(world(), ring.on(world()), ring.ghosts);
    const auto make = [&](const SparseFieldOptions &options, real value) {
        SparseField<real> made("u", pattern, options, value);
    };
    EXPECT_THROW(make({.components = 0}, 0), ArgumentError);
    EXPECT_THROW(make({.stages = 0}, 0), ArgumentError);
    expectContains(
        messageOf<ArgumentError>([&] { make({.allocationThreshold = 1e-7, .deallocationThreshold = 1e-6}, 0); }),
        "1e-07");
    EXPECT_THROW(make({.deallocationCount = -1}, 0), ArgumentError);
    expectContains(messageOf<ArgumentError>([&] { make({.components = 1 << 30, .stages = 1 << 24}, 0); }),
                   "too many bytes");
    const real nan = std::numeric_limits<real>::quiet_NaN();
    EXPECT_THROW(make({.allocationThreshold = 1}, nan), ArgumentError);
    EXPECT_NO_THROW(make({}, nan));
    EXPECT_THROW(SparseField<real>("u", nullptr), ArgumentError);
    SparseField<real> u("u", pattern);
    const auto second = SparsePattern::make(world(), ring.on(world()), ring.ghosts);
    SparseField<real> v("v", second);
    EXPECT_THROW(SparseFields("both", {&u, &v}), ArgumentError);
    EXPECT_THROW(SparseFields("both", {&u, &u}), ArgumentError);
}

TEST(SparseMisuse, NullAndMovedFromFields) {
    const auto pattern = SparsePattern::make(world(), ring.on(world()), ring.ghosts);
    SparseField<real> u("u", pattern), gone("gone", pattern);
    const SparseField<real> taken(std::move(gone));
    const auto make = [&](std::vector<SparseFieldCore *> fields) { SparseFields both("both", fields); };
    EXPECT_THROW(make({}), ArgumentError);
    messageOnAll<ArgumentError>([&] { make({world().rank() == 0 ? nullptr : &u, &u}); });
    messageOnAll<ArgumentError>([&] { make({&u, &gone}); }); // NOLINT: on purpose
    u.exchangeGhosts();
}

TEST(SparseMisuse, AMovedFromFieldSaysSo) {
    const auto pattern = SparsePattern::make(world(), ring.on(world()), ring.ghosts);
    SparseField<real> gone("gone", pattern);
    SparseField<real> u(std::move(gone));
    const auto expectSaid = [](auto &&call) { // NOLINTBEGIN: all of it on purpose
        expectContains(messageOf<StateError>([&] { (void)call(); }), "was moved from");
    };
    expectSaid([&] { return gone.blocks(); });
    expectSaid([&] { return gone.name(); });
    expectSaid([&] { return gone.pattern(); });
    expectSaid([&] { return gone.options(); });
    expectSaid([&] { return gone.defaultValue(); });
    expectSaid([&] { return gone.allocatedBlocks(); });
    expectSaid([&] { return gone.isAllocated(0); });
    expectSaid([&] { return gone.allocate(0); });
    expectSaid([&] { return gone.free(0); });
    expectSaid([&] { return gone.view(0).size(); });
    expectSaid([&] { return gone.generation(); });
    expectSaid([&] { return gone.place(0); });
    expectSaid([&] { return gone.memoryBytes(); });
    expectSaid([&] { return gone.space(); });
    expectSaid([&] { return gone.emptyExchanges(0); });
    expectSaid([&] { return gone.keep(0); });
    expectSaid([&] { gone.exchangeGhosts(); });
    expectSaid([&] { gone.swapStages(0, 0); });
    expectSaid([&] { gone.toHost(); });
    expectSaid([&] { gone.onFree({}); });
    expectSaid([&] { return &gone.rows(); });
    expectSaid([&] { gone.markWritten(); });
    expectSaid([&] { return sums(gone); });
    expectSaid([&] { return norms2(gone); });
    expectSaid([&] { return extrema(gone); });
    expectSaid([&] { const DroppedSums<real> dropped(gone); }); // NOLINTEND
    u.exchangeGhosts();
    gone = std::move(u);
    gone.exchangeGhosts();
}

TEST(SparseMisuse, ACommunicatorFreedDuringAnExchange) {
    MPI_Comm mine = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &mine);
    const auto pattern = SparsePattern::make(mine, ring.on(mine), ring.ghosts);
    SparseField<real> u("u", pattern), idle("idle", pattern);
    idle.exchangeGhosts();
    u.exchange().startExchangeGhosts();
    world().barrier();
    MPI_Comm_free(&mine);
    EXPECT_THROW((void)u.exchange().receiveBoundBufs(), StateError);
    EXPECT_THROW(u.exchange().setBounds(), StateError);
    EXPECT_THROW(u.exchange().finishExchangeGhosts(), StateError);
    expectContains(messageOf<StateError>([&] { idle.exchangeGhosts(); }), "freed");
}

TEST(SparseMisuse, AbsentBlocksHaveNoView) {
    const auto pattern = SparsePattern::make(world(), ring.on(world()), ring.ghosts);
    SparseField<real> u("u", pattern);
    if (u.blocks() > 0)
        expectContains(messageOf<StateError>([&] { (void)u.view(0); }), "not allocated");
    EXPECT_THROW((void)u.view(u.blocks()), IndexError);
    EXPECT_THROW((void)u.isAllocated(-1), IndexError);
}

} // namespace
} // namespace DNDS::test
