#include "DNDS/Link/MatchedMessage.hpp"

#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace DNDS::test {
namespace {

TEST(MatchedMessage, IsFoundOnceAndReceivedLater) {
    const CommunicatorView world(MPI_COMM_WORLD);
    const auto context = CommunicatorContext::of(world);
    const Channel channel = context->nextChannel();
    const int next = (world.rank() + 1) % world.size();
    const int previous = (world.rank() + world.size() - 1) % world.size();
    const std::vector<std::byte> sent(300'000, static_cast<std::byte>(world.rank() + 1));
    MatchedMessage message;
    EXPECT_FALSE(message.isFound());
    EXPECT_FALSE(message.find(previous, channel));
    world.barrier();
    MPI_Request sending = MPI_REQUEST_NULL;
    MPI_Request receiving = MPI_REQUEST_NULL;
    MPI_Isend(sent.data(), static_cast<int>(sent.size()), MPI_BYTE, next, channel.tag, channel.comm, &sending);
    while (!message.find(previous, channel)) {
    }
    EXPECT_TRUE(message.find(previous, channel)) << "the same one";
    ASSERT_EQ(message.bytes(), sent.size());
    std::vector<std::byte> got(message.bytes());
    message.receive(got.data(), receiving);
    EXPECT_FALSE(message.isFound());
    MPI_Wait(&receiving, MPI_STATUS_IGNORE);
    MPI_Wait(&sending, MPI_STATUS_IGNORE);
    EXPECT_EQ(got, std::vector<std::byte>(sent.size(), static_cast<std::byte>(previous + 1)));
    EXPECT_FALSE(message.find(previous, channel));
}

} // namespace
} // namespace DNDS::test
