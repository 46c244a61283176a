#include "DNDS/Array/DofKernels.hpp"

#include "support/MpiTest.hpp"

#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/Device/Stream.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace DNDS {
namespace {

std::vector<std::uint64_t> bitsOf(const std::vector<real> &values) {
    std::vector<std::uint64_t> bits;
    for (const real value : values)
        bits.push_back(std::bit_cast<std::uint64_t>(value));
    return bits;
}

/// Numbers of all sizes, none on rank 1; column 2 is 0 everywhere, column 3 has an infinity on the last rank.
std::vector<real> someRows(const CommunicatorView &comm, std::size_t columns) {
    std::mt19937_64 random(test::seed() + static_cast<unsigned>(comm.rank()));
    std::uniform_real_distribution<real> mantissa(-1.0, 1.0);
    std::uniform_int_distribution<int> exponent(-60, 60);
    std::vector<real> rows(comm.rank() == 1 ? 0 : 70003 * columns);
    for (std::size_t i = 0; i < rows.size(); ++i)
        rows[i] = i % columns == 2 ? 0.0 : std::ldexp(mantissa(random), exponent(random));
    if (comm.rank() == comm.size() - 1 && comm.rank() != 1)
        rows[3] = -std::numeric_limits<real>::infinity();
    return rows;
}

TEST(ExactSums, AreTheSameBitsOnTheDevice) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const CommunicatorView comm(MPI_COMM_WORLD);
    constexpr std::size_t columns = 5;
    const std::vector<real> rows = someRows(comm, columns);
    std::vector<real> expected(columns);
    exactSums(comm, Executor::host(), rows, expected);
    EXPECT_NE(expected[0], 0.0);

    const Device::Stream stream;
    const Device::DeviceBuffer<real> onDevice(rows.size());
    const std::size_t bytes = rows.size() * sizeof(real);
    Device::copy(onDevice.data(), MemorySpace::Device, rows.data(), MemorySpace::Host, bytes, stream);
    const Device::Transfers before = Device::transfers();
    std::vector<real> sums(columns, -1.0);
    exactSums(comm, Executor::device(stream), {onDevice.data(), rows.size()}, sums); // in stream order after the copy
    EXPECT_EQ(bitsOf(sums), bitsOf(expected));
    EXPECT_LE(Device::transfers().bytesToHost - before.bytesToHost, columns * sizeof(WideExactAccumulator));
}

TEST(ExactSums, WhatFailsOnOneRankIsThrownOnAll) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const std::vector<real> rows(comm.rank() == 0 ? 7 : 6, 1.0);
    std::vector<real> sums(3);
    EXPECT_THROW(exactSums(comm, Executor::host(), rows, sums), ArgumentError);
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const Device::Stream stream;
    const Device::DeviceBuffer<real> onDevice(rows.size());
    EXPECT_THROW(exactSums(comm, Executor::device(stream), {onDevice.data(), rows.size()}, sums), ArgumentError);
}

TEST(ExactSums, FailuresOfTermsAreThrownOnAllRanks) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const auto broken = [&](auto) { DNDS_CHECK(comm.rank() != comm.size() - 1, MemoryError, "no room"); };
    real sum = 0;
    EXPECT_THROW(exactSums(comm, broken, {&sum, 1}), MemoryError);
}

} // namespace
} // namespace DNDS
