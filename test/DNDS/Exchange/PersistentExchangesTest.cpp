#include "DNDS/Exchange/PersistentExchanges.hpp"

#include "DNDS/Exchange/RingField.hpp"

namespace DNDS {
namespace {

using namespace DNDS::test;

TEST(PersistentExchange, IsEmptyUntilItIsSetUpAndAgainWhenCleared) {
    auto u = ringField();
    const auto request = [&] { return ExchangeRequest{u.trans.pattern(), {u.trans.member()}}; };
    CommunicatorContext &context = u.trans.pattern()->context();
    PersistentExchange pull(Direction::Pull);
    EXPECT_FALSE(pull.made());
    EXPECT_FALSE(pull.inFlight());
    EXPECT_THROW((void)pull.get("u"), StateError);
    pull.clear("u");
    pull.init(context, "u", request);
    EXPECT_TRUE(pull.made());
    fill(u, 1);
    pull.get("u")->start();
    EXPECT_TRUE(pull.inFlight());
    EXPECT_THROW(pull.clear("u"), StateError);
    pull.get("u")->wait();
    EXPECT_EQ(wrongGhosts(u, 1), 0);
    pull.clear("u");
    EXPECT_FALSE(pull.made());
}

TEST(PersistentExchange, TheOneBeforeStaysWhereInitThrows) {
    auto u = ringField();
    const auto request = [&] { return ExchangeRequest{u.trans.pattern(), {u.trans.member()}}; };
    CommunicatorContext &context = u.trans.pattern()->context();
    PersistentExchange pull(Direction::Pull);
    pull.init(context, "u", request);
    const Exchange *const before = pull.get("u").get();
    (void)messageOnAll<IndexError>([&] {
        pull.init(context, "u", [&]() -> ExchangeRequest {
            DNDS_CHECK(worldRank() != 0, IndexError, "rank 0 cannot");
            return request();
        });
    });
    EXPECT_EQ(pull.get("u").get(), before);
    // In flight on one rank alone: all throw.
    fill(u, 1);
    if (worldRank() == 0)
        pull.get("u")->start();
    expectContains(messageOnAll<StateError>([&] { pull.init(context, "u", request); }),
                   "the persistent Pull of 'u' is in flight: call waitPersistentPull");
    if (worldRank() != 0)
        pull.get("u")->start();
    pull.get("u")->wait();
    EXPECT_EQ(wrongGhosts(u, 1), 0);
}

} // namespace
} // namespace DNDS
