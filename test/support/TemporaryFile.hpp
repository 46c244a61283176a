/// @file TemporaryFile.hpp
/// @brief For tests only: a file that rank 0 writes and all ranks may read.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

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

/// A message without the rank and the function that errors of one rank end in.
inline std::string_view withoutRank(std::string_view message) {
    return message.ends_with(')') ? message.substr(0, message.rfind(" (rank ")) : message;
}

/// The message with which `read` fails for a file; "" where it does not fail.
template <class Read>
std::string failureOn(const CommunicatorView &comm, const std::string &path, Read &&read) {
    try {
        read(comm, path);
    } catch (const Error &error) {
        EXPECT_NE(error.message().find(path), std::string::npos) << "the file is not named: " << error.message();
        return error.message();
    }
    return "";
}

/// The same for a file of this content. The same on all ranks and on one rank alone, or the test fails. Collective.
template <class Read>
std::string failureOf(std::string_view content, Read &&read, const std::string &suffix = ".bad") {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile file(suffix, content);
    const std::string mine = failureOn(comm, file.path(), read);
    std::vector<std::string> message{mine};
    broadcastStrings(comm, message);
    EXPECT_EQ(mine, message[0]);
    if (comm.rank() == 0) {
        EXPECT_EQ(withoutRank(mine), withoutRank(failureOn(CommunicatorView(MPI_COMM_SELF), file.path(), read)))
            << "on one rank alone";
    }
    return mine;
}

} // namespace DNDS::Geom::test
