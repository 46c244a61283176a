#include "DNDS/Exchange/ChooseSpace.hpp"

#include "DNDS/Mpi/ThrowsOnAll.hpp"

namespace DNDS {
namespace {

using namespace DNDS::test;

TEST(ChooseSpace, ATransportAsksForTheSpaceThatItServes) {
    const auto context = CommunicatorContext::of(MPI_COMM_WORLD);
    const auto spaceAskedFor = [&](const ExchangeOptions &options) {
        return DNDS::spaceAskedFor(TransportTable::of(*context), options);
    };
    EXPECT_EQ(spaceAskedFor({}), ExchangeSpace::Auto);
    EXPECT_EQ(spaceAskedFor({.transport = TransportKind::Packed}), ExchangeSpace::Host);
    EXPECT_EQ(spaceAskedFor({.transport = TransportKind::Staged}), ExchangeSpace::Device);
    EXPECT_EQ(spaceAskedFor({.space = ExchangeSpace::Device}), ExchangeSpace::Device);
}

TEST(ChooseSpace, WithoutWishesItIsTheHostWhereArraysAreNotOnTheDevice) {
    const std::vector<ExchangeMember> members(1);
    EXPECT_EQ(agreeOnSpace(MPI_COMM_WORLD, members, ExchangeSpace::Auto), MemorySpace::Host);
    EXPECT_EQ(agreeOnSpace(MPI_COMM_WORLD, members, ExchangeSpace::Host), MemorySpace::Host);
}

} // namespace
} // namespace DNDS
