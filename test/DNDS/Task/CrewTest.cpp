// Chunks of published work run once each, in any thread, and a run ends whatever the threads do.

#include "DNDS/Task/Crew.hpp"
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

    Crew::Work work;
    std::vector<int> ran;
    std::function<void(index)> also;
};

/// What `run` throws, or "".
std::string textOf(const Crew::Failure &failure) {
    try {
        if (failure.exception)
            std::rethrow_exception(failure.exception);
    } catch (const std::exception &error) {
        return error.what();
    }
    return "";
}

class CrewOf : public testing::TestWithParam<int> {
  protected:
    std::optional<Crew> held{std::in_place, GetParam()};
    Crew &crew = *held;
};

INSTANTIATE_TEST_SUITE_P(Threads, CrewOf, testing::Values(1, 2, 8));

class CrewWithWorkers : public CrewOf {};

INSTANTIATE_TEST_SUITE_P(Threads, CrewWithWorkers, testing::Values(2, 8));

// Each loop reads what the loops before it wrote, at other positions: waiting orders them.
TEST_P(CrewOf, WorkSeesWhatWasAwaited) {
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
        crew.begin(static_cast<index>(loops.size()));
        for (Loop &loop : loops) {
            crew.publish(loop.work);
            crew.wait(loop.work);
            from.swap(to);
            const std::vector<std::int64_t> before = expected;
            for (std::size_t i = 0; i < rows; i++)
                expected[i] = (3 * before[(i * 7 + 5) % rows] + 1) & 0xffff;
            for (std::int64_t &value : from)
                value &= 0xffff;
        }
        crew.end();
        ASSERT_EQ(from, expected) << "run " << run;
    }
}

// As a plan does: independent loops are published ahead, waited for in another order, with chunks run in between.
TEST_P(CrewOf, ManyWorksInManyRuns) {
    EXPECT_EQ(crew.threads(), GetParam());
    std::mt19937 random(11);
    std::deque<Loop> loops;
    for (int k = 0; k < 20; k++)
        loops.emplace_back(std::uniform_int_distribution<index>(0, 9)(random));
    for (int run = 0; run < 3000; run++) {
        const std::size_t used = random() % (loops.size() + 1);
        crew.begin(static_cast<index>(used));
        EXPECT_FALSE(crew.help()) << "there is no work yet";
        int polls = 0;
        for (std::size_t k = 0; k < used; k++) {
            crew.publish(loops[k].work);
            switch (random() % 4) {
            case 0:
                crew.help();
                break;
            case 1:
                crew.wait(loops[random() % (k + 1)].work, [&] { polls++; });
                break;
            default:
                break;
            }
        }
        if (random() % 2 == 0)
            for (std::size_t k = used; k-- > 0;)
                crew.wait(loops[k].work);
        crew.end();
        for (std::size_t k = 0; k < used; k++)
            loops[k].expectRan(1);
        if (testing::Test::HasFailure())
            return;
    }
}

TEST(Crew, OfOneRunsChunksInTheOrderOfPublication) {
    Crew crew(1);
    std::vector<int> order;
    Loop first(2, [&](index chunk) { order.push_back(static_cast<int>(chunk)); });
    Loop second(2, [&](index chunk) { order.push_back(10 + static_cast<int>(chunk)); });
    crew.begin(2);
    crew.publish(first.work);
    crew.publish(second.work);
    EXPECT_TRUE(order.empty());
    EXPECT_TRUE(crew.help());
    EXPECT_EQ(order, (std::vector{0}));
    crew.wait(first.work);
    EXPECT_EQ(order, (std::vector{0, 1}));
    crew.end();
    EXPECT_EQ(order, (std::vector{0, 1, 10, 11}));
}

TEST_P(CrewOf, TheFirstFailureIsFoundWhateverThreadsDo) {
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
            crew.begin(3);
            for (Loop &loop : loops)
                crew.publish(loop.work);
            crew.end();
            ASSERT_TRUE(crew.failed());
            const Crew::Failure &failure = crew.failure();
            EXPECT_EQ(failure.work, &loops[toSize(failing / 9)].work);
            EXPECT_EQ(failure.chunk, failing % 9);
            EXPECT_NE(textOf(failure).find(fmt::format("at {}", failing)), std::string::npos) << textOf(failure);
            // What comes before it has run; nothing ran twice.
            for (int at = 0; at < 27; at++) {
                const int ran = loops[toSize(at / 9)].ran[toSize(at % 9)];
                if (at <= failing)
                    EXPECT_EQ(ran, 1) << at;
                else
                    EXPECT_LE(ran, 1) << at;
            }
        }
    Loop whole(5);
    crew.begin(1);
    EXPECT_FALSE(crew.failed());
    crew.publish(whole.work);
    crew.end();
    EXPECT_FALSE(crew.failed());
    EXPECT_FALSE(crew.failure().exception);
    whole.expectRan(1);
}

TEST_P(CrewOf, WorkAfterAFailureIsSkippedAndDone) {
    Loop failing(3, [](index) { throw std::runtime_error("no"); });
    Loop later(1000);
    crew.begin(2);
    crew.publish(failing.work);
    crew.wait(failing.work);
    EXPECT_TRUE(crew.failed());
    crew.publish(later.work);
    crew.wait(later.work);
    EXPECT_TRUE(Crew::done(later.work));
    crew.end();
    later.expectRan(0);
    EXPECT_EQ(textOf(crew.failure()), "no");
    EXPECT_EQ(crew.failure().chunk, 0);
}

TEST_P(CrewOf, AnExceptionOfTheCallingThreadAbandonsTheRun) {
    for (int run = 0; run < 100; run++) {
        std::atomic<int> inside = 0;
        Loop loop(200, [&](index) {
            inside++;
            std::this_thread::sleep_for(20us);
            inside--;
        });
        crew.begin(1);
        try {
            crew.publish(loop.work);
            crew.wait(loop.work, [] { throw std::runtime_error("a peer failed"); });
            FAIL() << "nothing was thrown";
        } catch (const std::runtime_error &) {
            crew.abandon();
        }
        EXPECT_EQ(inside, 0);
        EXPECT_TRUE(Crew::done(loop.work));
        EXPECT_TRUE(crew.failed());
        EXPECT_FALSE(crew.failure().exception);
        crew.abandon();
    }
}

TEST_P(CrewOf, MayBeDestroyedInARun) {
    for (int run = 0; run < 100; run++) {
        Loop loop(50, [&](index) { std::this_thread::sleep_for(10us); });
        {
            Crew other(GetParam());
            other.begin(1);
            other.publish(loop.work);
            if (run % 2 == 0)
                other.help();
        }
        EXPECT_TRUE(Crew::done(loop.work));
    }
}

TEST_P(CrewOf, ComesBackFromALongRest) {
    for (int run = 0; run < 20; run++) {
        Loop loop(100);
        crew.begin(2);
        std::this_thread::sleep_for(run % 2 == 0 ? 3ms
                                                 : 200us); // as if MPI had nothing: workers leave, or are about to
        crew.publish(loop.work);
        crew.end();
        loop.expectRan(1);
        std::this_thread::sleep_for(1ms);
    }
}

TEST_P(CrewOf, ChunksRoundAsTheCallingThreadDoes) {
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
        crew.begin(1);
        crew.publish(loop.work);
        crew.end();
        std::fesetround(usual);
        EXPECT_EQ(std::exchange(modes, {}), std::set{mode});
    }
}

// A chunk may itself compute with a crew of its own.
TEST_P(CrewOf, CrewsInsideChunks) {
    std::atomic<int> inner = 0;
    Loop outer(6, [&](index) {
        Loop loop(20, [&](index) { inner++; });
        Crew own(GetParam());
        own.begin(1);
        own.publish(loop.work);
        own.end();
    });
    crew.begin(1);
    crew.publish(outer.work);
    crew.end();
    EXPECT_FALSE(crew.failed());
    EXPECT_EQ(inner, 6 * 20);
}

TEST_P(CrewWithWorkers, WorkersTakePart) {
    // The calling thread runs nothing.
    Loop loop(50);
    crew.begin(1);
    crew.publish(loop.work);
    const auto limit = std::chrono::steady_clock::now() + 30s;
    while (!Crew::done(loop.work) && std::chrono::steady_clock::now() < limit)
        std::this_thread::sleep_for(100us);
    EXPECT_TRUE(Crew::done(loop.work));
    crew.end();
    loop.expectRan(1);
}

// No worker is lost between a last look and leaving: work that is published at any moment of an idle time is taken.
TEST_P(CrewWithWorkers, WorkersComeToWorkPublishedAtAnyMoment) {
    std::deque<Loop> loops;
    constexpr int moments = 300;
    for (int k = 0; k < moments; k++)
        loops.emplace_back(1);
    crew.begin(moments);
    for (int k = 0; k < moments; k++) {
        crew.publish(loops[toSize(k)].work);
        const auto limit = std::chrono::steady_clock::now() + 30s;
        while (!Crew::done(loops[toSize(k)].work) && std::chrono::steady_clock::now() < limit)
            std::this_thread::yield();
        ASSERT_TRUE(Crew::done(loops[toSize(k)].work)) << k;
        const auto idleUntil = std::chrono::steady_clock::now() + k * 1us;
        while (std::chrono::steady_clock::now() < idleUntil) {
        }
    }
    crew.end();
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

TEST_P(CrewOf, AForkedChildHasOneThread) {
    Loop warm(100);
    crew.begin(1);
    crew.publish(warm.work);
    crew.end();
    EXPECT_EQ(inChild([&] {
                  held.reset();
                  return 3;
              }),
              3);
    EXPECT_EQ(inChild([&] {
                  Loop loop(20);
                  crew.begin(1);
                  crew.publish(loop.work);
                  crew.end();
                  return std::ranges::count(loop.ran, 1) == 20 ? 4 : 1;
              }),
              4);
    // The parent goes on.
    warm.expectRan(1);
    crew.begin(1);
    crew.publish(warm.work);
    crew.end();
    warm.expectRan(1);
}

TEST_P(CrewOf, AChildForkedInARunDoesNotWaitForWorkersOfItsParent) {
    std::atomic<bool> go = false;
    Loop loop(64, [&](index) {
        while (!go)
            std::this_thread::sleep_for(100us);
    });
    crew.begin(1);
    crew.publish(loop.work);
    std::this_thread::sleep_for(5ms); // workers are in chunks now, probably
    EXPECT_EQ(inChild([&] {
                  held.reset();
                  return 5;
              }),
              5);
    go = true;
    crew.end();
    loop.expectRan(1);
}
#endif

} // namespace
} // namespace DNDS::Task
