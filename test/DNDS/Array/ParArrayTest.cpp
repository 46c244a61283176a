#include "DNDS/Array/ParArray.hpp"

#include "DNDS/Mpi/ThrowsOnAll.hpp"

#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace DNDS {
namespace {

using namespace DNDS::test;

using Dynamic = ParArray<real, DynamicSize>;

TEST(ParArray, NumbersItsRowsGlobally) {
    ParArray<real, 2> u("u", MPI_COMM_WORLD);
    u.resize(worldRank() % 3);
    index before = 0;
    index all = 0;
    for (int rank = 0; rank < worldSize(); ++rank) {
        before += rank < worldRank() ? rank % 3 : 0;
        all += rank % 3;
    }
    u.createGlobalMapping();
    EXPECT_EQ(u.globalMapping()->localBegin(), before);
    EXPECT_EQ(u.globalMapping()->globalSize(), all);
    EXPECT_EQ(u.globalSize(), all);
    // The mapping is a snapshot; globalSize is not.
    u.resize(u.size() + 1);
    EXPECT_EQ(u.globalSize(), all + worldSize());
    EXPECT_EQ(u.globalMapping()->globalSize(), all);
}

TEST(ParArray, TakesAMappingOfAsManyRowsOnly) {
    ParArray<real, 2> u("u", MPI_COMM_WORLD);
    ParArray<index> v("v", MPI_COMM_WORLD);
    u.resize(4);
    v.resize(4);
    u.createGlobalMapping();
    v.setGlobalMapping(u.globalMapping());
    EXPECT_EQ(v.globalMapping(), u.globalMapping());
    EXPECT_THROW(v.setGlobalMapping(nullptr), ArgumentError);
    v.resize(5);
    EXPECT_THROW(v.setGlobalMapping(u.globalMapping()), StateError);
}

TEST(ParArray, CopiesAreDeepAndShareTheMapping) {
    ParArray<real, 2> u("u", MPI_COMM_WORLD);
    u.resize(3);
    u(2, 1) = 5;
    u.createGlobalMapping();
    ParArray<real, 2> copy = u;
    copy(2, 1) = 6;
    EXPECT_EQ(u(2, 1), 5);
    EXPECT_EQ(copy.globalMapping(), u.globalMapping());
    EXPECT_EQ(copy.name(), "u");

    ParArray<real, 2> other("other", MPI_COMM_SELF);
    other.clone(u);
    EXPECT_EQ(other.name(), "other");
    EXPECT_EQ(other(2, 1), 5);
    EXPECT_EQ(other.comm().size(), worldSize());
    EXPECT_EQ(other.globalMapping(), u.globalMapping());

    ParArray<real, 2> moved = std::move(copy);
    EXPECT_EQ(moved(2, 1), 6);
    EXPECT_EQ(moved.globalMapping(), u.globalMapping());
    EXPECT_EQ(copy.size(), 0); // NOLINT: that is what is tested
}

TEST(ParArray, SwapsContentsMappingsAndCommunicators) {
    ParArray<real, 2> u("u", MPI_COMM_WORLD);
    ParArray<real, 2> v("v", MPI_COMM_SELF);
    u.resize(3);
    v.resize(1);
    u.createGlobalMapping();
    const auto mapping = u.globalMapping();
    u.swapData(v);
    EXPECT_EQ(u.name(), "u");
    EXPECT_EQ(u.size(), 1);
    EXPECT_EQ(u.comm().size(), 1);
    EXPECT_EQ(u.globalMapping(), nullptr);
    EXPECT_EQ(v.size(), 3);
    EXPECT_EQ(v.globalMapping(), mapping);
    swap(u, v);
    EXPECT_EQ(u.name(), "v");
    EXPECT_EQ(u.size(), 3);
    EXPECT_EQ(u.globalMapping(), mapping);
}

TEST(ParArray, RanksWithoutRowsLearnTheWidth) {
    Dynamic u("u", MPI_COMM_WORLD);
    const int chooser = worldSize() / 2;
    if (worldRank() == chooser)
        u.resize(3, 7);
    u.agreeShape();
    EXPECT_EQ(u.width(), 7);
    EXPECT_EQ(u.size(), worldRank() == chooser ? 3 : 0);

    Dynamic nobody("nobody", MPI_COMM_WORLD);
    nobody.agreeShape();
    EXPECT_EQ(nobody.width(), DynamicSize);
}

TEST(ParArray, DifferentWidthsThrowOnAllRanks) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs two ranks";
    for (int odd = 0; odd < worldSize(); ++odd) {
        Dynamic u("u", MPI_COMM_WORLD);
        u.resize(2, worldRank() == odd ? 3 : 4);
        const std::string text = messageOnAll<LayoutError>([&] { u.agreeShape(); });
        expectContains(text, "'u' are 3 elements wide");
        expectContains(text, "and 4 on another");
    }
}

TEST(ParArray, WhatCommunicatesSaysThatTheCommunicatorWasFreed) {
    std::optional<Communicator> comm = Communicator::duplicate(MPI_COMM_WORLD);
    ParArray<real, DynamicSize> u("u", comm->view());
    u.resize(3, 2);
    ParArray<real, DynamicSize> copy = u;
    ParArray<real, DynamicSize> clone(MPI_COMM_WORLD);
    clone.clone(u);
    comm.reset();
    for (const auto &call : std::vector<std::function<void()>>{
             [&] { (void)u.globalSize(); }, [&] { u.createGlobalMapping(); }, [&] { u.agreeShape(); },
             [&] { (void)u.comm(); }, [&] { (void)copy.globalSize(); }, [&] { (void)clone.globalSize(); }}) {
        const std::string text = messageOf<StateError>(call);
        expectContains(text, "the communicator of '");
        expectContains(text, "was freed");
    }
    u.resize(5, 2); // the rows are still there
    EXPECT_EQ(u.size(), 5);
    ParArray<real, DynamicSize> other("other", MPI_COMM_WORLD);
    other.swapData(u);
    EXPECT_EQ(u.globalSize(), 0);
    EXPECT_THROW((void)other.globalSize(), StateError);
}

} // namespace
} // namespace DNDS
