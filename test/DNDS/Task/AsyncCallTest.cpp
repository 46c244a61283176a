#include "DNDS/Task/Graph.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <vector>

namespace DNDS::Task {
namespace {

using Values = ParArray<real, 1>;

struct Fixture {
    CommunicatorView comm{MPI_COMM_SELF};
    Values u{"u", comm};
    RowSpace rows{"rows", 100};
    Graph graph{"with output", comm};

    Fixture() {
        u.resize(100);
        graph.task("count", rows).readsWrites(u).run([](index row, const auto &counts) { counts(row) += 1; });
    }
};

/// Closed until `open` is called.
struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;

    void pass() {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return open; });
    }
    void unlock() {
        const std::lock_guard lock(mutex);
        open = true;
        changed.notify_all();
    }
};

TEST(AsyncCall, SeesItsStepWhileOthersGoOn) {
    Fixture f;
    Gate gate;
    std::vector<real> written;
    f.graph.asyncCall("write", 3).reads(f.u).run([&](const ReadRows<Values> &u) {
        gate.pass();
        written.push_back(u(99));
    });
    Plan plan = f.graph.compile();
    EXPECT_NE(plan.describe().find("write, async, every 3 runs"), std::string::npos) << plan.describe();
    for (int run = 0; run < 3; ++run) // the first run's output is in flight: no run waits for it
        plan.run();
    EXPECT_EQ(std::as_const(f.u)(99), 3);
    gate.unlock();
    for (int run = 3; run < 7; ++run)
        plan.run();
    plan.finish();
    EXPECT_EQ(written, (std::vector<real>{1, 4, 7}));
    plan.finish();
}

TEST(AsyncCall, FailsInTheNextOne) {
    Fixture f;
    f.graph.asyncCall("write").reads(f.u).run(
        [](const ReadRows<Values> & /*u*/) { throw DataError("the disk is full"); });
    Plan plan = f.graph.compile();
    plan.run();
    try {
        plan.run();
        FAIL() << "nothing was thrown";
    } catch (const DataError &error) {
        EXPECT_NE(error.message().find("'write'"), std::string::npos) << error.what();
        EXPECT_NE(error.message().find("the disk is full"), std::string::npos) << error.what();
    }
    plan.recover();
    plan.run();
    EXPECT_THROW(plan.finish(), DataError);
    plan.finish();
}

TEST(AsyncCall, ReadsOnly) {
    Fixture f;
    EXPECT_THROW(f.graph.asyncCall("write").readsWrites(f.u).run([](const WriteRows<Values> & /*u*/) {}),
                 ArgumentError);
    EXPECT_THROW(f.graph.asyncCall("write", 0).reads(f.u).run([](const ReadRows<Values> & /*u*/) {}), ArgumentError);
}

TEST(AsyncCall, MayOutliveItsGraphButNotItsPlan) {
    int calls = 0;
    {
        Fixture f;
        f.graph.asyncCall("write").reads(f.u).run([&](const ReadRows<Values> &u) { calls += u(0) == 1 ? 1 : 0; });
        Plan plan = f.graph.compile();
        plan.run();
    }
    EXPECT_EQ(calls, 1);
}

} // namespace
} // namespace DNDS::Task
