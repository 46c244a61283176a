#include "DNDS/Mpi/RollCall.hpp"

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/NodeArena.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace DNDS {
namespace {

/// As where DNDS_WAIT_TIMEOUT is set.
class RollCall : public ::testing::Test {
  protected:
    RollCall() { ActivityScope::on() = true; }
    ~RollCall() override { ActivityScope::on() = before_; }

    /// This rank's own text.
    static std::string mine() {
        const NodeTopology &node = CommunicatorContext::of(MPI_COMM_WORLD)->node();
        return node.arena->activity(node.arena->nodeRank()).text;
    }
    static bool alone() { return CommunicatorContext::of(MPI_COMM_WORLD)->node().arena == nullptr; }

  private:
    bool before_ = ActivityScope::on();
};

TEST_F(RollCall, NamesCallsWithinCalls) {
    if (alone())
        GTEST_SKIP() << "needs a peer on this node";
    EXPECT_EQ(mine(), "");
    {
        const ActivityScope outer("pull of", "state", 812);
        EXPECT_EQ(mine(), "pull of 'state' (number 812)");
        {
            const ActivityScope inner("MPI_Allreduce");
            EXPECT_EQ(mine(), "pull of 'state' (number 812), MPI_Allreduce");
        }
        EXPECT_EQ(mine(), "pull of 'state' (number 812)");
    }
    EXPECT_EQ(mine(), "");
    const std::string name(1000, 'x');
    const ActivityScope longOne("pull of", name);
    EXPECT_EQ(mine().size(), ActivityRecord::maxBytes - 1);
}

TEST_F(RollCall, NamesTheCallsOfAllThreads) {
    if (alone())
        GTEST_SKIP() << "needs a peer on this node";
    {
        const ActivityScope waits("wait for the pull of", "state");
        std::thread([] {
            const ActivityScope other("pull of", "p");
            EXPECT_EQ(mine(), "wait for the pull of 'state'; on another thread: pull of 'p'");
        }).join();
        EXPECT_EQ(mine(), "wait for the pull of 'state'");
        const ActivityScope inner("MPI_Allreduce");
        EXPECT_EQ(mine(), "wait for the pull of 'state', MPI_Allreduce");
    }
    EXPECT_EQ(mine(), "");
}

TEST_F(RollCall, PutsRanksTogether) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    if (alone())
        GTEST_SKIP() << "needs a peer on this node";
    const NodeTopology &node = CommunicatorContext::of(comm)->node();
    const ActivityScope activity("test of", "x");
    MPI_Barrier(comm.handle()); // called directly, so the roll call does not see it
    const std::string text = rollCall(node.arena.get());
    MPI_Barrier(comm.handle());
    EXPECT_NE(text.find(fmt::format("; ranks 0-{}: test of 'x' for", comm.size() - 1)), std::string::npos) << text;
}

TEST_F(RollCall, IsNotAnsweredByForkedChildren) {
    if (alone())
        GTEST_SKIP() << "needs a peer on this node";
    const ActivityScope activity("test of", "x");
    const pid_t child = fork();
    if (child == 0) {
        const ActivityScope wrong("child");
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(mine(), "test of 'x'");
}

TEST_F(RollCall, MayBeWrittenByThreads) {
    if (alone())
        GTEST_SKIP() << "needs a peer on this node";
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([] {
            for (int k = 0; k < 1000; k++)
                const ActivityScope activity("a call of a thread");
        });
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(mine(), "");
}

TEST_F(RollCall, IsSilentUnlessItIsAskedFor) {
    if (alone())
        GTEST_SKIP() << "needs a peer on this node";
    ActivityScope::on() = false;
    const ActivityScope activity("test of", "x");
    EXPECT_EQ(mine(), "");
    EXPECT_EQ(rollCall(CommunicatorContext::of(MPI_COMM_WORLD)->node().arena.get()), "");
}

} // namespace
} // namespace DNDS
