// Calls that throw on a second thread where MPI runs without MPI_THREAD_MULTIPLE.

#include "OnThreads.hpp"
#include "RingField.hpp"

namespace DNDS {
namespace {

using namespace DNDS::test;

class FunneledThreads : public testing::Test {
  protected:
    void SetUp() override {
        if (mpiServesAllThreads())
            GTEST_SKIP() << "MPI serves several threads";
    }
};

TEST_F(FunneledThreads, ASecondThreadIsToldToAskForMore) {
    RealField field = ringField("field", MPI_COMM_WORLD);
    RealField other = ringField("other", MPI_COMM_WORLD);
    other.trans.initPersistentPull();
    BlockedStart blocked(field);
    std::thread second([&] {
        blocked.awaitEntry();
        const auto expectTold = [](auto &&call, const std::string &what) {
            const std::string text = messageOf<StateError>(call);
            expectContains(text, what);
            expectContains(text, "ask for MPI_THREAD_MULTIPLE");
        };
        expectTold([&] { blocked.exchange().start(); }, "the pull of 'field' while another thread");
        expectTold([&] { other.trans.startPersistentPull(); }, "the pull of 'other' while another thread");
        expectTold([] { ParArray<real, 1>("u", MPI_COMM_WORLD); }, "an array is made while another thread");
        expectTold([] { (void)GlobalMapping::create(MPI_COMM_WORLD, 3); }, "is set up while another thread");
        blocked.letGo();
    });
    blocked.exchange().start();
    second.join();
    blocked.exchange().wait();
    fill(field, 1);
    blocked.exchange().start();
    blocked.exchange().wait();
    EXPECT_EQ(wrongGhosts(field, 1), 0);
    expectPullWorks(other, 2);
}

TEST_F(FunneledThreads, ThreadsMayTakeTurns) {
    for (int round = 0; round < 5; ++round)
        std::thread([&] {
            RealField field = ringField("field", MPI_COMM_WORLD);
            field.trans.initPersistentPull();
            expectPullWorks(field, round);
        }).join();
}

} // namespace
} // namespace DNDS
