// What goes on after something went wrong: peers are told, and the next exchange works; a restart goes on as if nothing
// had happened.

#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "DNDS/Sparse/SparseCase.hpp"
#include "DNDS/Sparse/SparseRows.hpp"
#include "DNDS/Transport/BoxToBox.hpp"
#include "DNDS/Transport/RowScatter.hpp"

#include <chrono>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>

namespace DNDS::test {
namespace {

CommunicatorView world() { return {MPI_COMM_WORLD}; }

const SparseGrid circle{"circle", {{"circle", Box({0}, {64}), {true}}}, {4}, {1}};

bool isPeer(const SparsePattern &pattern, int rank) {
    return std::ranges::any_of(pattern.peers(), [&](const PeerChannels &peer) { return peer.rank == rank; });
}

/// All blocks are there; component c of cell i is i + c + 1.
struct Full {
    std::shared_ptr<const SparsePattern> pattern = SparsePattern::make(world(), circle.on(world()), circle.ghosts);
    SparseField<real> u;
    std::unique_ptr<SparseFields> exchange;

    explicit Full(rowsize components) : u("u", pattern, {.components = components, .deallocationCount = 0}) {
        exchange = std::make_unique<SparseFields>(u);
        for (int b = 0; b < u.blocks(); ++b) {
            u.allocate(b);
            const auto v = u.view(b);
            for (index i = 0; i < v.extent(0); ++i)
                for (rowsize c = 0; c < components; ++c)
                    v(i, c) = static_cast<real>(v.global(i, 0) + c + 1);
        }
    }
    void expectGhosts() const {
        for (const int b : u.allocatedBlocks()) {
            const auto v = u.view(b);
            const rowsize last = u.components() - 1;
            EXPECT_EQ(v(-1, last), static_cast<real>((v.global(0, 0) + 63) % 64 + last + 1));
            EXPECT_EQ(v(v.extent(0), last), static_cast<real>(v.global(v.extent(0), 0) % 64 + last + 1));
        }
    }
};

/// The environment of this rank alone, while it lives.
struct WaitTimeout {
    explicit WaitTimeout(const char *seconds) { ::setenv("DNDS_WAIT_TIMEOUT", seconds, 1); }
    WaitTimeout(const WaitTimeout &) = delete;
    WaitTimeout &operator=(const WaitTimeout &) = delete;
    ~WaitTimeout() { ::unsetenv("DNDS_WAIT_TIMEOUT"); }
};

TEST(SparseRecovery, PeersAreToldOfASendThatFails) {
    if (world().size() == 1)
        GTEST_SKIP() << "there is no peer";
    constexpr double patience = 2;
    const bool mine = world().rank() == 0;
    std::optional<WaitTimeout> timeout;
    if (mine)
        timeout.emplace("2");
    Full full(1 << 16); // so much a message that it waits for its reader
    timeout.reset();
    world().barrier();
    SparseFields &exchange = *full.exchange;
    if (mine) {
        for (int k = 0; k < 2; ++k) { // both buffers are in use then
            exchange.startExchangeGhosts();
            exchange.abandon();
        }
        const auto begin = std::chrono::steady_clock::now();
        expectContains(messageOf<PeerError>([&] { exchange.startExchangeGhosts(); }), "take a message");
        const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
        EXPECT_GE(waited.count(), patience);
        EXPECT_LT(waited.count(), 1.8 * patience) << "once, not for each peer";
        EXPECT_FALSE(exchange.inFlight());
    }
    world().barrier();
    if (!mine) {
        for (int k = 0; k < 2; ++k)
            exchange.exchangeGhosts();
        if (isPeer(*full.pattern, 0))
            expectContains(messageOf<PeerError>([&] { exchange.exchangeGhosts(); }), "rank 0 could not send");
        else
            exchange.exchangeGhosts();
    }
    exchange.exchangeGhosts();
    full.expectGhosts();
}

TEST(SparseRecovery, AfterAPeerErrorTheNextExchangeBegins) {
    if (world().size() == 1)
        GTEST_SKIP() << "there is no peer";
    const bool mine = world().rank() == 0;
    std::optional<WaitTimeout> timeout;
    if (mine)
        timeout.emplace("0.3");
    Full full(3);
    timeout.reset();
    SparseFields &exchange = *full.exchange;
    exchange.exchangeGhosts();
    for (const bool polls : {false, true}) { // the others are late
        world().barrier();
        if (mine && polls) {
            exchange.startExchangeGhosts();
            expectContains(messageOf<PeerError>([&] {
                               while (!exchange.receiveBoundBufs()) {
                               }
                           }),
                           "send its blocks");
        } else if (mine) {
            expectContains(messageOf<PeerError>([&] { exchange.exchangeGhosts(); }), "send its blocks");
        }
        EXPECT_FALSE(exchange.inFlight());
        if (mine && full.u.blocks() > 0)
            full.u.allocate(0); // not: during an exchange
        world().barrier();
        if (!mine)
            exchange.exchangeGhosts();
        for (int k = 0; k < 2; ++k)
            exchange.exchangeGhosts(); // not: has sent already
        full.expectGhosts();
    }
}

TEST(SparseRecovery, ASkippedExchangeIsToldOnce) {
    if (world().size() == 1)
        GTEST_SKIP() << "there is no peer";
    Full full(3);
    SparseFields &exchange = *full.exchange;
    exchange.exchangeGhosts();
    const bool mine = world().rank() == 0;
    if (mine) { // begun, but nothing was sent to others
        exchange.sendBoundBufs(Bounds::Local);
        exchange.abandon();
    } else if (isPeer(*full.pattern, 0)) {
        expectContains(messageOf<StateError>([&] { exchange.exchangeGhosts(); }), "same exchanges");
    } else {
        exchange.exchangeGhosts();
    }
    for (int k = 0; k < 3; ++k)
        exchange.exchangeGhosts(); // all are in step again
    full.expectGhosts();
}

TEST(SparseRecovery, PeersAreToldOfADestroyedExchange) {
    const int last = world().size() - 1;
    for (const bool inFlight : {false, true}) {
        Full full(1000);
        full.exchange->exchangeGhosts();
        if (world().rank() == last) {
            if (inFlight)
                full.exchange->startExchangeGhosts();
            full.exchange.reset();
        } else {
            if (inFlight) // this one was sent
                full.exchange->exchangeGhosts();
            for (int k = 0; k < 5; ++k)
                if (isPeer(*full.pattern, last))
                    expectContains(messageOf<PeerError>([&] { full.exchange->exchangeGhosts(); }), "destroyed");
                else
                    full.exchange->exchangeGhosts();
        }
        world().barrier();
        full.exchange = std::make_unique<SparseFields>(full.u);
        full.exchange->exchangeGhosts();
        full.expectGhosts();
    }
}

TEST(SparseRecovery, NothingStaysOfDestroyedExchanges) {
    MPI_Comm mine = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &mine);
    {
        const auto pattern = SparsePattern::make(mine, circle.on(mine), circle.ghosts);
        for (int k = 0; k < 5; ++k) {
            SparseField<real> u("u", pattern);
            u.exchangeGhosts();
        }
        int parked = 1;
        for (int k = 0; k < 100 && parked == 1; ++k) {
            pattern->context()->progressParked();
            parked = world().allReduce(pattern->context()->hasParked() ? 1 : 0, MPI_MAX);
        }
        EXPECT_EQ(parked, 0);
    }
    MPI_Comm_free(&mine);
}

/// A plane between walls, with old and new state.
struct Walled {
    SparseGrid grid{"walls", {{"walls", Box({0, 0}, {12, 9}), {true, false}}}, {4, 3}, {1, 1}};
    std::shared_ptr<const SparsePattern> pattern = SparsePattern::make(world(), grid.on(world()), grid.ghosts);
    SparseField<real> whole = make();

    SparseField<real> make() const {
        return {"u",
                pattern,
                {.stages = 2, .allocationThreshold = 0.5, .deallocationThreshold = 0.1, .deallocationCount = 1}};
    }
};

TEST(SparseRecovery, OtherStagesAndWallsKeepNoBlock) {
    Walled run;
    for (int b = 0; b < run.whole.blocks(); ++b) {
        run.whole.allocate(b);
        const auto old = run.whole.view(b, 1);
        const auto now = run.whole.view(b);
        old(1, 1) = 7;
        for (const index j : {index(-1), now.extent(1)}) // at a wall these are ghosts that nobody else writes
            if (now.global(j, 1) < 0 || now.global(j, 1) >= 9)
                now(2, j) = 5;
        if (run.whole.block(b).block % 3 == 1)
            now(1, 1) = 0.3;
    }
    SparseField<real> restarted = run.make();
    setBlocks(restarted, sparseRows(run.whole));
    for (int k = 0; k < 3; ++k) {
        run.whole.exchangeGhosts();
        restarted.exchangeGhosts();
        for (int b = 0; b < run.whole.blocks(); ++b) {
            EXPECT_EQ(run.whole.isAllocated(b), run.whole.block(b).block % 3 == 1);
            EXPECT_EQ(restarted.isAllocated(b), run.whole.isAllocated(b)) << "block " << run.whole.block(b).block;
            EXPECT_EQ(restarted.emptyExchanges(b), run.whole.emptyExchanges(b));
        }
    }
}

TEST(SparseRecovery, GhostsThatCameKeepABlock) {
    const auto pattern = SparsePattern::make(world(), circle.on(world()), circle.ghosts);
    SparseField<real> u("u", pattern,
                        {.allocationThreshold = 0.5, .deallocationThreshold = 0.1, .deallocationCount = 1});
    if (const int b = pattern->localOf(3); b >= 0) {
        u.allocate(b);
        u.view(b)(3) = 1;
    }
    for (int k = 0; k < 4; ++k)
        u.exchangeGhosts();
    if (const int b = pattern->localOf(4); b >= 0) {
        EXPECT_TRUE(u.isAllocated(b));
    }
}

TEST(SparseElements, IntegersBeyondDoubles) {
    const auto isAbove = [](auto background, auto value, real threshold) {
        const SparseElementsOf<decltype(background)> elements(background);
        return elements.firstAbove(reinterpret_cast<const std::byte *>(&value), 1, threshold) == 0;
    };
    constexpr std::int64_t large = std::int64_t{1} << 53;
    EXPECT_TRUE(isAbove(large, large + 1, 0.5));
    EXPECT_FALSE(isAbove(large, large + 1, 1));
    EXPECT_TRUE(isAbove(large + 1, large - 1, 1.5));
    constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    EXPECT_TRUE(isAbove(least, most, 1e19));
    EXPECT_FALSE(isAbove(least, most, 1e20));
    EXPECT_TRUE(isAbove(std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(), 1e19));
    EXPECT_FALSE(isAbove(std::int8_t{-100}, std::int8_t{100}, 200));
    EXPECT_TRUE(isAbove(std::int8_t{-100}, std::int8_t{100}, 199.5));
}

TEST(SparseRecovery, FingerprintsKnowPeriods) {
    const auto of = [](bool periodic) {
        const SparseGrid grid{"line", {{"line", Box({0}, {12}), {periodic}}}, {4}, {1}};
        return blocksFingerprint(*grid.on(world()));
    };
    EXPECT_NE(of(true), of(false));
    EXPECT_EQ(of(true), of(true));
}

TEST(SparseRecovery, BlocksOfAlmostOneSizeAreRecycled) {
    SparseGrid uneven{"uneven", {}, {2000}, {1}};
    for (index k = 0; k < 24; ++k)
        uneven.spaces.push_back({fmt::format("piece {}", k), Box({0}, {1000 + (k * 7) % 11}), {true}});
    const auto pattern = SparsePattern::make(world(), uneven.on(world()), uneven.ghosts);
    SparseField<real> u("u", pattern);
    for (int b = 0; b < u.blocks(); ++b) {
        u.allocate(b);
        u.free(b);
    }
    EXPECT_LE(pattern->pool().use().pooledObjects, u.blocks() > 0 ? 1U : 0U);
    EXPECT_EQ(u.memoryBytes(), 0U);
}

TEST(SparsePattern, CopiesWithinARank) {
    for (const SparseGrid &grid : sparseGrids()) {
        SCOPED_TRACE(grid.name);
        const auto pattern = SparsePattern::make(world(), grid.on(world()), grid.ghosts);
        for (const std::size_t bytes : {std::size_t{1}, std::size_t{24}}) {
            const SparsePattern::Copies &copies = pattern->copies(bytes);
            const auto locals = pattern->localChannels();
            for (std::size_t k = 0; k < locals.size(); ++k) {
                const auto memoryOf = [&](const ChannelEnd &end) {
                    return std::vector<std::byte>(toSize(pattern->blocks()[toSize(end.block)].rows) * bytes);
                };
                std::vector<std::byte> from = memoryOf(locals[k].from);
                for (std::size_t i = 0; i < from.size(); ++i)
                    from[i] = static_cast<std::byte>(1 + i % 251);
                std::vector<std::byte> direct = memoryOf(locals[k].to);
                std::vector<std::byte> packed = direct;
                copies.copyLocal(k, locals[k], from.data(), direct.data());
                const RowGather &gather = copies.gathers[toSize(locals[k].from.shape)];
                std::vector<std::byte> between(gather.bytes());
                gather.gather(from.data(), between.data());
                copies.scatters[toSize(locals[k].to.shape)].scatter(between.data(), packed.data());
                ASSERT_TRUE(direct == packed) << "channel " << k;
                ASSERT_GT(gather.bytes(), 0U);
                EXPECT_FALSE(std::ranges::all_of(direct, [](std::byte b) { return b == std::byte{0}; }));
            }
        }
    }
}

} // namespace
} // namespace DNDS::test
