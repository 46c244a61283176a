#include "DNDS/Mpi/SharedSegment.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <utility>

namespace DNDS {
namespace {

constexpr std::size_t bytes = std::size_t{1} << 20U;

TEST(SharedSegment, IsSeenByWhoeverOpensItsFile) {
    SharedSegment made = SharedSegment::make(bytes);
    ASSERT_TRUE(static_cast<bool>(made));
    EXPECT_EQ(made.bytes(), bytes);
    EXPECT_TRUE(made.contains(made.base() + bytes - 1));
    EXPECT_FALSE(made.contains(made.base() + bytes));
    EXPECT_TRUE(ProcessId::own().alive());
    const SharedSegment seen = SharedSegment::open(ProcessId::own(), made.file(), bytes);
    EXPECT_NE(seen.base(), made.base());
    EXPECT_EQ(seen.file(), -1);
    made.base()[77] = std::byte{5};
    EXPECT_EQ(seen.base()[77], std::byte{5});
    seen.base()[78] = std::byte{6};
    const SharedSegment moved = std::move(made);
    EXPECT_FALSE(static_cast<bool>(made)); // NOLINT(bugprone-use-after-move): an empty one is left
    EXPECT_EQ(moved.base()[78], std::byte{6});
}

TEST(SharedSegment, WhatIsNotThereOrTooSmallIsRefused) {
    EXPECT_THROW(SharedSegment::open(ProcessId::own(), 1 << 20, 0), MemoryError);
    const SharedSegment made = SharedSegment::make(bytes);
    EXPECT_THROW(SharedSegment::open(ProcessId::own(), made.file(), 2 * bytes), MemoryError);
    EXPECT_EQ(SharedSegment::open(ProcessId::own(), made.file(), 1).bytes(), bytes);
    ProcessId gone = ProcessId::own();
    gone.process = std::numeric_limits<std::int32_t>::max();
    EXPECT_FALSE(gone.alive());
    EXPECT_THROW(SharedSegment::open(gone, made.file(), 0), MemoryError);
}

} // namespace
} // namespace DNDS
