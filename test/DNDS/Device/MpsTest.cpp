// Finding a daemon of NVIDIA's MPS, in folders that are made up.

#include "DNDS/Device/Mps.hpp"

#include "DNDS/Base/Environment.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace DNDS {
namespace {

class Mps : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/dnds_mps_XXXXXX"; // short: names of sockets are
        ASSERT_NE(::mkdtemp(name), nullptr);
        folder_ = name;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    std::string control() const { return folder_ + "/control"; }
    /// Bound to `control`.
    int socketOf(int type) const {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, control().c_str(), sizeof(address.sun_path) - 1);
        const int made = ::socket(AF_UNIX, type, 0);
        EXPECT_EQ(::bind(made, reinterpret_cast<const sockaddr *>(&address), sizeof(address)), 0);
        return made;
    }

    std::string folder_;
};

TEST_F(Mps, IsNotInFoldersWhereNobodyListens) {
    EXPECT_FALSE(Device::mpsAnswers(folder_ + "/nothing"));
    EXPECT_FALSE(Device::mpsAnswers(folder_)) << "no control";
    std::ofstream(control()) << "a file";
    EXPECT_FALSE(Device::mpsAnswers(folder_));
    EXPECT_FALSE(Device::mpsAnswers(std::string(300, 'x')));
}

TEST_F(Mps, AnswersThroughASocketUntilItEnds) {
    for (const int type : {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM}) {
        const int daemon = socketOf(type);
        if (type != SOCK_DGRAM) {
            ASSERT_EQ(::listen(daemon, 1), 0);
        }
        EXPECT_TRUE(Device::mpsAnswers(folder_));
        ::close(daemon);
        EXPECT_FALSE(Device::mpsAnswers(folder_)) << "left behind by a daemon that was killed";
        std::filesystem::remove(control());
    }
}

TEST_F(Mps, AnswersThroughAPipeUntilItEnds) {
    ASSERT_EQ(::mkfifo(control().c_str(), 0600), 0);
    EXPECT_FALSE(Device::mpsAnswers(folder_));
    const int daemon = ::open(control().c_str(), O_RDONLY | O_NONBLOCK);
    ASSERT_GE(daemon, 0);
    EXPECT_TRUE(Device::mpsAnswers(folder_));
    ::close(daemon);
    EXPECT_FALSE(Device::mpsAnswers(folder_));
}

TEST_F(Mps, IsLookedForWhereItsVariableSays) {
    ::unsetenv("CUDA_MPS_PIPE_DIRECTORY");
    EXPECT_EQ(mpsFolder(), "/tmp/nvidia-mps");
    ::setenv("CUDA_MPS_PIPE_DIRECTORY", folder_.c_str(), 1);
    EXPECT_EQ(mpsFolder(), folder_);
    ::unsetenv("CUDA_MPS_PIPE_DIRECTORY");
}

} // namespace
} // namespace DNDS
