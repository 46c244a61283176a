#include "DNDS/Exchange/MessagePlan.hpp"

#include "DNDS/Exchange/RingField.hpp"

namespace DNDS {
namespace {

using namespace DNDS::test;

/// Rows of one width.
std::vector<RowLayout> layout(index rows, std::size_t width) {
    RowLayout one;
    one.rows = rows;
    one.partCount = 1;
    one.parts[0].stride = width;
    return {one};
}

TEST(MessagePlan, ExchangesOfOnePatternShareTheRowNumbers) {
    const auto pattern = std::make_shared<const ExchangePattern>(
        GhostMapping::fromPullList(PullLists::everything().global(), PullLists::everything().myReads()));
    const auto planOf = [&](std::size_t width) {
        return planMessages(*pattern, Direction::Pull, layout(pattern->fatherSize(), width),
                            layout(pattern->sonSize(), width));
    };
    const MessagePlan narrow = planOf(8);
    const MessagePlan wide = planOf(40);
    PeerKinds kinds;
    for (int rank = 0; rank < worldSize(); ++rank)
        kinds[rank] = TransportKind::Packed;
    const auto byTransport = splitByTransport(narrow, {}, kinds);
    ASSERT_EQ(narrow.outgoing.size(), static_cast<std::size_t>(worldSize()));
    for (std::size_t k = 0; k < narrow.outgoing.size(); ++k) {
        const std::span<const std::uint32_t> rows = narrow.outgoing[k].parts[0].rowNumbers();
        ASSERT_EQ(rows.size(), static_cast<std::size_t>(pattern->fatherSize()));
        EXPECT_EQ(rows.data(), pattern->readers().lists[k].numbers()->data());
        EXPECT_EQ(rows.data(), wide.outgoing[k].parts[0].rowNumbers().data());
        EXPECT_EQ(rows.data(), byTransport.at(TransportKind::Packed).outgoing[k].parts[0].rowNumbers().data());
    }
    EXPECT_TRUE(narrow.sameAs(planOf(8)));
    EXPECT_FALSE(narrow.sameAs(wide));
}

} // namespace
} // namespace DNDS
