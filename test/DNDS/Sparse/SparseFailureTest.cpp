// One rank fails in an exchange, in each way and by each carrier: all ranks end with the right error, and after a
// recovery exchanges are right to the bit. This source replaces operator new of the program
// (support/FailingAllocations.hpp).

#include "DNDS/Sparse/SparseCase.hpp"

#include "DNDS/Mpi/Survival.hpp"
#include "support/FailingAllocations.hpp"
#include "support/ScopedVariable.hpp"
#include "support/World.hpp"

#include <memory>

namespace DNDS::test {
namespace {

const SparseGrid torus{"torus", {{"torus", Box({0, 0}, {24, 16}), {true, true}}}, {4, 4}, {1, 1}};

/// A communicator, and a field of which some blocks are there, so that the exchange wants their neighbours.
struct Case {
    Communicator owner = Communicator::duplicate(MPI_COMM_WORLD);
    std::shared_ptr<CommunicatorContext> context = CommunicatorContext::of(owner.view());
    std::shared_ptr<const SparsePattern> pattern =
        SparsePattern::make(owner.view(), torus.on(owner.view()), torus.ghosts);
    SparseField<real> expected = make();
    SparseField<real> u = make();
    std::unique_ptr<SparseFields> exchange = std::make_unique<SparseFields>(u);
    std::unique_ptr<SparseFields> other = std::make_unique<SparseFields>("other", std::array<SparseFieldCore *, 1>{&u});

    Case() {
        for (int k = 0; k < 3; ++k)
            expected.exchangeGhosts();
    }
    SparseField<real> make() const {
        SparseField<real> field("u", pattern, {.components = 2, .stages = 2, .deallocationCount = 0});
        for (int b = 0; b < field.blocks(); ++b)
            if (const index number = field.block(b).block; number % 5 == 0) {
                field.allocate(b);
                const auto v = field.view(b);
                for (index n = 0; n < v.size(); ++n)
                    v(v.indexOf(n, 0), v.indexOf(n, 1), 1) = static_cast<real>(n + number);
            }
        return field;
    }
    /// Leaves something in the ghosts of all blocks.
    static void deposit(SparseField<real> &field) {
        for (const int b : field.allocatedBlocks())
            for (const index j : {-1, 4})
                at(field.view(b), {0, j}, 0) = 1 + static_cast<real>(field.block(b).block);
    }
    void exchangeAll() const {
        for (int k = 0; k < 3; ++k)
            exchange->exchangeGhosts();
    }
    void expectEqual() {
        ASSERT_EQ(u.allocatedBlocks(), expected.allocatedBlocks());
        const bool there = u.space() == MemorySpace::Device;
        u.toHost();
        for (const int b : u.allocatedBlocks())
            EXPECT_TRUE(sameBits(elementsOf(std::as_const(u).view(b)), elementsOf(std::as_const(expected).view(b))));
        if (there)
            u.toDevice();
    }
};

/// An action of one rank in place of an exchange.
struct Fault {
    const char *name;
    const char *why;  ///< in the errors of all ranks
    bool ranksDiffer; ///< any of them may be the first to notice
    void (*fail)(Case &);
};

const Fault faults[] = {
    {"StartsTwice", "sendBoundBufs makes no sense", false,
     [](Case &now) {
         now.exchange->startExchangeGhosts();
         now.exchange->startExchangeGhosts();
     }},
    {"SetsTooEarly", "setBounds makes no sense", false, [](Case &now) { now.exchange->setBounds(); }},
    {"ReceivesTooEarly", "receiveBoundBufs makes no sense", false,
     [](Case &now) { (void)now.exchange->receiveBoundBufs(); }},
    {"BeginsAnotherOne", "'u' is in another exchange", false,
     [](Case &now) {
         now.exchange->startExchangeGhosts();
         now.other->startExchangeGhosts();
     }},
    {"HasNoRoomForBlocks", "limit", false,
     [](Case &now) {
         now.pattern->pool().setLimit(now.pattern->pool().use().live);
         now.exchange->exchangeGhosts();
     }},
    {"HasNoMemoryToSend", "std::bad_alloc", false,
     [](Case &now) {
         allocations = 0;
         failsAt = 1;
         now.exchange->exchangeGhosts();
         failsAt = 0; // none was needed
     }},
    {"AbandonsIt", "the program has abandoned it", false,
     [](Case &now) {
         now.exchange->startExchangeGhosts();
         now.exchange->abandon();
         throw DataError("the program has abandoned it");
     }},
    {"DestroysIt", "its SparseFields was destroyed in flight", false,
     [](Case &now) {
         now.exchange->startExchangeGhosts();
         now.exchange.reset();
         throw DataError("its SparseFields was destroyed in flight");
     }},
    {"SwapsStages", "call swapStages() alike", true,
     [](Case &now) {
         now.u.swapStages(0, 1);
         now.exchange->exchangeGhosts();
     }},
    {"PushesInstead", "or one pushes", true, [](Case &now) { now.exchange->pushGhosts(); }},
    {"MakesAnotherOne", "DNDS_WAIT_TIMEOUT", true, [](Case &now) { now.other->exchangeGhosts(); }},
};

/// Faults that end with data in device memory on their way, and some without.
std::vector<Fault> faultsOnDevice() {
    std::vector<Fault> some;
    for (const Fault &fault : faults)
        for (const std::string_view name :
             {"StartsTwice", "HasNoRoomForBlocks", "AbandonsIt", "DestroysIt", "SwapsStages"})
            if (fault.name == name)
                some.push_back(fault);
    return some;
}

void PrintTo(const Fault &fault, std::ostream *to) { *to << fault.name; }

class SparseFailure : public testing::TestWithParam<std::tuple<Fault, const char *>> {
  protected:
    static const Fault &fault() { return std::get<0>(GetParam()); }
    static bool is(std::string_view name) { return fault().name == name; }
    static bool onDevice() { return std::get<1>(GetParam()) == std::string_view("peer") || direct(); }
    static bool direct() { return std::get<1>(GetParam()) == std::string_view("direct"); }
    void SetUp() override {
        if (onDevice() && Device::name() != "emulated")
            GTEST_SKIP() << "needs a device that has these ways everywhere: the emulated one";
    }
    const ScopedVariable pretend{"DNDS_EMULATED_DEVICE", "gpu-aware-mpi"};

    /// Rank `failing` fails, all throw, recover, and exchange again.
    static void failAndRecover(Case &now, int failing) {
        const bool alone = world().size() == 1;
        const auto room = [&] { now.pattern->pool().setLimit(std::numeric_limits<std::size_t>::max()); };
        const auto recoverAll = [&] {
            room();
            recover(now.owner.view());
            if (is("SwapsStages") && world().rank() == failing)
                now.u.swapStages(0, 1);
            if (is("DestroysIt"))
                now.exchange = std::make_unique<SparseFields>(now.u);
        };
        if (!survive(now.owner.view(), {.rank = failing,
                                        .told = fault().why,
                                        .happens = [&] { fault().fail(now); },
                                        .call = [&] { now.exchange->exchangeGhosts(); },
                                        .recover = recoverAll,
                                        .anyMayNotice = fault().ranksDiffer,
                                        .mayNotFail = alone || is("HasNoRoomForBlocks") || is("HasNoMemoryToSend")}))
            return room(); // a rank does not differ from itself, and memory was not needed
        EXPECT_FALSE(now.exchange->inFlight());
        now.exchangeAll();
        now.expectEqual();
    }
};

TEST_P(SparseFailure, StopsAllRanksAndIsRecoveredFrom) {
    const ScopedVariable carrier("DNDS_TRANSPORT", std::get<1>(GetParam()));
    const ScopedVariable patience("DNDS_WAIT_TIMEOUT", is("MakesAnotherOne") ? "0.3" : "60");
    for (const int failing : {0, world().size() - 1}) {
        SCOPED_TRACE(failing);
        Case now;
        if (onDevice())
            now.u.toDevice();
        failAndRecover(now, failing);
    }
}

TEST_P(SparseFailure, ManyTimesTakesNoMemory) {
    if (is("MakesAnotherOne"))
        GTEST_SKIP() << "takes long";
    const ScopedVariable carrier("DNDS_TRANSPORT", std::get<1>(GetParam()));
    Case now;
    if (onDevice())
        now.u.toDevice();
    const int warm = std::max(4, world().size()); // a rank's first failure may need larger buffers of its peers
    std::size_t before = 0;
    for (int k = 0; k < warm + 16 && !HasFatalFailure(); ++k) {
        failAndRecover(now, k % world().size());
        const std::size_t bytes = settledBytes(now.owner.view());
        if (k == warm)
            before = bytes;
        EXPECT_TRUE(k < warm || bytes <= before) << bytes << " after " << before;
    }
    EXPECT_FALSE(now.context->hasParked());
}

INSTANTIATE_TEST_SUITE_P(Faults, SparseFailure,
                         testing::Combine(testing::ValuesIn(faults), testing::Values("auto", "packed")),
                         [](const auto &chosenOne) {
                             return fmt::format("{}_{}", std::get<0>(chosenOne.param).name,
                                                std::get<1>(chosenOne.param));
                         });

INSTANTIATE_TEST_SUITE_P(FaultsOnDevice, SparseFailure,
                         testing::Combine(testing::ValuesIn(faultsOnDevice()), testing::Values("peer", "direct")),
                         [](const auto &chosenOne) {
                             return fmt::format("{}_{}", std::get<0>(chosenOne.param).name,
                                                std::get<1>(chosenOne.param));
                         });

TEST(SparseOutOfMemory, EndsTheSetUpOnAllRanks) {
    if (world().size() > 4)
        GTEST_SKIP() << "runs with fewer ranks tell it, and faster";
    const auto grid = torus.on(world());
    failEverywhere(40, [&] { (void)SparsePattern::make(world(), grid, torus.ghosts); });
    const auto pattern = SparsePattern::make(world(), grid, torus.ghosts);
    SparseField<real> u("u", pattern);
    SparseField<float> v("v", pattern, {.components = 3});
    failEverywhere( // where there is no memory to note that memory may be freed later, it goes with the communicator
        40,
        [&] {
            SparseFields both("both", {&u, &v});
        },
        Outcome::ThrowsOrDoesWithout);
    u.exchangeGhosts();
}

/// Each allocation of an exchange fails in turn on one rank.
TEST(SparseOutOfMemory, InExchangesIsRecoveredFrom) {
    if (world().size() > 4)
        GTEST_SKIP() << "runs with fewer ranks tell it, and faster";
    for (const int victim : {0, world().size() - 1}) {
        std::unique_ptr<Case> now;
        failRunningCalls(
            victim, 10, [&] { now = std::make_unique<Case>(); }, [&] { now->exchange->exchangeGhosts(); },
            [&] {
                recover(now->owner.view());
                now->exchangeAll();
                now->expectEqual();
            });
    }
}

/// A rank without memory for blocks has changed nothing; the same push on fields that were set again is complete.
void expectPushesAfterFailure(Case &now) {
    recover(now.owner.view());
    now.pattern->pool().setLimit(std::numeric_limits<std::size_t>::max());
    now.expected = now.make();
    now.u = now.make();
    for (SparseField<real> *field : {&now.expected, &now.u}) {
        Case::deposit(*field);
        field->pushGhosts();
    }
    now.expectEqual();
    EXPECT_GT(now.u.exchange().traffic().exchanges, 0U);
}

TEST(SparseOutOfMemory, InPushesIsRecoveredFrom) {
    if (world().size() > 4)
        GTEST_SKIP() << "runs with fewer ranks tell it, and faster";
    for (const int victim : {0, world().size() - 1}) {
        std::unique_ptr<Case> now;
        failRunningCalls(
            victim, 10,
            [&] {
                now = std::make_unique<Case>();
                now->u.clearGhosts();
                Case::deposit(now->u);
            },
            [&] { now->exchange->pushGhosts(); }, [&] { expectPushesAfterFailure(*now); });
    }
}

TEST(SparseFailureOfAPush, LeavesTheRankWithoutRoomAsItWas) {
    Case now;
    Case::deposit(now.u);
    std::vector<std::vector<real>> before;
    for (const int b : now.u.allocatedBlocks())
        before.push_back(elementsOf(std::as_const(now.u).view(b)));
    const std::vector<int> there = now.u.allocatedBlocks();
    now.pattern->pool().setLimit(now.pattern->pool().use().live);
    try {
        now.exchange->pushGhosts();
        EXPECT_EQ(now.exchange->traffic().allocations, 0U);
    } catch (const MemoryError &error) {
        expectContains(error.what(), "limit");
        EXPECT_EQ(now.u.allocatedBlocks(), there);
        std::size_t k = 0;
        for (const int b : there)
            EXPECT_TRUE(sameBits(elementsOf(std::as_const(now.u).view(b)), before[k++]));
    } catch (const RevokedError &error) {
        expectContains(error.what(), "limit");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    expectPushesAfterFailure(now);
}

} // namespace
} // namespace DNDS::test
