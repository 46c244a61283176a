// Chunks of published work run once each, in any thread, and a run ends whatever the threads do.

#include "DNDS/Task/ThreadTeam.hpp"
#include "DNDS/Base/Error.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace DNDS::Task {
namespace {

using namespace std::chrono_literals;

/// Work that counts how often each chunk ran, and does `also`.
struct Loop {
    explicit Loop(index chunks, std::function<void(index)> alsoRun = {}) : also(std::move(alsoRun)) {
        work.chunks = chunks;
        work.context = this;
        work.run = [](void *context, index chunk) {
            auto &loop = *static_cast<Loop *>(context);
            loop.ran[toSize(chunk)]++; // a race if two threads run one chunk
            if (loop.also)
                loop.also(chunk);
        };
        ran.resize(toSize(chunks));
    }
    /// Each chunk ran `times` times since this was asked last.
    void expectRan(int times) {
        for (std::size_t c = 0; c < ran.size(); c++)
            EXPECT_EQ(std::exchange(ran[c], 0), times) << "chunk " << c << " of " << ran.size();
    }

    ThreadTeam::Loop work;
    std::vector<int> ran;
    std::function<void(index)> also;
};

/// The message of the exception of `run`, or "".
std::string textOf(const ThreadTeam::Failure &failure) {
    try {
        if (failure.exception)
            std::rethrow_exception(failure.exception);
    } catch (const std::exception &error) {
        return error.what();
    }
    return "";
}

class ThreadTeamOf : public testing::TestWithParam<int> {
  protected:
    std::optional<ThreadTeam> held{std::in_place, GetParam()};
    ThreadTeam &team = *held;
};

INSTANTIATE_TEST_SUITE_P(Threads, ThreadTeamOf, testing::Values(1, 2, 8));

class ThreadTeamWithWorkers : public ThreadTeamOf {};

INSTANTIATE_TEST_SUITE_P(Threads, ThreadTeamWithWorkers, testing::Values(2, 8));

// Each loop reads what the loops before it wrote, at other positions: waiting orders them.
TEST_P(ThreadTeamOf, WorkSeesWhatWasAwaited) {
    constexpr std::size_t rows = 64;
    std::mt19937 random(7);
    std::vector<std::int64_t> from(rows);
    std::vector<std::int64_t> to(rows);
    std::deque<Loop> loops;
    for (const index chunks : {64, 8, 1, 16, 2, 32})
        loops.emplace_back(chunks, [&, chunks](index chunk) {
            const std::size_t length = rows / toSize(chunks);
            for (std::size_t i = toSize(chunk) * length; i < (toSize(chunk) + 1) * length; i++)
                to[i] = 3 * from[(i * 7 + 5) % rows] + 1;
        });
    std::vector<std::int64_t> expected(rows);
    for (int run = 0; run < 2000; run++) {
        team.begin(static_cast<index>(loops.size()));
        for (Loop &loop : loops) {
            team.publish(loop.work);
            team.wait(loop.work);
            from.swap(to);
            const std::vector<std::int64_t> before = expected;
            for (std::size_t i = 0; i < rows; i++)
                expected[i] = (3 * before[(i * 7 + 5) % rows] + 1) & 0xffff;
            for (std::int64_t &value : from)
                value &= 0xffff;
        }
        team.end();
        ASSERT_EQ(from, expected) << "run " << run;
    }
}

// As a plan does: independent loops are published ahead, waited for in another order, with chunks run in between.
TEST_P(ThreadTeamOf, ManyWorksInManyRuns) {
    EXPECT_EQ(team.threads(), GetParam());
    std::mt19937 random(11);
    std::deque<Loop> loops;
    for (int k = 0; k < 20; k++)
        loops.emplace_back(std::uniform_int_distribution<index>(0, 9)(random));
    for (int run = 0; run < 3000; run++) {
        const std::size_t used = random() % (loops.size() + 1);
        team.begin(static_cast<index>(used));
        EXPECT_FALSE(team.help()) << "there is no work yet";
        int polls = 0;
        for (std::size_t k = 0; k < used; k++) {
            team.publish(loops[k].work);
            switch (random() % 4) {
            case 0:
                team.help();
                break;
            case 1:
                team.wait(loops[random() % (k + 1)].work, [&] { polls++; });
                break;
            default:
                break;
            }
        }
        if (random() % 2 == 0)
            for (std::size_t k = used; k-- > 0;)
                team.wait(loops[k].work);
        team.end();
        for (std::size_t k = 0; k < used; k++)
            loops[k].expectRan(1);
        if (testing::Test::HasFailure())
            return;
    }
}

TEST(ThreadTeam, OfOneRunsChunksInTheOrderOfPublication) {
    ThreadTeam team(1);
    std::vector<int> order;
    Loop first(2, [&](index chunk) { order.push_back(static_cast<int>(chunk)); });
    Loop second(2, [&](index chunk) { order.push_back(10 + static_cast<int>(chunk)); });
    team.begin(2);
    team.publish(first.work);
    team.publish(second.work);
    EXPECT_TRUE(order.empty());
    EXPECT_TRUE(team.help());
    EXPECT_EQ(order, (std::vector{0}));
    team.wait(first.work);
    EXPECT_EQ(order, (std::vector{0, 1}));
    team.end();
    EXPECT_EQ(order, (std::vector{0, 1, 10, 11}));
}

TEST_P(ThreadTeamOf, TheFirstFailureIsFoundWhateverThreadsDo) {
    constexpr index chunks = 9;
    for (int failing = 0; failing < 27; failing++)
        for (int later = failing; later < 27; later += 5) {
            std::deque<Loop> loops;
            for (int k = 0; k < 3; k++)
                loops.emplace_back(chunks, [=](index chunk) {
                    const int at = k * 9 + static_cast<int>(chunk);
                    if (at == failing)
                        std::this_thread::yield(); // the later one is often found first
                    if (at == failing || at == later)
                        throw DataError(fmt::format("at {}", at));
                });
            team.begin(3);
            for (Loop &loop : loops)
                team.publish(loop.work);
            team.end();
            ASSERT_TRUE(team.failed());
            const ThreadTeam::Failure &failure = team.failure();
            EXPECT_EQ(failure.loop, &loops[toSize(failing / 9)].work);
            EXPECT_EQ(failure.chunk, failing % 9);
            EXPECT_NE(textOf(failure).find(fmt::format("at {}", failing)), std::string::npos) << textOf(failure);
            // All parts before it have run; none ran twice.
            for (int at = 0; at < 27; at++) {
                const int ran = loops[toSize(at / 9)].ran[toSize(at % 9)];
                if (at <= failing)
                    EXPECT_EQ(ran, 1) << at;
                else
                    EXPECT_LE(ran, 1) << at;
            }
        }
    Loop whole(5);
    team.begin(1);
    EXPECT_FALSE(team.failed());
    team.publish(whole.work);
    team.end();
    EXPECT_FALSE(team.failed());
    EXPECT_FALSE(team.failure().exception);
    whole.expectRan(1);
}

TEST_P(ThreadTeamOf, WorkAfterAFailureIsSkippedAndDone) {
    Loop failing(3, [](index) { throw std::runtime_error("no"); });
    Loop later(1000);
    team.begin(2);
    team.publish(failing.work);
    team.wait(failing.work);
    EXPECT_TRUE(team.failed());
    team.publish(later.work);
    team.wait(later.work);
    EXPECT_TRUE(ThreadTeam::done(later.work));
    team.end();
    later.expectRan(0);
    EXPECT_EQ(textOf(team.failure()), "no");
    EXPECT_EQ(team.failure().chunk, 0);
}

TEST_P(ThreadTeamOf, AnExceptionOfTheCallingThreadAbandonsTheRun) {
    for (int run = 0; run < 100; run++) {
        std::atomic<int> inside = 0;
        Loop loop(200, [&](index) {
            inside++;
            std::this_thread::sleep_for(20us);
            inside--;
        });
        team.begin(1);
        try {
            team.publish(loop.work);
            team.wait(loop.work, [] { throw std::runtime_error("a peer failed"); });
            FAIL() << "nothing was thrown";
        } catch (const std::runtime_error &) {
            team.abandon();
        }
        EXPECT_EQ(inside, 0);
        EXPECT_TRUE(ThreadTeam::done(loop.work));
        EXPECT_TRUE(team.failed());
        EXPECT_FALSE(team.failure().exception);
        team.abandon();
    }
}

TEST_P(ThreadTeamOf, MayBeDestroyedInARun) {
    for (int run = 0; run < 100; run++) {
        Loop loop(50, [&](index) { std::this_thread::sleep_for(10us); });
        {
            ThreadTeam other(GetParam());
            other.begin(1);
            other.publish(loop.work);
            if (run % 2 == 0)
                other.help();
        }
        EXPECT_TRUE(ThreadTeam::done(loop.work));
    }
}

TEST_P(ThreadTeamOf, ComesBackFromALongRest) {
    for (int run = 0; run < 20; run++) {
        Loop loop(100);
        team.begin(2);
        std::this_thread::sleep_for(run % 2 == 0 ? 3ms
                                                 : 200us); // as if MPI had nothing: workers leave, or are about to
        team.publish(loop.work);
        team.end();
        loop.expectRan(1);
        std::this_thread::sleep_for(1ms);
    }
}

TEST_P(ThreadTeamOf, ChunksRoundAsTheCallingThreadDoes) {
    const int usual = std::fegetround();
    std::mutex mutex;
    std::set<int> modes;
    Loop loop(500, [&](index) {
        std::this_thread::sleep_for(2us);
        const std::scoped_lock lock(mutex);
        modes.insert(std::fegetround());
    });
    for (const int mode : {FE_UPWARD, FE_TOWARDZERO, usual}) {
        std::fesetround(mode);
        team.begin(1);
        team.publish(loop.work);
        team.end();
        std::fesetround(usual);
        EXPECT_EQ(std::exchange(modes, {}), std::set{mode});
    }
}

// A chunk may itself compute with a team of its own.
TEST_P(ThreadTeamOf, CrewsInsideChunks) {
    std::atomic<int> inner = 0;
    Loop outer(6, [&](index) {
        Loop loop(20, [&](index) { inner++; });
        ThreadTeam own(GetParam());
        own.begin(1);
        own.publish(loop.work);
        own.end();
    });
    team.begin(1);
    team.publish(outer.work);
    team.end();
    EXPECT_FALSE(team.failed());
    EXPECT_EQ(inner, 6 * 20);
}

TEST_P(ThreadTeamWithWorkers, WorkersTakePart) {
    // The calling thread runs nothing.
    Loop loop(50);
    team.begin(1);
    team.publish(loop.work);
    const auto limit = std::chrono::steady_clock::now() + 30s;
    while (!ThreadTeam::done(loop.work) && std::chrono::steady_clock::now() < limit)
        std::this_thread::sleep_for(100us);
    EXPECT_TRUE(ThreadTeam::done(loop.work));
    team.end();
    loop.expectRan(1);
}

// No worker is lost between a last look and leaving: work that is published at any moment of an idle time is taken.
TEST_P(ThreadTeamWithWorkers, WorkersComeToWorkPublishedAtAnyMoment) {
    std::deque<Loop> loops;
    constexpr int moments = 300;
    for (int k = 0; k < moments; k++)
        loops.emplace_back(1);
    team.begin(moments);
    for (int k = 0; k < moments; k++) {
        team.publish(loops[toSize(k)].work);
        const auto limit = std::chrono::steady_clock::now() + 30s;
        while (!ThreadTeam::done(loops[toSize(k)].work) && std::chrono::steady_clock::now() < limit)
            std::this_thread::yield();
        ASSERT_TRUE(ThreadTeam::done(loops[toSize(k)].work)) << k;
        const auto idleUntil = std::chrono::steady_clock::now() + k * 1us;
        while (std::chrono::steady_clock::now() < idleUntil) {
        }
    }
    team.end();
}

#if !defined(__SANITIZE_THREAD__) // the thread sanitizer does not follow forks of programs with threads
/// The exit code of a child that calls `run`; -1 if it takes more than 20 seconds.
template <class Run>
int inChild(Run &&run) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        _exit(run());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_P(ThreadTeamOf, AForkedChildHasOneThread) {
    Loop warm(100);
    team.begin(1);
    team.publish(warm.work);
    team.end();
    EXPECT_EQ(inChild([&] {
                  held.reset();
                  return 3;
              }),
              3);
    EXPECT_EQ(inChild([&] {
                  Loop loop(20);
                  team.begin(1);
                  team.publish(loop.work);
                  team.end();
                  return std::ranges::count(loop.ran, 1) == 20 ? 4 : 1;
              }),
              4);
    // The parent continues.
    warm.expectRan(1);
    team.begin(1);
    team.publish(warm.work);
    team.end();
    warm.expectRan(1);
}

TEST_P(ThreadTeamOf, AChildForkedInARunDoesNotWaitForWorkersOfItsParent) {
    std::atomic<bool> go = false;
    Loop loop(64, [&](index) {
        while (!go)
            std::this_thread::sleep_for(100us);
    });
    team.begin(1);
    team.publish(loop.work);
    std::this_thread::sleep_for(5ms); // workers are in chunks now, probably
    EXPECT_EQ(inChild([&] {
                  held.reset();
                  return 5;
              }),
              5);
    go = true;
    team.end();
    loop.expectRan(1);
}
#endif

} // namespace
} // namespace DNDS::Task
