// The main of test programs that run on several ranks.
//
// Rank 0 prints as GoogleTest does. Every other rank writes a log; logs of ranks with failures are printed when the run
// ends. After each test the ranks meet, on a communicator of their own, and agree on whether it failed anywhere.
//
// A program never waits for ever:
//   - An exception that leaves a test body ends the job with its message (on one rank it is a failure like any other).
//   - A rank that failed a test and then waits a while for the others ends the job.
//   - After some time in all, every rank says which test it is in and ends the job.
//
// DNDS_TEST_LOG_DIR=FOLDER: where ranks other than 0 write `rank<r>.log`; unset: dnds_test_logs where the program runs.
// DNDS_TEST_FAILURE_GRACE_S=SECONDS: how long a rank that failed a test waits for the others (10).
// DNDS_TEST_TIMEOUT_S=SECONDS: how long a test program may take in all (50).
// DNDS_TEST_RANKS=NUMBER: how many ranks there must be; unset: any number.
// DNDS_TEST_SEED=NUMBER|random: the seed for random input, which rank 0 prints; unset: always the same.
// DNDS_TEST_MPI_THREADS=multiple: MPI is started for calls by several threads.

#include "support/MpiTest.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::seconds;

int rank = 0;
int size = 1;
std::uint64_t seedValue = 20240229;

std::string environment(const char *name, const std::string &fallback) {
    const char *value = std::getenv(name);
    return value && *value ? value : fallback;
}

int environmentInt(const char *name, int fallback) {
    const std::string text = environment(name, std::to_string(fallback));
    try {
        return std::stoi(text);
    } catch (const std::exception &) {
        std::fprintf(stderr, "%s is '%s', which is not a number\n", name, text.c_str());
        MPI_Abort(MPI_COMM_WORLD, 1);
        std::abort();
    }
}

/// Current activity of this rank, read by the watchdog and the terminate handler.
class Progress {
  public:
    void enterTest(std::string name) {
        const std::lock_guard lock(mutex_);
        test_ = std::move(name);
        failures_.clear();
        since_ = Clock::now();
    }
    void leaveTest() {
        const std::lock_guard lock(mutex_);
        if (!test_.empty())
            test_ = "between tests, after " + test_;
    }
    void addFailure(const std::string &text) {
        const std::lock_guard lock(mutex_);
        failures_ += text + '\n';
    }
    std::string describe() const {
        const std::lock_guard lock(mutex_);
        std::ostringstream out;
        out << "[rank " << rank << " of " << size << "] " << (test_.empty() ? "outside of tests" : test_) << " (since "
            << duration_cast<milliseconds>(Clock::now() - since_).count() << " ms)\n";
        if (!failures_.empty())
            out << failures_;
        return out.str();
    }

  private:
    mutable std::mutex mutex_;
    std::string test_;
    std::string failures_;
    Clock::time_point since_ = Clock::now();
};

Progress &progress() {
    static Progress instance;
    return instance;
}

void report(const std::string &text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
    std::fflush(stdout);
}

[[noreturn]] void endJob(const std::string &reason) {
    report(progress().describe() + "[rank " + std::to_string(rank) + "] " + reason + '\n');
    std::this_thread::sleep_for(milliseconds(300)); // MPICH's mpiexec drops pending output when a job aborts
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

[[noreturn]] void onTerminate() {
    std::string what = "std::terminate was called without an exception";
    if (const std::exception_ptr current = std::current_exception()) {
        try {
            std::rethrow_exception(current);
        } catch (const std::exception &error) {
            what = std::string("uncaught exception: ") + error.what();
        } catch (...) {
            what = "uncaught exception of unknown type";
        }
    }
    endJob(what);
}

/// Ends the process when the time is up. It makes no MPI call, since the main thread may be inside one.
class Watchdog {
  public:
    explicit Watchdog(seconds limit) : thread_([this, limit] { wait(limit); }) {}
    Watchdog(const Watchdog &) = delete;
    Watchdog &operator=(const Watchdog &) = delete;
    ~Watchdog() {
        {
            const std::lock_guard lock(mutex_);
            done_ = true;
        }
        wake_.notify_all();
        thread_.join();
    }

  private:
    void wait(seconds limit) {
        std::unique_lock lock(mutex_);
        if (wake_.wait_for(lock, limit, [this] { return done_; }))
            return;
        report(progress().describe() + "[rank " + std::to_string(rank) + "] no end after " +
               std::to_string(limit.count()) + " s (DNDS_TEST_TIMEOUT_S)\n");
        // Every rank gets to say where it is before the first one goes down.
        std::this_thread::sleep_for(seconds(1));
        std::_Exit(124);
    }

    std::mutex mutex_;
    std::condition_variable wake_;
    bool done_ = false;
    std::thread thread_;
};

/// Follows the tests of this rank and brings the ranks together after each of them.
class MpiListener : public testing::EmptyTestEventListener {
  public:
    MpiListener() : grace_(environmentInt("DNDS_TEST_FAILURE_GRACE_S", 10)) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
        MPI_Comm_set_errhandler(comm_, MPI_ERRORS_ARE_FATAL);
    }
    MpiListener(const MpiListener &) = delete;
    MpiListener &operator=(const MpiListener &) = delete;
    ~MpiListener() override { MPI_Comm_free(&comm_); }

    void OnTestStart(const testing::TestInfo &info) override {
        progress().enterTest(std::string(info.test_suite_name()) + '.' + info.name());
    }

    void OnTestPartResult(const testing::TestPartResult &result) override {
        if (!result.failed())
            return;
        std::ostringstream text;
        text << "[rank " << rank << "] " << (result.file_name() ? result.file_name() : "unknown file") << ':'
             << result.line_number() << ": Failure\n"
             << result.message();
        progress().addFailure(text.str());
    }

    void OnTestEnd(const testing::TestInfo &info) override {
        const bool failed = info.result()->Failed();
        const std::vector<int> codes = meet(failed ? 1 : 0, failed);
        progress().leaveTest();
        std::string ranks;
        for (int r = 0; r < size; r++)
            if (codes[static_cast<std::size_t>(r)] != 0)
                ranks += (ranks.empty() ? " on rank " : ", ") + std::to_string(r);
        if (!ranks.empty() && rank == 0) {
            std::cout << "[  RANKS   ] " << info.test_suite_name() << '.' << info.name() << ranks << std::endl;
            failedTests_++;
        }
    }

    /// Gathers one number of every rank on every rank. Collective. Sleeps between looks, because the others may need
    /// this core. A rank that comes here with a failure and stays alone has left a collective that the others are in.
    std::vector<int> meet(int mine, bool failed) {
        std::vector<int> all(static_cast<std::size_t>(size), 0);
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Iallgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, comm_, &request);
        const Clock::time_point start = Clock::now();
        auto pause = std::chrono::microseconds(10);
        for (int done = 0;;) {
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
            if (done)
                return all;
            if (failed && Clock::now() - start > grace_)
                endJob("failed, and other ranks did not finish this test within " + std::to_string(grace_.count()) +
                       " s (DNDS_TEST_FAILURE_GRACE_S)");
            std::this_thread::sleep_for(pause);
            pause = std::min(pause * 2, std::chrono::microseconds(2000));
        }
    }

    int failedTests() const { return failedTests_; }

  private:
    MPI_Comm comm_ = MPI_COMM_NULL;
    seconds grace_;
    int failedTests_ = 0;
};

std::filesystem::path logPath(int ofRank) {
    return std::filesystem::path(environment("DNDS_TEST_LOG_DIR", "dnds_test_logs")) /
           ("rank" + std::to_string(ofRank) + ".log");
}

/// Sends what this rank writes to stdout into its log. stderr stays, so that MPI's and sanitizers' reports are seen.
void redirectToLog() {
    std::error_code ignored;
    std::filesystem::create_directories(logPath(rank).parent_path(), ignored);
    if (std::freopen(logPath(rank).c_str(), "w", stdout) == nullptr)
        endJob("cannot write " + logPath(rank).string());
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
}

/// Prints the logs of ranks that failed, without the lines about tests that start and pass.
void printLogs(const std::vector<int> &codes) {
    for (int r = 1; r < size; r++) {
        if (codes[static_cast<std::size_t>(r)] == 0)
            continue;
        std::cout << "---- rank " << r << " (" << logPath(r).string() << ") ----\n";
        std::ifstream log(logPath(r));
        for (std::string line; std::getline(log, line);) {
            const bool chatter = line.starts_with("[ RUN") || line.starts_with("[       OK") ||
                                 line.starts_with("[----") || line.starts_with("[====");
            if (!chatter && !line.empty())
                std::cout << line << '\n';
        }
        std::cout << "---- end of rank " << r << " ----" << std::endl;
    }
}

void chooseSeed() {
    const std::string text = environment("DNDS_TEST_SEED", "");
    if (text == "random")
        seedValue = (static_cast<std::uint64_t>(std::random_device{}()) << 32) ^ std::random_device{}();
    else if (!text.empty())
        seedValue = std::strtoull(text.c_str(), nullptr, 10);
    MPI_Bcast(&seedValue, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
}

int runTests() {
    const int expected = environmentInt("DNDS_TEST_RANKS", size);
    if (expected != size) {
        if (rank == 0)
            report("DNDS_TEST_RANKS is " + std::to_string(expected) + ", but MPI_COMM_WORLD has " +
                   std::to_string(size) + " ranks: is mpiexec that of the MPI the tests were built with?\n");
        return 1;
    }
    if (testing::GTEST_FLAG(list_tests))
        return rank == 0 ? RUN_ALL_TESTS() : 0;

    chooseSeed();
    if (rank == 0)
        std::cout << size << " ranks, DNDS_TEST_SEED=" << seedValue << std::endl;
    else
        redirectToLog();
    if (size > 1)
        testing::GTEST_FLAG(catch_exceptions) = false;
    testing::GTEST_FLAG(random_seed) = static_cast<int>(seedValue % 99999) + 1; // one order, if shuffled, on all ranks

    MpiListener listener;
    testing::TestEventListeners &listeners = testing::UnitTest::GetInstance()->listeners();
    listeners.Append(&listener);
    int code = RUN_ALL_TESTS();
    listeners.Release(&listener);

    const int ran = testing::UnitTest::GetInstance()->test_to_run_count();
    if (ran == 0) {
        code = 1;
        if (rank == 0)
            report("no test ran\n");
    }
    std::fflush(stdout);
    const std::vector<int> codes = listener.meet(code, false);
    if (rank == 0) {
        printLogs(codes);
        if (listener.failedTests() > 0)
            std::cout << "[  RANKS   ] " << listener.failedTests() << " of " << ran << " tests failed on some rank"
                      << std::endl;
    }
    const int worst = *std::max_element(codes.begin(), codes.end());
    if (rank == 0 && worst == 0)
        std::cout << "[  RANKS   ] every test passed on every rank"
                  << std::endl; // cmake/DNDSPrograms.cmake looks for it
    return worst;
}

} // namespace

namespace DNDS::test {

int worldRank() { return rank; }
int worldSize() { return size; }
std::uint64_t seed() { return seedValue; }

std::uint64_t rankSeed(std::uint64_t salt) {
    // SplitMix64's finalizer (Steele, Lea and Flood 2014), so that neighbouring ranks get unrelated streams.
    const auto stream = static_cast<std::uint64_t>(rank);
    std::uint64_t x = seedValue + 0x9e3779b97f4a7c15ULL * (1 + salt * 1000003ULL + stream);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

} // namespace DNDS::test

int main(int argc, char **argv) {
    int provided = 0;
    const char *threads = std::getenv("DNDS_TEST_MPI_THREADS");
    const bool multiple = threads != nullptr && std::string_view(threads) == "multiple";
    MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::set_terminate(onTerminate);
    testing::InitGoogleTest(&argc, argv);
    int code = 1;
    {
        const Watchdog watchdog(seconds(environmentInt("DNDS_TEST_TIMEOUT_S", 50)));
        code = runTests();
        MPI_Finalize();
    }
    return code;
}
