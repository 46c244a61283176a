#include "DNDS/OneSided/SymmetricPointer.hpp"

#include <gtest/gtest.h>

#include <array>
#include <type_traits>

namespace DNDS {
namespace {

using Detail::HeapBlock;
using Detail::HeapTable;
using Detail::heapUnit;

static_assert(std::is_trivially_copyable_v<SymmetricPointer<double>>);

/// A heap of two ranks of which one is mapped, with one allocation of 80 bytes.
struct Made {
    alignas(128) std::array<std::byte, 1024> memory{};
    std::array<std::byte *, 2> bases{memory.data(), nullptr};
    std::array<std::uint64_t, 2> bytes{1024, 1024};
    FaultRecord faults;
    HeapTable table;
    SymmetricPointer<double> pointer;

    Made() {
        static_cast<RemoteTable &>(table) = {bases.data(), bytes.data(), &faults, 0, 2};
        table.heap = &table;
        table.own = memory.data();
        *reinterpret_cast<HeapBlock *>(memory.data() + 128) = {77, 128 + heapUnit, 80};
        pointer = {&table, 128 + heapUnit, 77};
    }
    AccessFault check(SymmetricPointer<double> p, int rank, std::uint64_t size, std::uint64_t alignment = 1) const {
        return table.checkBlock(p.heap(), rank, p.offset(), p.begin(), p.serial(), size, alignment);
    }
};

TEST(SymmetricPointer, CountsInObjects) {
    Made made;
    const auto p = made.pointer;
    EXPECT_EQ((p + 3).offset(), p.offset() + 24);
    EXPECT_EQ((p + 3) - p, 3);
    EXPECT_EQ(p - (p + 3), -3);
    EXPECT_EQ(p + 3 - 3, p);
    EXPECT_TRUE(static_cast<bool>(p));
    EXPECT_FALSE(static_cast<bool>(SymmetricPointer<double>{}));
    EXPECT_EQ(reinterpret_cast<std::byte *>((p + 1).at(0)), made.memory.data() + p.offset() + 8);
    EXPECT_EQ(p.local(), p.at(0));
    EXPECT_EQ(p.at(1), nullptr);
}

TEST(SymmetricPointer, AccessesAreCheckedAgainstTheAllocation) {
    Made made;
    const auto p = made.pointer;
    EXPECT_EQ(made.check(p, 0, 80), AccessFault::None);
    EXPECT_EQ(made.check(p, 1, 80, 8), AccessFault::None);
    EXPECT_EQ(made.check(p + 10, 0, 0), AccessFault::None);
    EXPECT_EQ(made.check(p, 0, 81), AccessFault::Range);
    EXPECT_EQ(made.check(p + 9, 0, 9), AccessFault::Range);
    EXPECT_EQ(made.check(p - 1, 0, 8), AccessFault::Range);
    EXPECT_EQ(made.check(p - 1000, 0, 8), AccessFault::Range);
    EXPECT_EQ(made.check(p, 0, UINT64_MAX), AccessFault::Range);
    EXPECT_EQ(made.check(p, 2, 8), AccessFault::Rank);
    EXPECT_EQ(made.check(p, -1, 8), AccessFault::Rank);
    EXPECT_EQ(made.check(p, 0, 8, 512), AccessFault::Alignment);
    EXPECT_EQ(made.check(SymmetricPointer<double>{}, 0, 8), AccessFault::Foreign);
    *reinterpret_cast<HeapBlock *>(made.memory.data() + 128) = {};
    EXPECT_EQ(made.check(p, 0, 8), AccessFault::Freed);
}

} // namespace
} // namespace DNDS
