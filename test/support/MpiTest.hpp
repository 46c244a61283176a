/// @file MpiTest.hpp
/// @brief Small helpers for tests that run on several ranks; `MpiMain.cpp` is their main.
#pragma once

#include <cstdint>

namespace DNDS::test {

/// This rank in MPI_COMM_WORLD. Local.
int worldRank();

/// The number of ranks of MPI_COMM_WORLD. Local.
int worldSize();

/// The seed for random input, equal on all ranks: DNDS_TEST_SEED if set ("random" draws a new one), else a fixed
/// number. Rank 0 prints it when the program starts, so that a failure can be repeated. Local.
std::uint64_t seed();

/// A number that differs from rank to rank and from `salt` to `salt`, made from `seed()`. Local.
std::uint64_t rankSeed(std::uint64_t salt = 0);

} // namespace DNDS::test
