/// @file CheckpointCase.hpp
/// @brief For tests only: files that go with their object, rows spread over ranks, and values that tell where they
/// belong.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Serialize/Checkpoint.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <unistd.h>

namespace DNDS::test {

inline const CommunicatorView &world() {
    static const CommunicatorView comm(MPI_COMM_WORLD);
    return comm;
}

/// A name in a folder of its own, which goes with the object. Collective over MPI_COMM_WORLD.
class TemporaryFolder {
  public:
    TemporaryFolder() {
        static int number = 0;
        const int process = world().allReduce(world().rank() == 0 ? static_cast<int>(::getpid()) : 0, MPI_MAX);
        path_ = (std::filesystem::temp_directory_path() / fmt::format("dnds_checkpoint_{}_{}", process, number++));
        if (world().rank() == 0)
            std::filesystem::create_directories(path_);
        world().barrier();
    }
    TemporaryFolder(const TemporaryFolder &) = delete;
    TemporaryFolder &operator=(const TemporaryFolder &) = delete;
    ~TemporaryFolder() {
        world().barrier();
        std::error_code ignored;
        if (world().rank() == 0)
            std::filesystem::remove_all(path_, ignored);
    }

    std::string file(const std::string &name) const { return (path_ / name).string(); }
    /// Names of all files, sorted.
    std::vector<std::string> names() const {
        std::vector<std::string> all;
        for (const auto &entry : std::filesystem::directory_iterator(path_))
            all.push_back(entry.path().filename().string());
        std::sort(all.begin(), all.end());
        return all;
    }

  private:
    std::filesystem::path path_;
};

inline std::string contentOf(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}
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
