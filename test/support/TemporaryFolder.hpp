/// @file TemporaryFolder.hpp
/// @brief A folder for the files of a test on all ranks.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <unistd.h>

namespace DNDS::test {

inline const CommunicatorView &world() {
    static const CommunicatorView comm(MPI_COMM_WORLD);
    return comm;
}

/// All bytes of a file; "" if it does not exist. Local.
inline std::string contentOf(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// A folder that no other test uses; it goes with the object. Collective over MPI_COMM_WORLD.
class TemporaryFolder {
  public:
    TemporaryFolder() {
        static int number = 0;
        const int process = world().allReduce(world().rank() == 0 ? static_cast<int>(::getpid()) : 0, MPI_MAX);
        path_ = std::filesystem::temp_directory_path() / fmt::format("dnds_test_{}_{}", process, number++);
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

    std::string path() const { return path_.string(); }
    std::string file(const std::string &name) const { return (path_ / name).string(); }
    std::string content(const std::string &name) const { return contentOf(file(name)); }
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

} // namespace DNDS::test
