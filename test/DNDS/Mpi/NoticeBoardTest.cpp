#include "DNDS/Mpi/NoticeBoard.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace DNDS {
namespace {

TEST(NoticeBoard, KeepsNotesForTheirReadersUntilTheRoundAfterNext) {
    constexpr int readers = 3;
    struct alignas(NoticeBoard::alignment) Line {
        std::byte bytes[NoticeBoard::alignment];
    };
    std::vector<Line> memory(NoticeBoard::bytes(readers) / sizeof(Line) + 1);
    NoticeBoard board = NoticeBoard::make(memory.data(), readers);
    const NoticeBoard seen(memory.data());
    EXPECT_FALSE(seen.lookUp(0, 0).has_value());

    board.publish(1, 0, {2, 64});
    board.publish(2, 0, {3, 128});
    EXPECT_FALSE(seen.lookUp(0, 0).has_value());
    EXPECT_EQ(seen.lookUp(1, 0)->segment, 2U);
    EXPECT_EQ(seen.lookUp(1, 0)->offset, 64U);
    EXPECT_EQ(seen.lookUp(2, 0)->segment, 3U);
    EXPECT_FALSE(seen.lookUp(1, 1).has_value());

    board.publish(1, 1, {4, 192});
    EXPECT_EQ(seen.lookUp(1, 0)->segment, 2U);
    EXPECT_EQ(seen.lookUp(1, 1)->segment, 4U);
    board.publish(1, 2, {5, 256});
    EXPECT_FALSE(seen.lookUp(1, 0).has_value()) << "its slot was used again";
    EXPECT_EQ(seen.lookUp(1, 2)->segment, 5U);
}

} // namespace
} // namespace DNDS
