// One message of more than 2^31 bytes. A program of its own, because it takes several gigabytes.

#include "RingField.hpp"

#include <fstream>
#include <string>

namespace DNDS {
namespace {

using namespace DNDS::test;

/// Bytes that the machine can give, or 0 where it does not tell.
std::size_t availableMemory() {
    std::ifstream info("/proc/meminfo");
    for (std::string key, unit; info >> key;) {
        std::size_t kilobytes = 0;
        if (key == "MemAvailable:" && info >> kilobytes)
            return kilobytes * 1024;
        std::getline(info, unit);
    }
    return 0;
}

constexpr index rows = 2100;
constexpr rowsize width = 1 << 20;
static_assert(rows * width > (index{1} << 31));

std::uint8_t expectedByte(index row, rowsize j) { return static_cast<std::uint8_t>(row * 31 + j * 7 + (j >> 12)); }

/// One row in so many is left out.
constexpr index contiguous = rows + 2;
constexpr index scattered = 60;

/// Rank 0 owns all rows, rank 1 reads them all, or all but one in `step`.
void expectLargePull(TransportKind kind, index step) {
    ASSERT_EQ(worldSize(), 2);
    ArrayPair<ParArray<std::uint8_t, DynamicSize>> u;
    u.initPair("large", CommunicatorView(MPI_COMM_WORLD));
    if (worldRank() == 0) {
        u.father->resize(rows, width);
        auto father = u.father->view();
        for (index row = 0; row < rows; ++row)
            for (rowsize j = 0; j < width; j += 509)
                father(row, j) = expectedByte(row, j);
    }
    std::vector<index> wanted;
    if (worldRank() == 1)
        for (index row = 0; row < rows; row += row % step == step - 2 ? 2 : 1)
            wanted.push_back(row);
    u.transAttach();
    u.trans.createFatherGlobalMapping();
    u.trans.createGhostMapping(wanted);
    u.trans.createMPITypes();
    u.trans.initPersistentPull({.transport = kind});
    pull(u);
    if (worldRank() == 0)
        return;
    ASSERT_GT(static_cast<std::size_t>(u.son->size()) * width, std::size_t{1} << 31);
    const auto son = std::as_const(*u.son).view();
    index wrong = 0;
    for (index k = 0; k < son.size(); ++k)
        for (rowsize j = 0; j < width; j += 509)
            wrong += son(k, j) == expectedByte(wanted[static_cast<std::size_t>(k)], j) ? 0 : 1;
    EXPECT_EQ(wrong, 0);
}

class LargeMessage : public testing::Test {
  protected:
    void SetUp() override {
        const CommunicatorView world(MPI_COMM_WORLD);
        const std::size_t least = world.allReduce(availableMemory(), MPI_MIN);
        if (least < (std::size_t{10} << 30))
            GTEST_SKIP() << "needs 10 GiB of free memory, there are " << (least >> 20) << " MiB";
    }
};

TEST_F(LargeMessage, PackedFromWhereTheRowsAre) { expectLargePull(TransportKind::Packed, contiguous); }
TEST_F(LargeMessage, PackedFromScatteredRows) { expectLargePull(TransportKind::Packed, scattered); }
TEST_F(LargeMessage, DerivedDatatypesOfScatteredRows) { expectLargePull(TransportKind::Datatype, scattered); }
TEST_F(LargeMessage, WhateverIsChosen) { expectLargePull(TransportKind::Auto, scattered); }

} // namespace
} // namespace DNDS
