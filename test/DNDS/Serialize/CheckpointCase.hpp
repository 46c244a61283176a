/// @file CheckpointCase.hpp
/// @brief For tests only: rows spread over ranks, damaged files, and errors that are the same on all ranks.
#pragma once

#include "DNDS/Serialize/Checkpoint.hpp"
#include "support/MpiTest.hpp"
#include "support/TemporaryFolder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace DNDS::test {

inline void overwrite(const std::string &path, const std::string &content) {
    std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
}

/// Rows 0 .. count - 1 in random order, spread at random; where there are more than two ranks the last one has none.
/// `id` turns rows into ids.
template <class Id>
std::vector<index> spreadIds(CommunicatorView comm, index count, unsigned salt, Id &&id) {
    std::mt19937_64 random(seed() + salt);
    std::vector<index> mine;
    const int ranks = comm.size() > 2 ? comm.size() - 1 : comm.size();
    for (index row = 0; row < count; row++)
        if (static_cast<int>(random() % static_cast<unsigned>(ranks)) == comm.rank())
            mine.push_back(id(row));
    std::shuffle(mine.begin(), mine.end(), std::mt19937_64(random()));
    return mine;
}
inline std::vector<index> spreadIds(CommunicatorView comm, index count, unsigned salt) {
    return spreadIds(comm, count, salt, [](index row) { return row; });
}

/// The message with which `body` fails on this rank, which must be the same on all; "" where it does not fail.
template <class ErrorType, class Body>
std::string failureOf(Body &&body) {
    std::string message;
    try {
        body();
    } catch (const ErrorType &error) {
        message = error.message();
    }
    const auto hash = static_cast<index>(std::hash<std::string>()(message) >> 1U);
    EXPECT_EQ(world().allReduce(hash, MPI_MAX), world().allReduce(hash, MPI_MIN)) << message;
    return message;
}

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

} // namespace DNDS::test
