/// @file TemporaryFile.hpp
/// @brief For tests only: a file that rank 0 writes and all ranks may read.
#pragma once

#include "DNDS/Mpi/BroadcastList.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <unistd.h>

namespace DNDS::Geom::test {

/// A file of the given content (none, without one) in the system's folder for temporary files; it goes with the object.
class TemporaryFile {
  public:
    /// Collective over MPI_COMM_WORLD.
    explicit TemporaryFile(const std::string &suffix) {
        static int number = 0;
        std::vector<std::string> name{
            (std::filesystem::temp_directory_path() / fmt::format("dnds_{}_{}{}", ::getpid(), number++, suffix))
                .string()};
        broadcastStrings(comm_, name);
        path_ = name[0];
    }
    TemporaryFile(const std::string &suffix, std::string_view content) : TemporaryFile(suffix) {
        if (comm_.rank() == 0)
            std::ofstream(path_, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
        comm_.barrier();
    }
    TemporaryFile(const TemporaryFile &) = delete;
    TemporaryFile &operator=(const TemporaryFile &) = delete;
    ~TemporaryFile() {
        comm_.barrier();
        if (comm_.rank() == 0) {
            std::error_code ignored;
            std::filesystem::remove(path_, ignored);
        }
    }

    const std::string &path() const { return path_; }

  private:
    CommunicatorView comm_{MPI_COMM_WORLD};
    std::string path_;
};

/// The message with which `read` fails for a file of this content; "" where it does not fail. The same on all ranks, or
/// the test fails. Collective.
template <class Read>
std::string failureOf(std::string_view content, Read &&read) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile file(".bad", content);
    std::vector<std::string> message{""};
    try {
        read(comm, file.path());
    } catch (const Error &error) {
        message[0] = error.message();
        EXPECT_NE(message[0].find(file.path()), std::string::npos) << "the file is not named: " << message[0];
    }
    const std::string mine = message[0];
    broadcastStrings(comm, message);
    EXPECT_EQ(mine, message[0]);
    return mine;
}

} // namespace DNDS::Geom::test
