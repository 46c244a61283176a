// Crews beside other uses of oneTBB in the same program. Compiled without the thread sanitizer, which cannot see how
// oneTBB's own threads wait for each other.

#include "DNDS/Task/Crew.hpp"

#include <gtest/gtest.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace DNDS::Task {
namespace {

thread_local int inside = 0;

struct Sum {
    explicit Sum(index chunks) {
        work.chunks = chunks;
        work.context = this;
        work.run = [](void *context, index chunk) {
            auto &sum = *static_cast<Sum *>(context);
            sum.nested += inside++;
            tbb::parallel_for(index{0}, index{200}, [&](index i) { sum.value += chunk * 200 + i; });
            inside--;
        };
    }
    Crew::Work work;
    std::atomic<index> value = 0;
    std::atomic<int> nested = 0; ///< chunks that ran inside another one's wait for its parallel_for
};

constexpr index sumTo(index end) { return end * (end - 1) / 2; }

TEST(CrewBesideTbb, ChunksMayUseParallelFor) {
    for (const int threads : {1, 2, 3, 8}) {
        Crew crew(threads);
        for (int run = 0; run < 100; run++) {
            Sum first(20);
            Sum second(3);
            crew.begin(2);
            crew.publish(first.work);
            crew.publish(second.work);
            crew.end();
            EXPECT_FALSE(crew.failed());
            EXPECT_EQ(first.value, sumTo(20 * 200));
            EXPECT_EQ(second.value, sumTo(3 * 200));
            EXPECT_EQ(first.nested + second.nested, 0);
        }
    }
}

TEST(CrewBesideTbb, RunsInsideParallelFor) {
    std::atomic<int> wrong = 0;
    tbb::parallel_for(0, 40, [&](int) {
        Crew crew(3);
        Sum sum(8);
        crew.begin(1);
        crew.publish(sum.work);
        crew.end();
        wrong += sum.value == sumTo(8 * 200) ? 0 : 1;
    });
    EXPECT_EQ(wrong, 0);
}

TEST(CrewBesideTbb, RunsInAnArenaOfTheUser) {
    tbb::task_arena arena(2);
    arena.execute([] {
        Crew crew(3);
        Sum sum(8);
        crew.begin(1);
        crew.publish(sum.work);
        crew.end();
        EXPECT_EQ(sum.value, sumTo(8 * 200));
    });
}

// Workers that oneTBB keeps elsewhere never come: neither a run nor the destructor waits for them.
TEST(CrewBesideTbb, NeedsNoWorkerThatComes) {
    std::atomic<int> busy = 0;
    std::atomic<bool> go = false;
    tbb::task_arena arena(7, 0);
    for (int k = 0; k < 7; k++)
        arena.enqueue([&] {
            busy++;
            while (!go)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            busy--;
        });
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (busy < 7 && std::chrono::steady_clock::now() < limit)
        std::this_thread::yield();
    EXPECT_EQ(busy, 7);
    {
        Crew crew(4);
        std::vector<std::thread::id> ids(30);
        Crew::Work work;
        work.chunks = 30;
        work.context = &ids;
        work.run = [](void *context, index chunk) {
            (*static_cast<std::vector<std::thread::id> *>(context))[toSize(chunk)] = std::this_thread::get_id();
        };
        for (int run = 0; run < 10; run++) {
            crew.begin(1);
            crew.publish(work);
            crew.end();
            EXPECT_EQ(ids, std::vector(30, std::this_thread::get_id()));
        }
    }
    go = true;
    while (busy > 0)
        std::this_thread::yield();
}

} // namespace
} // namespace DNDS::Task
