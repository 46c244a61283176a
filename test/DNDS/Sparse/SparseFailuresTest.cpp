// What goes wrong: memory that ends, ranks that differ, calls out of order.

#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "DNDS/Sparse/SparseCase.hpp"
#include "DNDS/Sparse/SparseReductions.hpp"

namespace DNDS::test {
namespace {

CommunicatorView world() { return {MPI_COMM_WORLD}; }

const SparseGrid ring{"ring", {{"ring", Box({0}, {64}), {true}}}, {4}, {1}};

/// Every second block is there, so that the others are wanted.
struct Comb {
    std::shared_ptr<const SparsePattern> pattern = SparsePattern::make(world(), ring.on(world()), ring.ghosts);
    SparseField<real> u{"u", pattern, {.deallocationCount = 0}};

    Comb() {
        for (int b = 0; b < u.blocks(); ++b)
            if (u.block(b).block % 2 == 0) {
                u.allocate(b);
                for (index i = 0; i < u.view(b).extent(0); ++i)
                    u.view(b)(i) = 1 + static_cast<real>(u.view(b).global(i, 0));
            }
    }
    bool hasAll() const { return static_cast<int>(u.allocatedBlocks().size()) == u.blocks(); }
    void expectGhosts() const {
        for (const int b : u.allocatedBlocks()) {
            const auto v = u.view(b);
            if (u.block(b).block % 2 == 1) {
                EXPECT_EQ(v(-1), static_cast<real>(v.global(0, 0)));
                EXPECT_EQ(v(v.extent(0)), static_cast<real>((v.global(v.extent(0), 0)) % 64 + 1));
            }
        }
    }
};

TEST(SparseFailures, ExchangeIsCompletedWhenThereIsRoom) {
    Comb comb;
    const int last = world().size() - 1;
    const bool mine = world().rank() == last && comb.u.blocks() > 1;
    BlockPool &pool = comb.pattern->pool();
    if (mine)
        pool.setLimit(pool.use().live);
    comb.u.exchange(); // collective
    if (mine) {
        expectContains(messageOf<MemoryError>([&] { comb.u.exchangeGhosts(); }), "limit");
        EXPECT_FALSE(comb.hasAll());
        EXPECT_EQ(pool.use().live, comb.u.memoryBytes()) << "what was reserved went back";
        EXPECT_THROW(comb.u.allocate(comb.u.blocks() - 1), StateError) << "the exchange is not over";
        EXPECT_THROW(comb.u.exchange().finishExchangeGhosts(), MemoryError);
        pool.setLimit(std::size_t{1} << 30);
        comb.u.exchange().finishExchangeGhosts();
    } else {
        comb.u.exchangeGhosts();
    }
    EXPECT_TRUE(comb.hasAll());
    comb.expectGhosts();
    comb.u.exchangeGhosts();
    comb.expectGhosts();
}

TEST(SparseFailures, PeersAreToldOfWhatWasLost) {
    Comb comb;
    const int last = world().size() - 1;
    const bool mine = world().rank() == last && comb.u.blocks() > 1;
    BlockPool &pool = comb.pattern->pool();
    comb.u.exchange();
    if (mine) {
        pool.setLimit(pool.use().live);
        EXPECT_THROW(comb.u.exchangeGhosts(), MemoryError);
        pool.setLimit(std::size_t{1} << 30);
    } else {
        comb.u.exchangeGhosts();
    }
    const bool told = std::ranges::any_of(comb.pattern->peers(), [&](const PeerChannels &p) { return p.rank == last; });
    const int failed = world().allReduce(mine ? 1 : 0, MPI_MAX);
    if (told && failed == 1)
        expectContains(messageOf<PeerError>([&] { comb.u.exchangeGhosts(); }), "could not complete");
    else
        comb.u.exchangeGhosts();
    EXPECT_TRUE(comb.hasAll()) << "the next exchange brings what is still there";
    comb.expectGhosts();
    comb.u.exchangeGhosts();
    comb.expectGhosts();
}

TEST(SparseFailures, RanksDiffer) {
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

TEST(SparseFailures, BadOptions) {
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

TEST(SparseFailures, SizesBeyondAllMemory) {
    const auto pattern = SparsePattern::make(world(), ring.on(world()), ring.ghosts);
    SparseFieldOptions options{.components = 1 << 30, .stages = 1 << 24};
    expectContains(messageOf<ArgumentError>([&] { SparseField<real> made("u", pattern, options); }), "too many bytes");
}

TEST(SparseFailures, NullAndMovedFromFields) {
    const auto pattern = SparsePattern::make(world(), ring.on(world()), ring.ghosts);
    SparseField<real> u("u", pattern), gone("gone", pattern);
    const SparseField<real> taken(std::move(gone));
    const auto make = [&](std::vector<SparseFieldCore *> fields) { SparseFields both("both", fields); };
    EXPECT_THROW(make({}), ArgumentError);
    messageOnAll<ArgumentError>([&] { make({world().rank() == 0 ? nullptr : &u, &u}); });
    messageOnAll<ArgumentError>([&] { make({&u, &gone}); }); // NOLINT: on purpose
    u.exchangeGhosts();
}

TEST(SparseFailures, AMovedFromFieldSaysSo) {
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
    expectSaid([&] { return gone.blocksView<DeviceBackend::Host>().size(); });
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

TEST(SparseFailures, OneExchangeOfAFieldAtATime) {
    Comb comb;
    SparseFields first("first", {&comb.u}), second("second", {&comb.u});
    first.startExchangeGhosts();
    expectContains(messageOf<StateError>([&] { second.startExchangeGhosts(); }), "'u' is in another exchange");
    first.finishExchangeGhosts();
    second.exchangeGhosts();
    comb.expectGhosts();
}

TEST(SparseFailures, AnExchangeMayBeGivenUp) {
    Comb comb;
    comb.u.exchange().startExchangeGhosts();
    comb.u.exchange().abandon();
    EXPECT_FALSE(comb.u.exchange().inFlight());
    if (comb.u.blocks() > 0)
        comb.u.allocate(comb.u.blocks() - 1); // it is no longer locked
    comb.u.exchangeGhosts();
    EXPECT_TRUE(comb.hasAll());
    comb.expectGhosts();
}

/// Nobody receives; nobody waits for that.
TEST(SparseFailures, ManyExchangesMayBeGivenUpInARow) {
    Comb comb;
    for (int k = 0; k < 20; ++k) {
        comb.u.exchange().startExchangeGhosts();
        comb.u.exchange().abandon();
    }
    comb.u.exchangeGhosts();
    EXPECT_TRUE(comb.hasAll());
    comb.expectGhosts();
}

TEST(SparseFailures, ACommunicatorFreedDuringAnExchange) {
    MPI_Comm mine = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &mine);
    SparseField<real> u("u", SparsePattern::make(mine, ring.on(mine), ring.ghosts));
    u.exchange().startExchangeGhosts();
    world().barrier();
    MPI_Comm_free(&mine);
    EXPECT_THROW((void)u.exchange().receiveBoundBufs(), StateError);
    EXPECT_THROW(u.exchange().setBounds(), StateError);
    EXPECT_THROW(u.exchange().finishExchangeGhosts(), StateError);
}

TEST(SparseFailures, StepsOutOfOrder) {
    Comb comb;
    SparseFields &exchange = comb.u.exchange();
    EXPECT_THROW(exchange.receiveBoundBufs(), StateError);
    EXPECT_THROW(exchange.setBounds(), StateError);
    EXPECT_THROW(exchange.finishExchangeGhosts(), StateError);
    exchange.startExchangeGhosts();
    EXPECT_THROW(exchange.startExchangeGhosts(), StateError) << "a skipped receive would shift all that follow";
    if (comb.u.blocks() > 0) {
        EXPECT_THROW(comb.u.allocate(comb.u.blocks() - 1), StateError);
        EXPECT_THROW(comb.u.swapStages(0, 1), IndexError);
    }
    exchange.setBounds(Bounds::Local);
    EXPECT_THROW(exchange.setBounds(Bounds::Local), StateError);
    exchange.finishExchangeGhosts();
    EXPECT_THROW(exchange.finishExchangeGhosts(), StateError);
    comb.expectGhosts();
}

TEST(SparseFailures, StagesThatOneRankAloneHasSwapped) {
    const auto pattern = SparsePattern::make(world(), ring.on(world()), ring.ghosts);
    SparseField<real> u("u", pattern, {.stages = 2, .deallocationCount = 0}), v("v", pattern, {.stages = 3});
    SparseFields both("both", {&v, &u});
    for (int b = 0; b < u.blocks(); ++b) {
        u.allocate(b);
        for (index i = 0; i < u.view(b).extent(0); ++i) {
            u.view(b)(i) = 1;
            u.view(b, 1)(i) = 2;
        }
    }
    both.exchangeGhosts();
    const bool mine = world().rank() == 0;
    if (mine)
        u.swapStages(0, 1);
    const auto peers = pattern->peers();
    const bool differs =
        mine ? !peers.empty() : std::ranges::any_of(peers, [](const PeerChannels &p) { return p.rank == 0; });
    for (int k = 0; k < 2; ++k)
        if (differs)
            expectContains(messageOf<StateError>([&] { both.exchangeGhosts(); }), "call swapStages() alike");
        else
            both.exchangeGhosts();
    if (!mine)
        u.swapStages(0, 1);
    v.swapStages(1, 2); // not what is exchanged
    both.exchangeGhosts();
    for (int b = 0; b < u.blocks(); ++b) {
        EXPECT_EQ(u.view(b)(-1), 2);
        EXPECT_EQ(u.view(b)(u.view(b).extent(0)), 2);
    }
}

TEST(SparseFailures, AbsentBlocksHaveNoView) {
    const auto pattern = SparsePattern::make(world(), ring.on(world()), ring.ghosts);
    SparseField<real> u("u", pattern);
    if (u.blocks() > 0)
        expectContains(messageOf<StateError>([&] { (void)u.view(0); }), "not allocated");
    EXPECT_THROW((void)u.view(u.blocks()), IndexError);
    EXPECT_THROW((void)u.isAllocated(-1), IndexError);
}

TEST(SparseFailures, CommunicatorFreed) {
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    const auto pattern = SparsePattern::make({copy}, ring.on({copy}), ring.ghosts);
    SparseField<real> u("u", pattern);
    u.exchangeGhosts();
    MPI_Comm_free(&copy);
    expectContains(messageOf<StateError>([&] { u.exchangeGhosts(); }), "freed");
}

TEST(SparseFailures, DestroyedInFlight) {
    for (int k = 0; k < 20; ++k) {
        Comb comb;
        comb.u.exchange().startExchangeGhosts();
    }
    Comb comb;
    comb.u.exchangeGhosts();
    comb.expectGhosts();
}

} // namespace
} // namespace DNDS::test
