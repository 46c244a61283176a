/// @file MemoryCounts.hpp
/// @brief Counts the memory that operator new hands out in this program: the library's own, not that of MPI.
#pragma once

#include <cstdint>

namespace DNDS::Bench {

/// Bytes in use now.
std::int64_t memoryInUse();
/// The most that were in use at a time since this was called last.
std::int64_t takeMemoryPeak();

} // namespace DNDS::Bench
