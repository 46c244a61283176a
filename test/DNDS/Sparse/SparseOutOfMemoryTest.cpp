// One rank alone has no memory for the n-th allocation: in set-up all ranks throw; in an exchange that rank does, its
// peers are told, and all go on. This source replaces operator new of the program (support/FailingAllocations.hpp).

#include "DNDS/Sparse/SparseCase.hpp"

#include "support/FailingAllocations.hpp"

#include <cstdlib>
#include <optional>

namespace DNDS::test {
namespace {

CommunicatorView world() { return {MPI_COMM_WORLD}; }

const SparseGrid torus{"torus", {{"torus", Box({0, 0}, {24, 16}), {true, true}}}, {4, 4}, {1, 1}};

/// What exchanges that are gone have left behind is freed now, not while allocations are counted: freeing may do
/// without memory. What waits for a set-up that failed on another rank stays for ever. Collective.
void freeWhatIsLeft() {
    const auto context = CommunicatorContext::of(world());
    for (int turn = 0; turn < 1000; ++turn) {
        context->progressParked();
        if (world().allReduce(context->hasParked() ? 1 : 0, MPI_MAX) == 0)
            return;
    }
}

TEST(SparseOutOfMemory, EndsTheSetUpOnAllRanks) {
    if (world().size() > 4)
        GTEST_SKIP() << "runs with 4 ranks tell it, and faster";
    const auto grid = torus.on(world());
    failEverywhere(40, [&] { (void)SparsePattern::make(world(), grid, torus.ghosts); });
    const auto pattern = SparsePattern::make(world(), grid, torus.ghosts);
    SparseField<real> u("u", pattern);
    SparseField<float> v("v", pattern, {.components = 3});
    // Where there is no memory to remember a destroyed one that peers still send to, it is kept for ever instead.
    failEverywhere(
        40,
        [&] {
            SparseFields both("both", {&u, &v});
        },
        Outcome::ThrowsOrDoesWithout);
    u.exchangeGhosts();
}

/// A field of which some blocks are there, and the exchange wants their neighbours. Made anew for each failure.
struct Wanting {
    SparseField<real> u;
    SparseFields exchange{u};

    explicit Wanting(const std::shared_ptr<const SparsePattern> &pattern)
        : u("u", pattern, {.components = 2, .deallocationCount = 0}) {
        pattern->pool().trim();
        for (int b = 0; b < u.blocks(); ++b)
            if (const index number = u.block(b).block; number % 5 == 0) {
                u.allocate(b);
                const auto v = u.view(b);
                for (index n = 0; n < v.size(); ++n)
                    v(v.indexOf(n, 0), v.indexOf(n, 1), 1) = static_cast<real>(n + number);
            }
    }
    /// Two exchanges with all that went wrong before out of the way; returns whether one threw.
    bool exchangeAndTell() {
        try {
            exchange.exchangeGhosts();
        } catch (const PeerError &) {
            return true;
        }
        return false;
    }
};

TEST(SparseOutOfMemory, IsToldInExchanges) {
    if (world().size() > 4)
        GTEST_SKIP() << "runs with 4 ranks tell it, and faster";
    const auto pattern = SparsePattern::make(world(), torus.on(world()), torus.ghosts);
    Wanting reference(pattern);
    for (int k = 0; k < 4; ++k)
        reference.exchange.exchangeGhosts();
    for (const int victim : {0, world().size() - 1}) {
        std::int64_t count = 0;
        {
            Wanting all(pattern);
            allocations = 0;
            all.exchange.exchangeGhosts();
            count = world().allReduce(world().rank() == victim ? allocations : 0, MPI_MAX);
        }
        ASSERT_GT(count, 0);
        for (const std::int64_t n : chosen(count, 30)) {
            SCOPED_TRACE(testing::Message() << "allocation " << n << " of " << count << " of rank " << victim);
            freeWhatIsLeft();
            Wanting one(pattern);
            failed = false;
            allocations = 0;
            failsAt = world().rank() == victim ? n : 0;
            bool threw = false;
            try {
                one.exchange.exchangeGhosts();
            } catch (const Error &) {
                threw = true;
            } catch (const std::bad_alloc &) {
                threw = true;
            }
            failsAt = 0;
            const bool told = one.exchangeAndTell();
            if (world().rank() == victim) {
                EXPECT_EQ(threw, failed);
                EXPECT_FALSE(told);
            }
            const int victims = world().allReduce(world().rank() == victim && threw ? 1 : 0, MPI_MAX);
            const int informed = world().allReduce(world().rank() != victim && (threw || told) ? 1 : 0, MPI_MAX);
            EXPECT_EQ(informed, world().size() > 1 ? victims : 0) << "peers learn of it";
            for (int k = 0; k < 2; ++k)
                one.exchange.exchangeGhosts(); // the rest of what spreads from block to block
            ASSERT_FALSE(one.exchange.inFlight());
            for (int b = 0; b < one.u.blocks(); ++b)
                if (reference.u.isAllocated(b)) {
                    ASSERT_TRUE(one.u.isAllocated(b)) << b;
                    EXPECT_TRUE(sameBits(elementsOf(std::as_const(one.u).view(b)),
                                         elementsOf(std::as_const(reference.u).view(b))));
                }
        }
    }
}

TEST(SparseOutOfMemory, WhileReceivingIsAnErrorThatCanBeMended) {
    if (world().size() > 4)
        GTEST_SKIP() << "runs with 4 ranks tell it, and faster";
    const auto pattern = SparsePattern::make(world(), torus.on(world()), torus.ghosts);
    Wanting reference(pattern);
    reference.exchange.exchangeGhosts();
    const bool mine = world().rank() == world().size() - 1;
    int without = 0; // runs in which nothing failed
    for (std::int64_t n = 1; without < 2; ++n) {
        SCOPED_TRACE(testing::Message() << "allocation " << (n + 1) / 2 << (n % 2 == 0 ? " and all others" : ""));
        freeWhatIsLeft();
        Wanting one(pattern);
        one.exchange.startExchangeGhosts();
        failed = false;
        bool threw = false;
        if (mine) {
            allocations = 0;
            failsAt = (n + 1) / 2;
            failsOn = n % 2 == 0;
            try {
                one.exchange.finishExchangeGhosts();
            } catch (const MemoryError &) {
                threw = true;
            }
            failsAt = 0;
            failsOn = false;
            EXPECT_EQ(threw, failed);
            EXPECT_EQ(one.exchange.inFlight(), threw);
        }
        if (one.exchange.inFlight())
            one.exchange.finishExchangeGhosts();
        for (int b = 0; b < one.u.blocks(); ++b) {
            ASSERT_EQ(one.u.isAllocated(b), reference.u.isAllocated(b)) << b;
            if (one.u.isAllocated(b)) {
                EXPECT_TRUE(
                    sameBits(elementsOf(std::as_const(one.u).view(b)), elementsOf(std::as_const(reference.u).view(b))));
            }
        }
        without += world().allReduce(failed ? 1 : 0, MPI_MAX) == 0 ? 1 : 0;
        ASSERT_LT(n, 10'000);
        EXPECT_TRUE(n > 1 || without == 0) << "something is allocated";
    }
}

TEST(SparseOutOfMemory, MemoryThatComesBackKeepsRanksInStep) {
    if (world().size() == 1)
        GTEST_SKIP() << "nothing is received";
    const auto pattern = SparsePattern::make(world(), torus.on(world()), torus.ghosts);
    ::setenv("DNDS_TRANSPORT", "packed", 1); // what stays on the node needs no memory where it is received
    Wanting one(pattern);
    ::unsetenv("DNDS_TRANSPORT");
    const bool mine = world().rank() == world().size() - 1 && !pattern->peers().empty();
    one.exchange.startExchangeGhosts();
    if (mine) {
        allocations = 0;
        failsAt = 1;
        EXPECT_THROW(while (!one.exchange.receiveBoundBufs()){}, MemoryError);
        failsAt = 0;
        while (!one.exchange.receiveBoundBufs()) {
        }
        EXPECT_THROW(one.exchange.startExchangeGhosts(), StateError) << "this one can be completed";
        one.exchange.setBounds();
    } else {
        one.exchange.finishExchangeGhosts();
    }
    for (int k = 0; k < 3; ++k)
        one.exchange.exchangeGhosts(); // nobody was left behind
}

} // namespace
} // namespace DNDS::test
