#include "DNDS/Mpi/Communicator.hpp"

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "ThrowsOnAll.hpp"

#include <cstdint>
#include <limits>
#include <new>
#include <numeric>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace DNDS {
namespace {

using test::expectContains;
using test::messageOf;
using test::messageOnAll;
using test::worldRank;
using test::worldSize;

static_assert(std::is_trivially_copyable_v<CommunicatorView>);
static_assert(!std::is_copy_constructible_v<Communicator> && std::is_nothrow_move_constructible_v<Communicator> &&
              std::is_nothrow_move_assignable_v<Communicator>);

TEST(CommunicatorView, KnowsRankAndSizeAndTellsErrorsTheRank) {
    const CommunicatorView world(MPI_COMM_WORLD);
    EXPECT_EQ(world.rank(), worldRank());
    EXPECT_EQ(world.size(), worldSize());
    EXPECT_EQ(errorRank(), worldRank());
    expectContains(messageOf<ArgumentError>([] { CommunicatorView(MPI_COMM_NULL); }), "MPI_COMM_NULL");
}

TEST(CommunicatorView, IntercommunicatorsAreRefusedWhereverTheyComeIn) {
    if (worldSize() == 1)
        GTEST_SKIP() << "for two groups of ranks";
    const CommunicatorView world(MPI_COMM_WORLD);
    const bool odd = world.rank() % 2 == 1;
    const Communicator half = Communicator::split(world, odd ? 1 : 0, 0);
    MPI_Comm inter = MPI_COMM_NULL;
    ASSERT_EQ(MPI_Intercomm_create(half.view().handle(), 0, MPI_COMM_WORLD, odd ? 0 : 1, 7, &inter), MPI_SUCCESS);
    expectContains(messageOf<ArgumentError>([&] { CommunicatorView{inter}; }), "MPI_Intercomm_merge");
    messageOf<ArgumentError>([&] { CommunicatorContext::of(inter); });
    MPI_Comm_free(&inter);
}

TEST(CommunicatorView, ReducesAndGathersEveryArithmeticType) {
    const CommunicatorView world(MPI_COMM_WORLD);
    const int n = world.size();
    const int sum = n * (n - 1) / 2;
    const auto check = [&]<class T>(T) {
        EXPECT_EQ(world.allReduce(static_cast<T>(world.rank()), MPI_SUM), static_cast<T>(sum));
        std::vector<T> expected(static_cast<std::size_t>(n));
        std::iota(expected.begin(), expected.end(), T{});
        EXPECT_EQ(world.allGather(static_cast<T>(world.rank())), expected);
    };
    check(std::int8_t{});
    check(std::uint8_t{});
    check(std::int16_t{});
    check(std::uint16_t{});
    check(std::int32_t{});
    check(std::uint32_t{});
    check(std::int64_t{});
    check(std::uint64_t{});
    check(long{});
    check(static_cast<long long>(0));
    check(float{});
    check(double{});
    check(static_cast<long double>(0));

    std::vector<index> values{world.rank(), -world.rank(), std::numeric_limits<index>::max()};
    world.allReduce(values.data(), 3, MPI_MAX);
    EXPECT_EQ(values, (std::vector<index>{n - 1, 0, std::numeric_limits<index>::max()}));
}

TEST(CommunicatorView, BroadcastsValuesAndListsFromAnyRank) {
    const CommunicatorView world(MPI_COMM_WORLD);
    for (int root = 0; root < world.size(); ++root) {
        struct Pair {
            double a;
            int b;
        } pair{world.rank() + 0.5, world.rank()};
        world.broadcast(pair, root);
        EXPECT_EQ(pair.a, root + 0.5);
        EXPECT_EQ(pair.b, root);
        std::vector<index> list(5, world.rank());
        world.broadcast(list.data(), list.size(), root);
        EXPECT_EQ(list, std::vector<index>(5, root));
        world.broadcast(list.data(), 0, root);
    }
}

TEST(CommunicatorView, ScansSumsOfTheRanksBefore) {
    const CommunicatorView world(MPI_COMM_WORLD);
    const int before = world.rank() * (world.rank() + 1) / 2;
    EXPECT_EQ(world.exclusiveScan(index{world.rank() + 1}), before);
    EXPECT_EQ(world.exclusiveScan(world.rank() + 1.0), before);
    std::vector<int> values{world.rank() + 1, 7};
    world.exclusiveScan(values.data(), 2);
    EXPECT_EQ(values, (std::vector<int>{before, 7 * world.rank()}));
}

TEST(CommunicatorView, GathersListsOfAnyLength) {
    const CommunicatorView world(MPI_COMM_WORLD);
    const auto lengthOf = [](int rank) { return rank % 3 == 1 ? std::size_t{0} : static_cast<std::size_t>(rank) + 2; };
    std::vector<index> expected;
    std::vector<std::size_t> bytes;
    for (int rank = 0; rank < world.size(); ++rank) {
        expected.insert(expected.end(), lengthOf(rank), rank);
        bytes.push_back(lengthOf(rank) * sizeof(index));
    }
    const std::vector<index> mine(lengthOf(world.rank()), world.rank());
    EXPECT_EQ(world.allGatherV(std::span<const index>(mine)), expected);
    EXPECT_TRUE(world.allGatherV(std::span<const double>()).empty());

    std::vector<index> byBroadcasts(expected.size());
    Detail::allGatherBytes(world, mine.data(), bytes, byBroadcasts.data(), 8); // what more than 2^31 bytes take
    EXPECT_EQ(byBroadcasts, expected);
}

TEST(Communicator, ReturnsErrorsInsteadOfEndingTheJob) {
    const Communicator copy = Communicator::duplicate(MPI_COMM_WORLD);
    const Communicator half = Communicator::split(MPI_COMM_WORLD, worldRank() % 2, 0);
    const Communicator node = Communicator::splitNode(MPI_COMM_WORLD);
    for (const Communicator *comm : {&copy, &half, &node}) {
        MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
        MPI_Comm_get_errhandler(comm->view().handle(), &handler);
        EXPECT_EQ(handler, MPI_ERRORS_RETURN);
        MPI_Errhandler_free(&handler);
    }
}

TEST(Communicator, SplitOrdersByKeyAndLeavesOutUndefined) {
    messageOnAll<ArgumentError>([] { (void)Communicator::splitNode(MPI_COMM_WORLD, -1); });
    const bool out = worldRank() == worldSize() - 1 && worldSize() > 1;
    const Communicator reversed = Communicator::split(MPI_COMM_WORLD, out ? MPI_UNDEFINED : 0, -worldRank());
    EXPECT_EQ(reversed.valid(), !out);
    if (out) {
        expectContains(messageOf<StateError>([&] { (void)reversed.view(); }), "empty");
        return;
    }
    const int members = worldSize() > 1 ? worldSize() - 1 : 1;
    EXPECT_EQ(reversed.view().size(), members);
    EXPECT_EQ(reversed.view().rank(), members - 1 - worldRank());
}

TEST(Communicator, MovedFromIsEmptyAndTheMovedWorks) {
    Communicator from = Communicator::duplicate(MPI_COMM_WORLD);
    Communicator to = std::move(from);
    EXPECT_FALSE(from.valid()); // NOLINT: that is what is tested
    expectContains(messageOf<StateError>([&] { (void)from.view(); }), "moved from");
    EXPECT_EQ(to.view().allReduce(1, MPI_SUM), worldSize());
    from = std::move(to);
    EXPECT_EQ(from.view().allReduce(1, MPI_SUM), worldSize());
    EXPECT_FALSE(Communicator().valid());
}

TEST(Agree, NobodyThrowsWhereNobodyFailed) {
    const CommunicatorView world(MPI_COMM_WORLD);
    int runs = 0;
    EXPECT_NO_THROW(world.guarded([&] { ++runs; }));
    EXPECT_EQ(runs, 1);
    EXPECT_NO_THROW(world.agree(nullptr));
}

TEST(Agree, EveryRankThrowsTheTypeOfTheOneThatFailedAndNamesIt) {
    const CommunicatorView world(MPI_COMM_WORLD);
    for (int failing = 0; failing < world.size(); ++failing) {
        const std::string text = messageOnAll<IndexError>([&] {
            world.guarded(
                [&] { DNDS_CHECK(world.rank() != failing, IndexError, "row {} is not there", 40 + failing); });
        });
        expectContains(text, fmt::format("row {} is not there", 40 + failing));
        expectContains(text, fmt::format("(rank {}", failing));
    }
}

TEST(Agree, TheLowestFailingRankDecidesTypeAndText) {
    const CommunicatorView world(MPI_COMM_WORLD);
    if (world.size() < 2)
        GTEST_SKIP() << "needs two ranks";
    for (int lowest = 0; lowest + 1 < world.size(); ++lowest) {
        const std::string text = messageOnAll<LayoutError>([&] {
            world.guarded([&] {
                if (world.rank() == lowest)
                    throw LayoutError("the first");
                if (world.rank() > lowest)
                    throw StateError("a later one");
            });
        });
        expectContains(text, fmt::format("the first (rank {}", lowest));
    }
}

TEST(Agree, ForeignExceptionsBecomeErrorsOfDnds) {
    const CommunicatorView world(MPI_COMM_WORLD);
    const int last = world.size() - 1;
    const auto failWith = [&](const auto &exception) {
        return [&] {
            world.guarded([&] {
                if (world.rank() == last)
                    throw exception;
            });
        };
    };
    expectContains(messageOnAll<StateError>(failWith(std::out_of_range("from the library"))), "from the library");
    expectContains(messageOnAll<MemoryError>(failWith(std::bad_alloc())), fmt::format("rank {}", last));
    expectContains(messageOnAll<StateError>(failWith(42)), "unknown type");
}

TEST(Agree, LongTextsArriveWhole) {
    const CommunicatorView world(MPI_COMM_WORLD);
    const std::string longText(200000, 'x');
    const std::string text = messageOnAll<DataError>([&] {
        world.guarded([&] {
            if (world.rank() == world.size() / 2)
                throw DataError(longText + "!");
        });
    });
    expectContains(text, longText + "!");
}

} // namespace
} // namespace DNDS
